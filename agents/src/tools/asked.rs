//! Limits on questions of tool servers to people. Pure.

use muster_shared::wire::tool_question::PersonQuestion;
use muster_tools::settings::McpSettings;

/// Most questions to a person in one call of a tool. Nobody answers more in the middle of a call.
const MAX_ELICITATIONS: u32 = 8;

/// The servers that may ask, and the number of questions.
#[derive(Debug, Clone)]
pub struct AskRules {
    settings: McpSettings,
}

impl AskRules {
    /// The rules of these settings.
    #[must_use]
    pub fn of(settings: &McpSettings) -> Self {
        Self { settings: settings.clone() }
    }

    /// Returns true if the tools of this server may ask a person.
    #[must_use]
    pub fn may_ask(&self, server: &str) -> bool {
        self.settings.may_elicit(server)
    }

    /// Checks a question, given the number of earlier questions of the same call.
    ///
    /// # Errors
    /// The reason to decline it.
    pub fn admit(&self, question: &PersonQuestion, asked: u32) -> Result<(), String> {
        if asked >= MAX_ELICITATIONS {
            return Err(format!("a call may ask a person {MAX_ELICITATIONS} times at most"));
        }
        question.fault().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::Form;

    use super::*;

    #[test]
    fn a_person_is_asked_as_settings_say_and_within_limits() {
        let question = |text: &str| PersonQuestion {
            text: text.to_owned(),
            form: Form::Visit("https://example.org".to_owned()),
        };
        let elicitation = vec!["notes".to_owned()];
        let rules = AskRules::of(&McpSettings { elicitation, ..McpSettings::default() });
        assert!(rules.may_ask("notes") && !rules.may_ask("others"));
        assert!(AskRules::of(&McpSettings::default()).may_ask("others"));
        assert_eq!(rules.admit(&question("a"), 1), Ok(()));
        for (question, asked, why) in
            [(question("a"), 8, "8 times at most"), (question(&"x".repeat(300_000)), 0, "bytes")]
        {
            let refused = rules.admit(&question, asked);
            assert!(matches!(&refused, Err(said) if said.contains(why)), "{refused:?}");
        }
    }
}
