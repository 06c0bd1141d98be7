//! Limits of one task, and what the loop does at them (W5).

use muster_shared::flow::{ModelVerification, TaskOffered};
use muster_shared::settings;
use serde::{Deserialize, Serialize};

use crate::roles::RoleRules;

settings! {
    /// Limits of one task.
    #[derive(Copy, PartialEq, Eq)]
    pub const struct StepLimits {
        /// Most steps. The run's own limit holds where it is lower, and so does the task's.
        pub max_steps: u32 = 1_000 => internal(),
        /// How often a model is asked within one step before its failure counts.
        pub max_asks: u32 = 3 => internal(),
        /// What happens when the steps are used up: the best partial answer counts, or a person has to look.
        pub at_limit: AtLimit = AtLimit::Partial => words::<AtLimit>(); Fleet Harmless,
        /// After how many steps of one kind in a row that gave nothing new a model is told that it goes in circles; 0 for
        /// never.
        pub stale_after: u32 = 3 => internal(),
        /// How often a model is told that it goes in circles before its task is escalated.
        pub max_spins: u32 = 2 => internal(),
        /// When the model is asked whether a result holds, beside the rules that always look.
        pub verification: Verification = Verification::Critical => words::<Verification>(); Fleet Harmless,
        /// How often a result that does not hold is to be mended.
        pub max_revisions: u32 = 2 => internal(),
        /// Most tool calls of one answer that are done in one step: side by side where they change nothing.
        pub calls_a_step: u32 = 8 => internal(),
        /// Whether the task's budget is what limits its steps. Not a setting.
        #[serde(skip)]
        pub by_budget: bool = false => internal(),
        /// Most bytes of the messages of a request, where the model's context is known; 0 where it is not. Not a
        /// setting.
        #[serde(skip)]
        pub room: u32 = 0 => internal(),
    }
}

/// What happens when the steps of a task are used up.
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
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// The task ends with the best partial answer there is.
    #[default]
    Partial,
    /// The task ends as one that a person has to decide upon; the best partial answer goes with it.
    Escalate,
}

/// When the model is asked whether a result holds (W8).
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
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// Never: only rules check.
    Off,
    /// Once per report, in which at least three statements cite lines: each statement is compared with its lines.
    Cited,
    /// The same, and once for tasks that the plan calls critical.
    #[default]
    Critical,
    /// The same, and once for every leaf and the report.
    Brief,
    /// Once for each of completeness, consistency, correctness and constraints.
    Full,
}

impl Verification {
    /// The same where the run says of which results a model is asked; how thoroughly is the agent's own.
    const fn of_run(self, wanted: ModelVerification) -> Self {
        match (wanted, self) {
            (ModelVerification::Own, own) => own,
            (ModelVerification::Off, _) => Self::Off,
            (ModelVerification::Cited, _) => Self::Cited,
            (ModelVerification::Critical, _) => Self::Critical,
            (ModelVerification::All, Self::Full) => Self::Full,
            (ModelVerification::All, Self::Off | Self::Cited | Self::Critical | Self::Brief) => Self::Brief,
        }
    }
}

impl StepLimits {
    /// The limits of this task: what the agent's settings, the run, the role, the task and the budget allow together.
    /// Every step of a task that `asks` a model takes a call.
    #[must_use]
    pub fn of_task(self, offer: &TaskOffered, rules: &RoleRules, asks: bool) -> Self {
        let role = rules.max_steps.unwrap_or(u32::MAX);
        let task = offer.work.leaf().and_then(|task| task.max_steps).unwrap_or(u32::MAX);
        let usual = self.max_steps.min(offer.limits.max_steps).min(role).min(task).max(1);
        let calls = offer.budget.model_calls.filter(|_| asks);
        let budget = offer.budget.steps.into_iter().chain(calls).min();
        let budget = budget.map_or(u32::MAX, |most| u32::try_from(most).unwrap_or(u32::MAX));
        Self {
            verification: self.verification.of_run(offer.limits.verification),
            max_steps: usual.min(budget).max(1),
            max_asks: self.max_asks.max(1),
            max_spins: self.max_spins.max(1),
            by_budget: budget < usual,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_of_which_results_a_model_is_asked() {
        use ModelVerification as Run;
        use Verification::{Brief, Cited, Critical, Full, Off};
        for (run, wanted) in [
            (Run::Own, [Off, Critical, Brief, Full]),
            (Run::Off, [Off, Off, Off, Off]),
            (Run::Cited, [Cited, Cited, Cited, Cited]),
            (Run::Critical, [Critical, Critical, Critical, Critical]),
            (Run::All, [Brief, Brief, Brief, Full]),
        ] {
            assert_eq!([Off, Critical, Brief, Full].map(|own| own.of_run(run)), wanted, "{run:?}");
        }
    }
}
