//! Trials: another role, model or prompt beside the usual one. As a shadow it does the same tasks and nothing of it counts;
//! as a canary it gets a share of the tasks, and what it gives counts like anything else.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::rights::{Allowed, Rights};
use super::task::TaskOffered;
use crate::ids::{Generation, Role, RunId, TaskId};

/// Most trials of a fleet.
pub const MOST_TRIALS: usize = 32;

/// Longest name of a trial, in bytes.
pub const MAX_NAME_BYTES: usize = 48;

/// Whether this can be the name of a trial: lower-case letters, digits, `-` and `_`.
#[must_use]
pub fn is_trial_name(name: &str) -> bool {
    crate::text::is_short_name(name, MAX_NAME_BYTES)
}

/// How a variant is tried.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::EnumMessage, strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrialMode {
    /// It does the same tasks besides, and nothing of it counts.
    Shadow,
    /// It does a share of the tasks, which counts.
    Canary,
}

impl TrialMode {
    /// Its name, as in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::Canary => "canary",
        }
    }
}

/// What is tried in place of the usual.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Variant {
    /// The role whose agents do it; the same role where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The model; the usual one where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// `role worker_b, model provider/model`.
impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let role = self.role.as_ref().map(|role| format!("role {role}"));
        let model = self.model.as_ref().map(|model| format!("model {model}"));
        let parts: Vec<String> = role.into_iter().chain(model).collect();
        f.write_str(&parts.join(", "))
    }
}

/// What a canary is compared by.
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
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The share of tasks whose first try ended well.
    #[default]
    Success,
    /// What the first try of a task costs.
    Cost,
    /// How long it takes, from its offer to its end.
    Time,
}

/// When a canary is withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct WithdrawRule {
    /// By what.
    pub measure: Measure,
    /// Fewest tasks that both have to have done before anything is said.
    pub after: u32,
    /// By how much worse: percentage points of success, percent of cost or time.
    pub by: u32,
}

impl WithdrawRule {
    /// Why a canary is withdrawn that came to this; nothing while it may go on.
    #[must_use]
    pub fn against(&self, counts: &TrialCounts) -> Option<String> {
        let TrialCounts { control, variant } = counts;
        let least = u64::from(self.after.max(1));
        if control.tasks < least || variant.tasks < least {
            return None;
        }
        let (of_control, of_variant) = (u128::from(control.tasks), u128::from(variant.tasks));
        let by = u128::from(self.by);
        let more = |usual: u64, tried: u64| {
            // Of what is tried, each for as many tasks as both have done together.
            let (usual, tried) = (u128::from(usual) * of_variant, u128::from(tried) * of_control);
            tried > usual && tried * 100 >= usual * (100 + by)
        };
        let is_worse = match self.measure {
            Measure::Success => {
                let (usual, tried) =
                    (u128::from(control.done) * of_variant, u128::from(variant.done) * of_control);
                usual > tried && (usual - tried) * 100 >= by * of_control * of_variant
            }
            Measure::Cost => more(control.cost_micros, variant.cost_micros),
            Measure::Time => more(control.ms, variant.ms),
        };
        is_worse.then(|| self.in_words(counts))
    }

    fn in_words(&self, TrialCounts { control, variant }: &TrialCounts) -> String {
        let ArmCount { tasks, done, .. } = *variant;
        match self.measure {
            Measure::Success => format!(
                "{done} of its {tasks} tasks went well at once, of the others {} of {}: at least {} points worse",
                control.done, control.tasks, self.by
            ),
            Measure::Cost => format!(
                "a task costs {} with it and {} without: at least {} % more",
                dollars(variant.mean(variant.cost_micros)),
                dollars(control.mean(control.cost_micros)),
                self.by
            ),
            Measure::Time => format!(
                "a task takes {} ms with it and {} ms without: at least {} % more",
                variant.mean(variant.ms),
                control.mean(control.ms),
                self.by
            ),
        }
    }
}

fn dollars(micros: u64) -> String {
    format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// What tasks of one arm came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct ArmCount {
    /// Tasks whose first try has ended.
    pub tasks: u64,
    /// Of these, those that ended well.
    pub done: u64,
    /// What they cost together, in millionths of a US dollar.
    pub cost_micros: u64,
    /// How long they took together, in milliseconds.
    pub ms: u64,
}

impl ArmCount {
    /// Counts one task.
    pub fn add(&mut self, sample: &TrialSample) {
        self.tasks = self.tasks.saturating_add(1);
        self.done = self.done.saturating_add(u64::from(sample.done));
        self.cost_micros = self.cost_micros.saturating_add(sample.cost_micros);
        self.ms = self.ms.saturating_add(sample.ms);
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            tasks: self.tasks.saturating_add(other.tasks),
            done: self.done.saturating_add(other.done),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
            ms: self.ms.saturating_add(other.ms),
        }
    }

    fn mean(&self, sum: u64) -> u64 {
        sum.checked_div(self.tasks).unwrap_or(0)
    }
}

/// What both arms of a trial came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct TrialCounts {
    /// The usual.
    pub control: ArmCount,
    /// What is tried.
    pub variant: ArmCount,
}

impl TrialCounts {
    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { control: self.control.and(other.control), variant: self.variant.and(other.variant) }
    }
}

/// A trial, as it holds for a run. Fixed when the run is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TrialRule {
    /// Its name.
    pub name: String,
    /// Whose tasks.
    pub role: Role,
    /// How.
    pub mode: TrialMode,
    /// What is tried.
    pub variant: Variant,
    /// Of how many of the tasks, in percent.
    pub share: u8,
    /// The most that one shadow may use.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub task_budget: Budget,
    /// The most that all shadows of the trial may use together.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// When a canary is withdrawn; by people alone where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdraw: Option<WithdrawRule>,
    /// What was counted of earlier runs when this one began.
    #[serde(default, skip_serializing_if = "TrialCounts::is_empty")]
    pub before: TrialCounts,
}

impl TrialRule {
    /// What is compared with what, in words: what was counted for another variant says nothing of this one.
    #[must_use]
    pub fn about(&self) -> String {
        format!("{} of {}: {}", self.mode.as_str(), self.role, self.variant)
    }

    /// The most that one shadow may use.
    #[must_use]
    pub fn of_one_shadow(&self) -> Budget {
        self.task_budget.tighter(&self.budget)
    }
}

/// On which side of a trial a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// It is done as usual, and compared with.
    Control,
    /// It is done by the variant, and counts.
    Canary,
    /// It is done once more by the variant, and nothing of it counts.
    Shadow,
}

impl Arm {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Canary => "canary",
            Self::Shadow => "shadow",
        }
    }
}

/// Which trial a task takes part in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TrialMark {
    /// The trial.
    pub trial: String,
    /// On which side.
    pub arm: Arm,
}

/// What the first try of a task came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TrialSample {
    /// Whether it ended well.
    pub done: bool,
    /// What it cost, in millionths of a US dollar, where the price is known.
    pub cost_micros: u64,
    /// Tokens sent and answered.
    #[serde(default)]
    pub tokens: u64,
    /// How long it took, from its offer to its end, in milliseconds.
    pub ms: u64,
}

/// A task that takes part in a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskTrial {
    /// Which, and on which side.
    pub mark: TrialMark,
    /// What its first try came to, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<TrialSample>,
}

/// What a run is that does one task of another run once more, to see how a variant does it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ShadowOf {
    /// The trial.
    pub trial: String,
    /// The other run.
    pub run: RunId,
    /// Its task.
    pub task: TaskId,
    /// The generation of it.
    pub generation: Generation,
    /// The role that does it here.
    pub role: Role,
    /// What was offered there.
    pub offer: Box<TaskOffered>,
}

impl ShadowOf {
    /// What a shadow may do: look, and change nothing.
    #[must_use]
    pub fn rights() -> Rights {
        Rights {
            write_context: Allowed::none(),
            people: false,
            hand_over: false,
            runs: false,
            write_files: false,
            effects: false,
            ..Rights::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counts(control: [u64; 4], variant: [u64; 4]) -> TrialCounts {
        let arm = |[tasks, done, cost_micros, ms]: [u64; 4]| ArmCount { tasks, done, cost_micros, ms };
        TrialCounts { control: arm(control), variant: arm(variant) }
    }

    #[test]
    fn a_canary_is_withdrawn_when_it_is_worse_by_enough_and_both_have_done_enough() {
        let rule = |measure, by| WithdrawRule { measure, after: 10, by };
        let table = [
            (rule(Measure::Success, 20), counts([10, 9, 0, 0], [10, 7, 0, 0]), true),
            (rule(Measure::Success, 20), counts([100, 90, 0, 0], [10, 8, 0, 0]), false),
            (rule(Measure::Success, 0), counts([10, 9, 0, 0], [10, 9, 0, 0]), false),
            (rule(Measure::Success, 20), counts([10, 5, 0, 0], [10, 10, 0, 0]), false),
            (rule(Measure::Success, 20), counts([9, 9, 0, 0], [10, 0, 0, 0]), false),
            (rule(Measure::Success, 20), counts([10, 10, 0, 0], [9, 0, 0, 0]), false),
            (rule(Measure::Cost, 50), counts([10, 10, 1_000, 0], [20, 20, 3_000, 0]), true),
            (rule(Measure::Cost, 50), counts([10, 10, 1_000, 0], [20, 20, 2_999, 0]), false),
            (rule(Measure::Cost, 50), counts([10, 10, 0, 0], [10, 10, 0, 0]), false),
            (rule(Measure::Time, 100), counts([10, 10, 0, 500], [10, 10, 0, 1_000]), true),
            (rule(Measure::Time, 100), counts([10, 10, 0, 500], [10, 10, 0, 999]), false),
        ];
        for (rule, counts, withdrawn) in table {
            assert_eq!(rule.against(&counts).is_some(), withdrawn, "{rule:?} {counts:?}");
        }
    }

    #[test]
    fn a_shadow_may_change_nothing() {
        use super::super::rights::Use;
        let rights = ShadowOf::rights();
        for wanted in
            [Use::Effect("x"), Use::WriteFile, Use::Person, Use::Run, Use::HandOver, Use::WriteKey("k")]
        {
            assert!(!rights.allow(&wanted), "{wanted:?}");
        }
        for wanted in [Use::Tool("calculator"), Use::Document("a.md"), Use::ReadKey("k")] {
            assert!(rights.allow(&wanted), "{wanted:?}");
        }
    }

    #[test]
    fn names_are_plain() {
        assert!(is_trial_name("worker-b_2"));
        for name in ["", "A", "a.b", "a b", &"a".repeat(49)] {
            assert!(!is_trial_name(name), "{name:?}");
        }
    }

    proptest! {
        /// More of what is worse never saves a canary, and a canary that is as good as the others stays.
        #[test]
        fn worse_is_worse(
            tasks in 1u64..1_000_000, done in 0u64..1_000_000, cost in 0u64..u64::MAX / 4, by in 1u32..100,
        ) {
            let done = done.min(tasks);
            let same = counts([tasks, done, cost, cost], [tasks, done, cost, cost]);
            for measure in [Measure::Success, Measure::Cost, Measure::Time] {
                let rule = WithdrawRule { measure, after: 1, by };
                prop_assert_eq!(rule.against(&same), None);
            }
            let worse = counts([tasks, tasks, cost, cost], [tasks, 0, cost, cost]);
            let rule = WithdrawRule { measure: Measure::Success, after: 1, by };
            prop_assert!(rule.against(&worse).is_some());
        }
    }
}
