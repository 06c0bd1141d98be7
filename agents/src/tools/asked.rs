//! What tools of servers may ask in the middle of a call, and how much of it. Pure.

use muster_mcp::McpSettings;
use muster_shared::wire::tool_question::{CallAnswer, CallQuestion, ModelQuestion, QuestionKind};

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

    /// Whether the tools of this server may ask anybody of this kind.
    #[must_use]
    pub fn may_ask(&self, server: &str, kind: QuestionKind) -> bool {
        match kind {
            QuestionKind::Model => self.settings.may_sample(server),
            QuestionKind::Person => self.settings.may_elicit(server),
        }
    }

    /// A question as it is put, after so many others of the same call.
    ///
    /// # Errors
    /// What it is answered without being put.
    pub fn admit(
        &self,
        server: &str,
        question: CallQuestion,
        asked: u32,
    ) -> Result<CallQuestion, CallAnswer> {
        if !self.may_ask(server, question.kind()) {
            return Err(CallAnswer::declined("the tools of this server may not ask that"));
        }
        if let Some(fault) = question.fault() {
            return Err(CallAnswer::declined(fault));
        }
        match question {
            CallQuestion::Model(_) if asked >= self.settings.sampling_calls => {
                Err(CallAnswer::declined(format!(
                    "a call may ask the model {} times at most (tool.mcp.sampling_calls)",
                    self.settings.sampling_calls
                )))
            }
            CallQuestion::Person(_) if asked >= self.settings.elicitation_calls => {
                Err(CallAnswer::declined(format!(
                    "a call may ask a person {} times at most (tool.mcp.elicitation_calls)",
                    self.settings.elicitation_calls
                )))
            }
            CallQuestion::Person(question) => Ok(CallQuestion::Person(question)),
            CallQuestion::Model(question) => {
                let max_tokens = question.max_tokens.clamp(1, self.settings.sampling_tokens.max(1));
                Ok(CallQuestion::Model(ModelQuestion { max_tokens, ..question }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_shared::wire::tool_question::QuestionTurn;

    use super::*;

    fn question(max_tokens: u32, text: &str) -> CallQuestion {
        let turns = vec![QuestionTurn { by_model: false, text: text.to_owned(), pictures: Vec::new() }];
        let (system, temperature, stop) = (None, None, Vec::new());
        CallQuestion::Model(ModelQuestion { system, turns, max_tokens, temperature, stop })
    }

    #[test]
    fn nobody_asks_the_model_unless_settings_say_so_and_then_within_limits() {
        let by_default = AskRules::of(&McpSettings::default());
        assert!(by_default.admit("notes", question(10, "a"), 0).is_err());
        let sampling = vec!["notes".to_owned()];
        let rules = AskRules::of(&McpSettings {
            sampling,
            sampling_calls: 2,
            sampling_tokens: 50,
            ..McpSettings::default()
        });
        assert_eq!(rules.admit("notes", question(10, "a"), 1), Ok(question(10, "a")));
        assert_eq!(rules.admit("notes", question(100_000, "a"), 1), Ok(question(50, "a")));
        assert_eq!(rules.admit("notes", question(0, "a"), 1), Ok(question(1, "a")));
        for (server, question, asked, why) in [
            ("others", question(10, "a"), 0, "may not ask"),
            ("notes", question(10, "a"), 2, "2 times at most"),
            ("notes", question(10, &"x".repeat(300_000)), 0, "bytes"),
        ] {
            let refused = rules.admit(server, question, asked);
            assert!(
                matches!(&refused, Err(CallAnswer::Decline { why: said }) if said.contains(why)),
                "{refused:?}"
            );
        }
        let all = AskRules::of(&McpSettings { sampling: vec!["*".to_owned()], ..McpSettings::default() });
        assert!(all.may_ask("others", QuestionKind::Model));
    }
}
