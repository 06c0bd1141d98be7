//! Limits of one run.

mod choice;

use std::time::Duration;

use serde_json::{Map, Value};

pub use choice::{Granularity, ModelVerification, Writing};

use super::auction::AuctionRules;
use super::budget::Budget;
use super::conflicts::Conflicts;
use super::context::ContextLimits;
use super::draft_review::DraftReviewPolicy;
use super::goal::Planning;
use super::group::Committees;
use super::guard::{GuardRule, Hook};
use super::pattern::Pattern;
use super::peer::Peers;
use super::people::People;
use super::plan::PlanTask;
use super::reflection::ReflectionLevel;
use super::response::Responses;
use super::rights::Rights;
use super::trial::TrialRule;
use crate::ids::Role;
use crate::setting::clamp;
use crate::settings;

// Every offer carries the limits of its run: those with their usual value are left out.
const MAX_DEATHS: u32 = 3;
const START_WITHIN_MS: u64 = 5_000;
const SILENCE_MS: u64 = 60_000;
const MAX_CALLS: u64 = 5_000;
const MAX_NESTING: u32 = 3;
const MAX_REPLANS: u32 = 3;
const REPLAN_BELOW_CONFIDENCE: u8 = 20;
const MAX_MILESTONES: u16 = 8;
const DRAFT_ROUNDS: u8 = 1;
/// Longer than a process takes to be started anew.
const WAIT_FOR_ROLE_MS: u64 = 30_000;

/// The longest time that a run, or anything within it, may be given, in milliseconds.
pub const LONGEST_RUN_MS: u64 = 30 * 24 * 3600 * 1000;

settings! {
    /// Limits of one run. Fixed when the run is created, so that a replay decides alike. Nobody gains from more than the
    /// most that stands here; it keeps one run from taking more than its share of the fleet.
    #[derive(PartialEq, Eq)]
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    pub struct RunLimits {
        // P3.
        /// Most children of one task in a plan.
        pub max_width: u16 = 5 => whole(1, 50); Project Harmless,
        /// Most levels of a plan.
        pub max_depth: u16 = 3 => whole(1, 20); Project Harmless,
        /// Most tasks in a plan; more counts as over-decomposed.
        pub max_tasks: u16 = 20 => whole(1, 500); Project Harmless,
        // W5.
        /// Most steps of one task: thought, action, observation.
        pub max_steps: u32 = 10 => whole(1, 1000); Project Harmless,
        /// Offers of one task before it counts as failed.
        pub max_generations: u32 = 3 => whole(1, 10); Project Harmless,
        /// Agents that may die one after the other of one task, without a step between them, before it is given to
        /// nobody any more; 0 for any number.
        #[serde(skip_serializing_if = "crate::is_usual::<_, { MAX_DEATHS as u64 }>")]
        pub max_deaths: u32 = MAX_DEATHS => whole(0, 10); Project Harmless,
        // Below a second, offers would be made again while they are being taken.
        /// How long an offer may lie where it could be started before it goes to another agent. Doubles with each offer
        /// of a task that goes to whoever is free.
        #[serde(skip_serializing_if = "crate::is_usual::<_, START_WITHIN_MS>")]
        pub start_within_ms: u64 = START_WITHIN_MS => span(SECOND, LONGEST_RUN_MS); Project Harmless,
        // Below a second, it would not be long enough for what is being written.
        /// How long whoever has a task may write nothing about it before it goes to another agent; 0s for as long as the
        /// task's time lasts. Doubles with each try. Muster's own agents, whose calls have limits, ask for as long as
        /// these take.
        #[serde(skip_serializing_if = "crate::is_usual::<_, SILENCE_MS>")]
        pub silence_ms: u64 = SILENCE_MS => span(SECOND, LONGEST_RUN_MS).or_zero(); Project Harmless,
        // P5.
        /// Most refinements of a plan.
        pub max_refinements: u32 = 3 => whole(0, 20); Project Harmless,
        // P4.
        /// Most operations in one refinement.
        pub max_refine_operations: u32 = 4 => bounded(1, 20),
        // M2.
        /// Which leaves are reflected on, and how thoroughly: none, brief, full, after-failure, when-spinning or
        /// when-needed.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub reflection: ReflectionLevel = ReflectionLevel::Full => words::<ReflectionLevel>(); Project Harmless,
        /// Time for one task.
        pub task_deadline_ms: u64 = 10 * 60 * 1000 => span(1, 7 * DAY); Project Harmless,
        /// Time for a run whose goal names none.
        pub run_deadline_ms: u64 = 60 * 60 * 1000 => span(1, LONGEST_RUN_MS); Project Harmless,
        /// The most that a whole run may use; `muster run --max-cost`, `--max-tokens` and `--max-calls` override it.
        #[serde(skip_serializing_if = "Budget::is_unlimited")]
        pub budget: Budget = Budget::UNLIMITED => group(Budget::SETTINGS),
        /// Model calls of a run, answered or not, after which nothing more is begun and the report is written from what
        /// there is; 0 for any number. More than any run needs in which all is well.
        #[serde(skip_serializing_if = "crate::is_usual::<_, MAX_CALLS>")]
        pub max_calls: u64 = MAX_CALLS => bounded(0, MANY),
        // R6.
        /// How deep runs may stand within runs; 0 for none.
        #[serde(skip_serializing_if = "crate::is_usual::<_, { MAX_NESTING as u64 }>")]
        pub max_nesting: u32 = MAX_NESTING => bounded(0, 10),
        /// When people are asked, and what follows when they do not answer.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub people: People,
        /// How much tasks may ask of each other.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub peers: Peers,
        /// How auctions of tasks are held.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub auction: AuctionRules,
        /// How much tasks may know in common.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub context: ContextLimits,
        // O8, O10, O12.
        /// What is done when something goes wrong.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub responses: Responses,
        /// When a planner is called: auto (a goal that lists several items; any other starts as one task, whose agent may
        /// request a plan), always or never.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub planning: Planning = Planning::Always => words::<Planning>(); Project Harmless,
        // O10.
        /// Who writes the report: a writer (always), or nobody where one task gave it all (unless-single).
        #[serde(skip_serializing_if = "crate::is_default")]
        pub writer: Writing = Writing::Always => words::<Writing>(); Project Harmless,
        // W8.
        /// Results that a model verifies in addition to the rules: own (the setting of each agent), off, cited (the cited
        /// statements of the report), critical (also tasks that the plan calls critical), or all.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub verification: ModelVerification = ModelVerification::Own => words::<ModelVerification>(); Project Harmless,
        // P6.
        /// Whether a plan is improved from lessons of earlier runs before it is carried out.
        #[serde(skip_serializing_if = "crate::is_true")]
        pub iterate_plans: bool = true => flag(); Project Harmless,
        // P5.
        /// Most times that what is left of a run is planned anew.
        #[serde(skip_serializing_if = "crate::is_usual::<_, { MAX_REPLANS as u64 }>")]
        pub max_replans: u32 = MAX_REPLANS => whole(0, 20); Project Harmless,
        /// What is left is planned anew when a task is less sure of what it found than this, in percent; 0 for never.
        #[serde(skip_serializing_if = "crate::is_usual::<_, { REPLAN_BELOW_CONFIDENCE as u64 }>")]
        pub replan_below_confidence: u8 = REPLAN_BELOW_CONFIDENCE => percent(100); Project Harmless,
        // P3.
        /// Most milestones of one task; one with more counts as too large and is split.
        #[serde(skip_serializing_if = "crate::is_usual::<_, { MAX_MILESTONES as u64 }>")]
        pub max_milestones: u16 = MAX_MILESTONES => bounded(1, 16),
        /// How large the tasks of a plan are to be: coarse (a few large ones), normal, or fine (many small ones).
        #[serde(skip_serializing_if = "crate::is_default")]
        pub granularity: Granularity = Granularity::Normal => words::<Granularity>(); Project Harmless,
        // O1.
        /// How tasks are given out that say nothing of it: hierarchical (to one agent), auction, committee:3 (three do it
        /// by themselves and come to one verdict; committee:3:1 with a round of discussion) or redundant:2 (the first
        /// good result counts).
        #[serde(skip_serializing_if = "Pattern::is_hierarchical")]
        pub pattern: Pattern = Pattern::Hierarchical => text(); Project Harmless,
        /// Who sits in a committee and how it comes to a verdict.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub committee: Committees,
        // O3.
        /// What is done about results that contradict each other.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub conflicts: Conflicts,
        // O10.
        /// Whether a reviewer reads the draft of the report before it is delivered: off or on. A review costs one more
        /// model call, and a report in its place two.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub draft_review: DraftReviewPolicy = DraftReviewPolicy::Off => words::<DraftReviewPolicy>(); Project Harmless,
        /// Most times that the report is written again upon what a reviewer says, up to 5.
        #[serde(skip_serializing_if = "crate::is_usual::<_, { DRAFT_ROUNDS as u64 }>")]
        pub draft_rounds: u8 = DRAFT_ROUNDS => bounded(0, 5),
        /// How long tasks wait for a role without an agent before they fail, half of the run's time at most; 0s refuses
        /// plans of people that name one. An agent that is started again is back within seconds.
        #[serde(skip_serializing_if = "crate::is_usual::<_, WAIT_FOR_ROLE_MS>")]
        pub wait_for_role_ms: u64 = WAIT_FOR_ROLE_MS => bounded(0, LONGEST_RUN_MS),
        /// What tasks of the run may use.
        #[serde(skip_serializing_if = "Rights::is_open")]
        pub rights: Box<Rights> = Box::default() => group(Rights::SETTINGS),
        /// The guards of the run. Not a setting of its own: the section `guards` is copied here.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub guards: Vec<GuardRule> = Vec::new() => internal(),
        /// The trials that the run takes part in. Not a setting of its own: the section `trials` is copied here.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub trials: Vec<TrialRule> = Vec::new() => internal(),
    }
}

/// Puts values into an object, one by one where they are objects themselves.
fn put(all: &mut Value, changes: &Map<String, Value>) {
    if !all.is_object() {
        *all = Value::Object(Map::new());
    }
    for (name, value) in changes {
        match (value, &mut all[name]) {
            (Value::Object(inner), within) => put(within, inner),
            (plain, within) => *within = plain.clone(),
        }
    }
}

impl RunLimits {
    /// These limits with single ones set to something else, by their names.
    ///
    /// # Errors
    /// When there is no limit of a name, or a value is none that it can have.
    pub fn with(&self, changes: &Map<String, Value>) -> Result<Self, String> {
        if changes.is_empty() {
            return Ok(self.clone());
        }
        let mut all = serde_json::to_value(self).map_err(|error| error.to_string())?;
        put(&mut all, changes);
        serde_json::from_value(all).map_err(|error| error.to_string())
    }

    /// These limits, none of them below the least or above the most that any run may have. The budget stays as it is: a
    /// part of a run has what is left of it, be it nothing.
    #[must_use]
    pub fn within_bounds(self) -> Self {
        let budget = self.budget;
        let bounded = serde_json::to_value(&self).ok().and_then(|mut held| {
            clamp(&mut held, Self::SETTINGS);
            serde_json::from_value(held).ok()
        });
        // What was written is read again: it cannot fail.
        Self { budget, ..bounded.unwrap_or(self) }
    }

    /// These limits as they hold for plans that planners make, with tasks as large as they are to be.
    #[must_use]
    pub fn for_planners(&self) -> Self {
        let (tasks, milestones) = (self.max_tasks, self.max_milestones);
        let (max_tasks, max_milestones) = match self.granularity {
            Granularity::Coarse => (tasks.min(Granularity::MOST_COARSE), milestones.saturating_mul(2)),
            Granularity::Normal => (tasks, milestones),
            Granularity::Fine => (tasks, (milestones / 2).max(2).min(milestones)),
        };
        Self { max_tasks, max_milestones, ..self.clone() }
    }

    /// These limits as they hold for plans that people bring: how large a task is, they say themselves.
    #[must_use]
    pub fn for_people(&self) -> Self {
        Self { max_milestones: u16::MAX, ..self.clone() }
    }

    /// How a task of the plan is given out: as it says itself, else as these limits say.
    #[must_use]
    pub fn pattern_of(&self, task: &PlanTask) -> Pattern {
        task.pattern.unwrap_or(self.pattern)
    }

    /// The guards that are asked at a hook, about an agent of this role and this tool, in their order.
    pub fn guards_at<'a>(
        &'a self,
        hook: Hook,
        role: Option<&'a Role>,
        tool: Option<&'a str>,
    ) -> impl Iterator<Item = &'a GuardRule> {
        self.guards.iter().filter(move |rule| rule.watches(hook, role, tool))
    }

    /// Time for one task.
    #[must_use]
    pub const fn task_deadline(&self) -> Duration {
        Duration::from_millis(self.task_deadline_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_brought_within_and_budgets_stay() {
        let usual = RunLimits::default();
        assert_eq!(usual.clone().within_bounds(), usual);
        let budget = Budget { model_calls: Some(0), ..Budget::UNLIMITED };
        let mut limits = RunLimits {
            max_width: 0,
            max_depth: 900,
            start_within_ms: 1,
            silence_ms: 1,
            task_deadline_ms: u64::MAX,
            budget,
            ..usual.clone()
        };
        limits.responses.stronger_models = vec!["m".to_owned(); 20];
        limits.people.max_questions = 10_000;
        let bounded = limits.within_bounds();
        assert_eq!((bounded.max_width, bounded.max_depth), (1, 20));
        assert_eq!((bounded.start_within_ms, bounded.silence_ms), (1_000, 1_000));
        assert_eq!(bounded.task_deadline_ms, 7 * 24 * 3600 * 1000);
        assert_eq!(bounded.budget, budget);
        assert_eq!(bounded.responses.stronger_models.len(), Responses::MOST_MODELS);
        assert_eq!(bounded.people.max_questions, 500);
        assert_eq!(RunLimits { silence_ms: 0, ..usual }.within_bounds().silence_ms, 0);
    }
}
