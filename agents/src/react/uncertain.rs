//! A step whose tool was begun and whose end nobody recorded: its agent died, or was cut off, in between. The model's
//! answer behind it is in the record and is not asked for again.

use muster_shared::flow::response::EFFECT_UNKNOWN;
use muster_shared::flow::{Ending, Observation, ObservationStatus};

use crate::roles::Submission;
use crate::tools::Uncertain;

/// What follows for such a step.
#[derive(Debug, PartialEq)]
pub enum Resumption {
    /// The tool is called once more, under the key of the first call.
    Repeat,
    /// The step ends with this observation, and the model decides.
    Tell(Observation),
    /// The step ends with this observation, and the task with it.
    Fail(Observation, Box<Submission>),
}

/// Decides by the word of the tool that was begun in this step.
#[must_use]
pub fn resume(tool: &str, step: u32, policy: Uncertain) -> Resumption {
    let unknown = format!(
        "The agent that called `{tool}` was stopped before the tool answered. Whether it took effect is not known"
    );
    match policy {
        Uncertain::Repeat => Resumption::Repeat,
        Uncertain::Ask => Resumption::Tell(observation(format!("{unknown}: look before you do it again."))),
        Uncertain::Fail => {
            let reason = format!(
                "whether `{tool}` took effect in step {step} is not known, and {EFFECT_UNKNOWN}: a person has to \
                 look"
            );
            let submission = Submission::without_product(Ending::Escalate, reason);
            Resumption::Fail(
                observation(format!("{unknown}, and it must not be done twice.")),
                Box::new(submission),
            )
        }
    }
}

/// What follows where the entry that announces a tool cannot be read: a person has to look.
#[must_use]
pub fn unreadable(step: u32, why: &str) -> Submission {
    let reason = format!(
        "which tool was begun in step {step} cannot be read ({why}); whether it took effect is not known, and \
         {EFFECT_UNKNOWN}: a person has to look"
    );
    Submission::without_product(Ending::Escalate, reason)
}

const fn observation(content: String) -> Observation {
    Observation { status: ObservationStatus::Timeout, content, millis: 0, truncated: false, cached: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_has_the_word() {
        let resume = |policy| resume("mail.send", 3, policy);
        assert_eq!(resume(Uncertain::Repeat), Resumption::Repeat);
        let Resumption::Tell(told) = resume(Uncertain::Ask) else { panic!("the model is told") };
        assert!(
            told.content.contains("`mail.send`") && told.content.contains("not known"),
            "{}",
            told.content
        );
        let Resumption::Fail(told, end) = resume(Uncertain::Fail) else { panic!("the task ends") };
        assert!(told.content.contains("must not be done twice"), "{}", told.content);
        assert_eq!(end.ending, Ending::Escalate, "a try more would call it again");
        assert!(end.reason.contains("step 3"), "{}", end.reason);
    }
}
