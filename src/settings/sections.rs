//! The sections of the settings that belong to the command itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use muster_agents::model::budget_lease::{FleetBudget, Period};
use muster_shared::flow::{
    AuctionRules, Budget, Committees, Conflicts, ContextLimits, DraftReviewPolicy, Granularity, Pattern,
    Peers, People, Planning, ReflectionLevel, Responses, RunLimits, WhenStale,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auction::AuctionSettings;
use super::committee::CommitteeSettings;
use super::conflicts::ConflictSettings;
use super::peers::PeerSettings;
use super::people::PeopleSettings;
use super::responses::ResponseSettings;

/// The local fleet that `muster up` watches over, and that `muster run` brings up for itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FleetSettings {
    /// Processes of each role; 1 where nothing is said.
    pub(crate) scale: BTreeMap<String, u16>,
    /// Restarts of one process within the window after which it is given up.
    pub(crate) max_restarts: u32,
    /// The window for counting restarts.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) restart_window: Duration,
    /// Wait before the first restart; it doubles with each one in the window.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) restart_wait: Duration,
    /// The longest wait before a restart.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) max_restart_wait: Duration,
    /// Time for processes to end in good order before they are killed.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) stop_limit: Duration,
    /// Time for the fleet to come up.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) start_limit: Duration,
    /// The most that all runs of the fleet may use together.
    pub(crate) budget: BudgetSettings,
    /// For which time: day (by UTC), or total.
    pub(crate) budget_per: Period,
    /// Resident memory of one process above which a warning is given, in MiB.
    pub(crate) memory_warning_mib: u64,
    /// A folder whose files NAME.agent.md define specialists: one process is kept for each, as files come, change and
    /// go.
    pub(crate) agents_dir: PathBuf,
    /// How often that folder is looked at.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) agents_look: Duration,
}

impl FleetSettings {
    /// The most that the whole fleet may use.
    pub(crate) fn whole_budget(&self) -> FleetBudget {
        FleetBudget { budget: Budget::from(&self.budget), per: self.budget_per }
    }
}

impl Default for FleetSettings {
    fn default() -> Self {
        Self {
            scale: BTreeMap::new(),
            max_restarts: 5,
            restart_window: Duration::from_secs(60),
            restart_wait: Duration::from_millis(100),
            max_restart_wait: Duration::from_secs(10),
            stop_limit: Duration::from_secs(10),
            start_limit: Duration::from_secs(20),
            budget: BudgetSettings::default(),
            budget_per: Period::default(),
            memory_warning_mib: 1024,
            agents_dir: PathBuf::from("agents"),
            agents_look: Duration::from_secs(1),
        }
    }
}

/// What processes log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogSettings {
    /// What is logged: error, warn, info, debug or trace, also by module (`info,muster_bus=debug`). MUSTER_LOG
    /// sets it too.
    pub(crate) level: String,
    /// How: text, or json (one object a line).
    pub(crate) format: LogFormat,
    /// A log file of a fleet's process is begun anew above this size, in MiB; one older file is kept.
    pub(crate) max_file_mib: u64,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: "warn,muster=info".to_owned(), format: LogFormat::Text, max_file_mib: 10 }
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// How a goal is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AskSettings {
    /// Time for a submitted goal to be taken up by an orchestrator.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) accept_limit: Duration,
    /// Time beyond a run's deadline after which the asker stops waiting for its end.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) grace: Duration,
    /// Time for a local fleet that is gone to come back before a command that waits for it gives up; six times as long for
    /// a bus elsewhere.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) lost_limit: Duration,
}

impl Default for AskSettings {
    fn default() -> Self {
        let (accept_limit, grace) = (Duration::from_secs(30), Duration::from_secs(30));
        Self { accept_limit, grace, lost_limit: Duration::from_secs(10) }
    }
}

/// Limits of runs whose goal names none: [`RunLimits`] as people write them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitSettings {
    /// Most children of one task in a plan.
    pub(crate) max_width: u16,
    /// Most levels of a plan.
    pub(crate) max_depth: u16,
    /// Most tasks in a plan.
    pub(crate) max_tasks: u16,
    /// Most steps of one task: thought, action, observation.
    pub(crate) max_steps: u32,
    /// Offers of one task before it counts as failed.
    pub(crate) max_generations: u32,
    /// Agents that may die one after the other of one task, without a step between them, before it is given to nobody
    /// any more; 0 for any number.
    pub(crate) max_deaths: u32,
    /// How long an offer may lie where it could be started before it goes to another agent. Doubles with each offer of a
    /// task that goes to whoever is free.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) start_within: Duration,
    /// How long whoever has a task may write nothing about it before it goes to another agent; 0s for as long as the
    /// task's time lasts. Doubles with each try. Muster's own agents, whose calls have limits, ask for as long as
    /// these take.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) silence: Duration,
    /// Most refinements of a plan.
    pub(crate) max_refinements: u32,
    /// Most operations in one refinement.
    pub(crate) max_refine_operations: u32,
    /// Whether a refinement may split failed leaves only, instead of current and future ones as well.
    pub(crate) split_failed_only: bool,
    /// Whether a refinement ends with the first operation that is carried out.
    pub(crate) refine_once: bool,
    /// Which leaves are reflected on, and how thoroughly: none, brief, full, after-failure or when-spinning.
    pub(crate) reflection: ReflectionLevel,
    /// What becomes of results that were made from one that has changed since: redo, or mark in the report.
    pub(crate) when_stale: WhenStale,
    /// Time for one task.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) task_deadline: Duration,
    /// Time for a run whose goal names none.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) run_deadline: Duration,
    /// Time for making the plan; 0s for none but the run's.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) planning_deadline: Duration,
    /// Time for carrying the plan out; after that the report is written with what there is. 0s for none but the run's.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) executing_deadline: Duration,
    /// Time for writing the report; 0s for none but the run's.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) writing_deadline: Duration,
    /// The part of a run's time that is kept for writing, in percent.
    pub(crate) writing_reserve: u8,
    /// The most that a whole run may use.
    pub(crate) budget: BudgetSettings,
    /// The most that one task may use.
    pub(crate) task_budget: BudgetSettings,
    /// Model calls of a run, answered or not, after which nothing more is begun and the report is written from what there
    /// is; 0 for any number. More than any run needs in which all is well.
    pub(crate) max_calls: u64,
    /// How deep runs may stand within runs; 0 for none.
    pub(crate) max_nesting: u32,
    /// What people have a say in.
    pub(crate) people: PeopleSettings,
    /// How much tasks may ask of each other.
    pub(crate) peers: PeerSettings,
    /// How auctions of tasks are held.
    pub(crate) auction: AuctionSettings,
    /// How much tasks may know in common.
    pub(crate) context: ContextLimits,
    /// What is done when something goes wrong.
    pub(crate) responses: ResponseSettings,
    /// Whether a planner is asked: auto (unless the goal is small), always, or never.
    pub(crate) planning: Planning,
    /// Whether a plan is improved from lessons of earlier runs before it is carried out.
    pub(crate) iterate_plans: bool,
    /// Most times that what is left of a run is planned anew.
    pub(crate) max_replans: u32,
    /// Tasks that may fail one after the other before what is left is planned anew; 0 for any number.
    pub(crate) replan_after_failures: u32,
    /// Tries of one task that may fail before what is left is planned anew; 0 for any number.
    pub(crate) replan_after_tries: u32,
    /// What is left is planned anew when a task is less sure of what it found than this, in percent; 0 for never.
    pub(crate) replan_below_confidence: u8,
    /// Most milestones of one task; one with more counts as too large and is split.
    pub(crate) max_milestones: u16,
    /// How large the tasks of a plan are to be: coarse, normal or fine.
    pub(crate) granularity: Granularity,
    /// How tasks are given out that say nothing of it: hierarchical, auction, committee:3 or redundant:2.
    pub(crate) pattern: Pattern,
    /// The same for critical tasks; as for all others when not set.
    pub(crate) pattern_critical: Option<Pattern>,
    /// Who sits in a committee and how it comes to a verdict.
    pub(crate) committee: CommitteeSettings,
    /// What is done about results that contradict each other.
    pub(crate) conflicts: ConflictSettings,
    /// Whether a reviewer reads the draft of the report before it is delivered: off or on.
    pub(crate) draft_review: DraftReviewPolicy,
    /// Most times that the report is written again upon what a reviewer says, up to 5.
    pub(crate) draft_rounds: u8,
    /// How long tasks wait for a specialist that nobody is, before they fail; 0s refuses plans that name one.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) wait_for_role: Duration,
}

/// A budget as people write it. What is not set is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct BudgetSettings {
    /// Most model calls, answered or not.
    pub(crate) model_calls: Option<u64>,
    /// Most tokens, sent and answered together.
    pub(crate) tokens: Option<u64>,
    /// Most that it may cost, in US dollars.
    pub(crate) cost: Option<Dollars>,
    /// Most steps: thought, action, observation.
    pub(crate) steps: Option<u64>,
}

impl From<&BudgetSettings> for Budget {
    fn from(budget: &BudgetSettings) -> Self {
        Self {
            model_calls: budget.model_calls,
            tokens: budget.tokens,
            cost_micros: budget.cost.map(Dollars::micros),
            steps: budget.steps,
        }
    }
}

impl From<&Budget> for BudgetSettings {
    fn from(budget: &Budget) -> Self {
        Self {
            model_calls: budget.model_calls,
            tokens: budget.tokens,
            cost: budget.cost_micros.map(Dollars::from_micros),
            steps: budget.steps,
        }
    }
}

/// An amount of US dollars, 0 or more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
#[schemars(with = "f64")]
pub(crate) struct Dollars(f64);

impl Dollars {
    /// In millionths.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked when it was made: not negative, and a float cast saturates"
    )]
    pub(crate) const fn micros(self) -> u64 {
        (self.0 * 1_000_000.0).round() as u64
    }

    #[expect(clippy::cast_precision_loss, reason = "for showing defaults only")]
    const fn from_micros(micros: u64) -> Self {
        Self(micros as f64 / 1_000_000.0)
    }
}

impl TryFrom<f64> for Dollars {
    type Error = String;

    fn try_from(dollars: f64) -> Result<Self, String> {
        if dollars.is_finite() && dollars >= 0.0 {
            Ok(Self(dollars))
        } else {
            Err(format!("{dollars} is no amount of US dollars: write 1.50"))
        }
    }
}

impl std::str::FromStr for Dollars {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no amount of US dollars: write 1.50");
        text.trim().trim_start_matches('$').parse::<f64>().map_err(|_| wrong())?.try_into()
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        let RunLimits {
            max_width,
            max_depth,
            max_tasks,
            max_steps,
            max_generations,
            max_deaths,
            start_within_ms,
            silence_ms,
            max_refinements,
            max_refine_operations,
            split_failed_only,
            refine_once,
            reflection,
            when_stale,
            task_deadline_ms,
            run_deadline_ms,
            planning_deadline_ms,
            executing_deadline_ms,
            writing_deadline_ms,
            writing_reserve_percent,
            budget,
            task_budget,
            max_calls,
            max_nesting,
            people,
            peers,
            auction,
            context,
            responses,
            planning,
            iterate_plans,
            max_replans,
            replan_after_failures,
            replan_after_tries,
            replan_below_confidence,
            max_milestones,
            granularity,
            committee,
            conflicts,
            pattern,
            pattern_critical,
            draft_review,
            draft_rounds,
            wait_for_role_ms,
        } = RunLimits::default();
        Self {
            max_width,
            max_depth,
            max_tasks,
            max_steps,
            max_generations,
            max_deaths,
            start_within: Duration::from_millis(start_within_ms),
            silence: Duration::from_millis(silence_ms),
            max_refinements,
            max_refine_operations,
            split_failed_only,
            refine_once,
            reflection,
            when_stale,
            task_deadline: Duration::from_millis(task_deadline_ms),
            run_deadline: Duration::from_millis(run_deadline_ms),
            planning_deadline: Duration::from_millis(planning_deadline_ms.unwrap_or(0)),
            executing_deadline: Duration::from_millis(executing_deadline_ms.unwrap_or(0)),
            writing_deadline: Duration::from_millis(writing_deadline_ms.unwrap_or(0)),
            writing_reserve: writing_reserve_percent,
            budget: BudgetSettings::from(&budget),
            task_budget: BudgetSettings::from(&task_budget),
            max_calls,
            max_nesting,
            people: PeopleSettings::from(&people),
            peers: PeerSettings::from(&peers),
            auction: AuctionSettings::from(&auction),
            context,
            responses: ResponseSettings::from(&responses),
            planning,
            iterate_plans,
            max_replans,
            replan_after_failures,
            replan_after_tries,
            replan_below_confidence,
            max_milestones,
            granularity,
            pattern,
            pattern_critical,
            committee: CommitteeSettings::from(&committee),
            conflicts: ConflictSettings::from(&conflicts),
            draft_review,
            draft_rounds,
            wait_for_role: Duration::from_millis(wait_for_role_ms),
        }
    }
}

impl From<&LimitSettings> for RunLimits {
    fn from(limits: &LimitSettings) -> Self {
        Self {
            max_width: limits.max_width,
            max_depth: limits.max_depth,
            max_tasks: limits.max_tasks,
            max_steps: limits.max_steps,
            max_generations: limits.max_generations,
            max_deaths: limits.max_deaths,
            start_within_ms: millis(limits.start_within),
            silence_ms: millis(limits.silence),
            max_refinements: limits.max_refinements,
            max_refine_operations: limits.max_refine_operations,
            split_failed_only: limits.split_failed_only,
            refine_once: limits.refine_once,
            reflection: limits.reflection,
            when_stale: limits.when_stale,
            task_deadline_ms: millis(limits.task_deadline),
            run_deadline_ms: millis(limits.run_deadline),
            planning_deadline_ms: of_its_own(limits.planning_deadline),
            executing_deadline_ms: of_its_own(limits.executing_deadline),
            writing_deadline_ms: of_its_own(limits.writing_deadline),
            writing_reserve_percent: limits.writing_reserve,
            budget: Budget::from(&limits.budget),
            task_budget: Budget::from(&limits.task_budget),
            max_calls: limits.max_calls,
            max_nesting: limits.max_nesting,
            people: People::from(&limits.people),
            peers: Peers::from(&limits.peers),
            auction: AuctionRules::from(&limits.auction),
            context: limits.context.clone(),
            responses: Responses::from(&limits.responses),
            planning: limits.planning,
            iterate_plans: limits.iterate_plans,
            max_replans: limits.max_replans,
            replan_after_failures: limits.replan_after_failures,
            replan_after_tries: limits.replan_after_tries,
            replan_below_confidence: limits.replan_below_confidence,
            max_milestones: limits.max_milestones,
            granularity: limits.granularity,
            pattern: limits.pattern,
            pattern_critical: limits.pattern_critical,
            committee: Committees::from(&limits.committee),
            conflicts: Conflicts::from(&limits.conflicts),
            draft_review: limits.draft_review,
            draft_rounds: limits.draft_rounds,
            wait_for_role_ms: millis(limits.wait_for_role),
        }
    }
}

/// A span that is only there when it is more than nothing.
fn of_its_own(span: Duration) -> Option<u64> {
    Some(millis(span)).filter(|span| *span > 0)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_runs() {
        assert_eq!(RunLimits::from(&LimitSettings::default()), RunLimits::default());
    }
}
