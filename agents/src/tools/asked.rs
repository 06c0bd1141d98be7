//! What tools of servers may ask a person in the middle of a call, and how much of it. Pure.

use muster_shared::wire::tool_question::PersonQuestion;
use muster_tools::settings::McpSettings;

/// Most questions to a person in one call of a tool. Nobody answers more in the middle of a call.
const MAX_ELICITATIONS: u32 = 8;

/// Whose questions are answered, and how many.
#[derive(Debug, Clone)]
pub struct AskRules {
    settings: McpSettings,
}

impl AskRules {
    /// As these settings have it.
    #[must_use]
    pub fn of(settings: &McpSettings) -> Self {
        Self { settings: settings.clone() }
    }

    /// Whether the tools of this server may ask anybody.
    #[must_use]
    pub fn may_ask(&self, server: &str) -> bool {
        self.settings.may_elicit(server)
    }

    /// Whether a question is put, after so many others of the same call.
    ///
    /// # Errors
    /// Why it is not.
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
        let rules =
            AskRules::of(&McpSettings { elicitation, elicitation_calls: 2, ..McpSettings::default() });
        assert!(rules.may_ask("notes") && !rules.may_ask("others"));
        assert!(AskRules::of(&McpSettings::default()).may_ask("others"));
        assert_eq!(rules.admit(&question("a"), 1), Ok(()));
        for (question, asked, why) in
            [(question("a"), 2, "2 times at most"), (question(&"x".repeat(300_000)), 0, "bytes")]
        {
            let refused = rules.admit(&question, asked);
            assert!(matches!(&refused, Err(said) if said.contains(why)), "{refused:?}");
        }
    }
}
