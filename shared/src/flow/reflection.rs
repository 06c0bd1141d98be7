//! What was learnt from a task (M1).

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcome::{Ending, Outcome, StepDigest, TaskResult};
use super::refinement::RefineOperation;
use super::step::ObservationStatus;

/// Posterior knowledge of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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
    /// The change itself, where whoever reflects knows it: no refiner is asked when it can be carried out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<RefineOperation>,
}

/// What a task says of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ToolNote {
    /// The tool.
    pub tool: String,
    /// The note.
    pub note: String,
}

/// Which leaves are reflected on, and how thoroughly (M2).
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
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
    /// Those that were not wholly done, that went in circles or that came out otherwise than was to be expected, as long
    /// as something is still to be done that may learn from it.
    WhenNeeded,
}

/// Below this, in percent, a result is not sure of what it found.
const UNSURE_BELOW: u8 = 50;

impl ReflectionLevel {
    /// Whether a leaf that ended like this is reflected on.
    #[must_use]
    pub fn reflects_on(self, outcome: &Outcome) -> bool {
        match self {
            Self::None => false,
            Self::Brief | Self::Full => true,
            Self::AfterFailure => outcome.ending != Ending::Done,
            Self::WhenSpinning => loop_detected(&outcome.steps),
            Self::WhenNeeded => {
                outcome.ending != Ending::Done
                    || loop_detected(&outcome.steps)
                    || outcome.result().is_some_and(is_surprising)
            }
        }
    }

    /// Whether it asks for reflections only while leaves are left that may learn from them: none on the last, nor on an
    /// only one.
    #[must_use]
    pub const fn needs_others(self) -> bool {
        matches!(self, Self::WhenNeeded)
    }
}

/// Whether a result leaves something open, or is sure of nothing that it found. A confidence of 0 says nothing.
fn is_surprising(result: &TaskResult) -> bool {
    let known = result.findings.iter().map(|finding| finding.confidence).filter(|percent| *percent > 0);
    !result.unanswered.is_empty() || known.max().is_some_and(|best| best < UNSURE_BELOW)
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
    use crate::flow::{Finding, Product};

    fn ended(ending: Ending, actions: &[(&str, ObservationStatus)]) -> Outcome {
        let digest = |(number, (action, status)): (u32, &(&str, ObservationStatus))| StepDigest {
            number,
            action: (*action).to_owned(),
            status: Some(*status),
            millis: 1,
            more: Vec::new(),
        };
        let steps = (1..).zip(actions).map(digest).collect();
        Outcome { ending, reason: String::new(), steps, ..Outcome::of_fault() }
    }

    #[test]
    fn a_level_says_what_is_reflected_on() {
        use ObservationStatus::{Refused, Success};
        use ReflectionLevel::{AfterFailure, Brief, Full, None, WhenNeeded, WhenSpinning};
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
            (WhenNeeded, [false, true, true, true]),
        ] {
            let found = [&good, &part, &circles, &refused].map(|outcome| level.reflects_on(outcome));
            assert_eq!(found, wanted, "{level:?}");
        }
    }

    #[test]
    fn a_surprise_is_what_is_left_open_or_unsure() {
        let given = |unanswered: &[&str], confidences: &[u8]| {
            let finding = |percent: &u8| Finding { confidence: *percent, ..Finding::default() };
            let result = TaskResult {
                unanswered: unanswered.iter().map(|text| (*text).to_owned()).collect(),
                findings: confidences.iter().map(finding).collect(),
                ..TaskResult::default()
            };
            Outcome { product: Some(Product::Result(result)), ..ended(Ending::Done, &[]) }
        };
        for (outcome, wanted) in [
            (given(&[], &[]), false),
            (given(&[], &[0, 0]), false),
            (given(&[], &[20, 90]), false),
            (given(&[], &[20, 49]), true),
            (given(&["how much"], &[90]), true),
        ] {
            assert_eq!(ReflectionLevel::WhenNeeded.reflects_on(&outcome), wanted, "{outcome:?}");
            assert!(!ReflectionLevel::WhenSpinning.reflects_on(&outcome));
        }
        assert!(ReflectionLevel::WhenNeeded.needs_others() && !ReflectionLevel::Full.needs_others());
    }
}
