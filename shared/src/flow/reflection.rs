//! What was learnt from a task (M1).

use serde::{Deserialize, Serialize};

use super::outcome::{Ending, Outcome, StepDigest};
use super::step::ObservationStatus;

/// Posterior knowledge of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Reflection {
    /// What was done and what came of it.
    pub summary: String,
    /// What the task says of the plan.
    pub on_plan: Vec<String>,
    /// What it says of the tools.
    pub on_tools: Vec<ToolNote>,
    /// What the task was to cover and did not.
    pub uncovered: Vec<String>,
    /// Why the plan should be refined; absent when it should not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refine: Option<String>,
}

/// What a task says of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolNote {
    /// The tool.
    pub tool: String,
    /// The note.
    pub note: String,
}

/// Which leaves are reflected on, and how thoroughly (M2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReflectionLevel {
    /// None.
    None,
    /// All, in a sentence or two.
    Brief,
    /// All, with lessons on plan and tools.
    #[default]
    Full,
    /// Those that were not wholly done.
    AfterFailure,
    /// Those whose agent went in circles.
    WhenSpinning,
}

impl ReflectionLevel {
    /// Whether a leaf that ended like this is reflected on.
    #[must_use]
    pub fn reflects_on(self, outcome: &Outcome) -> bool {
        match self {
            Self::None => false,
            Self::Brief | Self::Full => true,
            Self::AfterFailure => outcome.ending != Ending::Done,
            Self::WhenSpinning => loop_detected(&outcome.steps),
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(super) const fn is_full(&self) -> bool {
        matches!(self, Self::Full)
    }
}

/// Whether an agent did the same again, or tried again and again what it may not do.
fn loop_detected(steps: &[StepDigest]) -> bool {
    let again = steps.windows(2).any(|pair| pair[0].action == pair[1].action);
    let refused = steps.iter().filter(|step| step.status == Some(ObservationStatus::Refused)).count();
    again || refused > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Usage;

    fn ended(ending: Ending, actions: &[(&str, ObservationStatus)]) -> Outcome {
        let digest = |(number, (action, status)): (u32, &(&str, ObservationStatus))| StepDigest {
            number,
            action: (*action).to_owned(),
            status: Some(*status),
            millis: 1,
        };
        Outcome {
            ending,
            reason: String::new(),
            product: None,
            last_step: None,
            steps: (1..).zip(actions).map(digest).collect(),
            usage: Usage::default(),
            contract_violation: None,
        }
    }

    #[test]
    fn a_level_says_what_is_reflected_on() {
        use ObservationStatus::{Refused, Success};
        use ReflectionLevel::{AfterFailure, Brief, Full, None, WhenSpinning};
        let good =
            ended(Ending::Done, &[("search a", Success), ("search b", Refused), ("search a", Success)]);
        let part = ended(Ending::DonePartial, &[]);
        let circles = ended(Ending::Done, &[("search a", Success), ("search a", Refused)]);
        let refused = ended(Ending::GaveUp, &[("a", Refused), ("b", Success), ("c", Refused)]);
        for (level, wanted) in [
            (None, [false; 4]),
            (Brief, [true; 4]),
            (Full, [true; 4]),
            (AfterFailure, [false, true, false, true]),
            (WhenSpinning, [false, false, true, true]),
        ] {
            let found = [&good, &part, &circles, &refused].map(|outcome| level.reflects_on(outcome));
            assert_eq!(found, wanted, "{level:?}");
        }
    }
}
