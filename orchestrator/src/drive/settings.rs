//! Settings of an orchestrator.

use std::time::Duration;

use muster_shared::flow::{
    AuctionRules, Budget, Committees, Conflicts, ContextLimits, DraftReviewPolicy, Goal, Granularity,
    Pattern, Peers, People, Planning, ReflectionLevel, Responses, RunLimits, WhenStale,
};
use serde::{Deserialize, Serialize};

/// How an orchestrator works, and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OrchestratorSettings {
    /// Most runs at once; goals above it wait in the queue of commands.
    pub max_runs: usize,
    /// Most goals that wait while too many runs are going on; more are refused at once.
    pub max_waiting: usize,
    /// How long a goal is put back in the queue, a second at a time, before it is refused because too many runs
    /// are going on.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub patience: Duration,
    /// Limits of a run whose goal names none. Not a setting of its own: the section `limits` is copied here.
    #[serde(skip)]
    pub limits: RunLimits,
    /// Most lessons of earlier runs with a like goal that a new run is given; 0 for none.
    pub lessons: usize,
    /// How full the record may be, in percent, before new goals are refused.
    pub record_percent: u8,
    /// How many of the newest runs are looked through at the start for unfinished ones.
    pub scan_runs: usize,
    /// Most inputs that are put off to be decided together.
    pub max_deferred: usize,
    /// After how many entries of its record the state of a run is kept aside, so that whoever takes it over need not
    /// fold all of them; 0 for never.
    pub snapshot_every: u32,
    /// How often in a row a run may decide though nothing new came and nothing came of it, before it is set aside for
    /// [`Self::pause_in_vain`]: a fault of one run must not keep the others waiting. What comes in for it, and its
    /// deadlines, are looked at all the same.
    pub max_turns_in_vain: u32,
    /// How long such a run is set aside the first time. Twice as long every further time, at most 64 times as long.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub pause_in_vain: Duration,
    /// The domains whose runs this orchestrator sees to (`muster run --domain NAME`, the action `plan`); it leaves others
    /// to orchestrators of no domain, as long as there are some.
    pub domains: Vec<String>,
}

impl Default for OrchestratorSettings {
    fn default() -> Self {
        Self {
            max_runs: 64,
            max_waiting: 256,
            patience: Duration::from_secs(60),
            limits: RunLimits::default(),
            lessons: 5,
            record_percent: 80,
            scan_runs: 500,
            max_deferred: 256,
            snapshot_every: 200,
            max_turns_in_vain: 100,
            pause_in_vain: Duration::from_secs(1),
            domains: Vec::new(),
        }
    }
}

/// The longest deadline of a run, in milliseconds.
const LONGEST_RUN_MS: u64 = 30 * 24 * 3600 * 1000;

/// Most questions of one run: each is part of its state.
const MOST_QUESTIONS: u32 = 500;

/// Most failures that a run may say it can have; 0 is for any number.
const MOST_FAILURES: u32 = 10_000;

fn first(all: &[String], most: usize) -> Vec<String> {
    all.iter().take(most).cloned().collect()
}
/// Most conflicts of one run that are settled: each is part of its state.
const MOST_CONFLICTS: u32 = 200;

/// Nobody gains from more than this; each keeps one run from taking more than its share of the fleet.
const CEILING: RunLimits = RunLimits {
    max_width: 50,
    max_depth: 20,
    max_tasks: 500,
    max_steps: 1000,
    max_generations: 10,
    max_deaths: 10,
    start_within_ms: LONGEST_RUN_MS,
    silence_ms: LONGEST_RUN_MS,
    max_refinements: 20,
    max_refine_operations: 20,
    split_failed_only: false,
    refine_once: false,
    reflection: ReflectionLevel::Full,
    when_stale: WhenStale::Redo,
    task_deadline_ms: 7 * 24 * 3600 * 1000,
    run_deadline_ms: LONGEST_RUN_MS,
    planning_deadline_ms: None,
    executing_deadline_ms: None,
    writing_deadline_ms: None,
    writing_reserve_percent: 90,
    budget: Budget::UNLIMITED,
    task_budget: Budget::UNLIMITED,
    max_calls: u64::MAX,
    max_nesting: 10,
    people: People::USUAL,
    context: ContextLimits { max_entries: 2_000, max_bytes: 64 * 1024 },
    peers: Peers { max_requests: 1_000, max_bytes: 64 * 1024, help_within_ms: LONGEST_RUN_MS },
    auction: AuctionRules { window_ms: 60_000, max_bids: 1_000, time_weight: 100, overrun: 1_000 },
    responses: Responses::USUAL,
    planning: Planning::Auto,
    iterate_plans: true,
    max_replans: 20,
    replan_after_failures: 1_000,
    replan_after_tries: 100,
    replan_below_confidence: 100,
    max_milestones: 16,
    granularity: Granularity::Normal,
    pattern: Pattern::Hierarchical,
    pattern_critical: None,
    committee: Committees::USUAL,
    conflicts: Conflicts::TOLD,
    draft_review: DraftReviewPolicy::Off,
    draft_rounds: DraftReviewPolicy::MOST_ROUNDS,
    wait_for_role_ms: LONGEST_RUN_MS,
};

/// Below this, offers would be made again while they are being taken.
const LEAST_START_MS: u64 = 1_000;

/// Nothing, or long enough for what is being written.
const fn silence(wanted_ms: u64) -> u64 {
    match wanted_ms {
        0 => 0,
        1..1_000 => 1_000,
        LONGEST_RUN_MS.. => LONGEST_RUN_MS,
        between => between,
    }
}

/// No more models than a committee has members.
fn committee(wanted: &Committees) -> Committees {
    let models = wanted.models.iter().take(usize::from(Pattern::MOST_MEMBERS)).cloned().collect();
    let wait_ms = wanted.wait_ms.map(|wait| wait.clamp(1, LONGEST_RUN_MS));
    Committees { models, wait_ms, ..wanted.clone() }
}

impl OrchestratorSettings {
    /// The limits of a run: those its goal names, else these, none above what any run may have.
    #[must_use]
    pub fn limits_for(&self, goal: &Goal) -> RunLimits {
        let usual = goal.limits.as_ref().unwrap_or(&self.limits);
        // A goal whose limits cannot be read is refused: those of its refusal do not matter.
        let wanted = usual.with(&goal.set_limits).unwrap_or_else(|_| usual.clone());
        RunLimits {
            max_width: wanted.max_width.clamp(1, CEILING.max_width),
            max_depth: wanted.max_depth.clamp(1, CEILING.max_depth),
            max_tasks: wanted.max_tasks.clamp(1, CEILING.max_tasks),
            max_steps: wanted.max_steps.clamp(1, CEILING.max_steps),
            max_generations: wanted.max_generations.clamp(1, CEILING.max_generations),
            max_deaths: wanted.max_deaths.min(CEILING.max_deaths),
            start_within_ms: wanted.start_within_ms.clamp(LEAST_START_MS, CEILING.start_within_ms),
            silence_ms: silence(wanted.silence_ms),
            max_refinements: wanted.max_refinements.min(CEILING.max_refinements),
            max_refine_operations: wanted.max_refine_operations.clamp(1, CEILING.max_refine_operations),
            split_failed_only: wanted.split_failed_only,
            refine_once: wanted.refine_once,
            reflection: wanted.reflection,
            when_stale: wanted.when_stale,
            task_deadline_ms: wanted.task_deadline_ms.clamp(1, CEILING.task_deadline_ms),
            run_deadline_ms: wanted.run_deadline_ms.clamp(1, CEILING.run_deadline_ms),
            planning_deadline_ms: wanted.planning_deadline_ms,
            executing_deadline_ms: wanted.executing_deadline_ms,
            writing_deadline_ms: wanted.writing_deadline_ms,
            writing_reserve_percent: wanted.writing_reserve_percent.min(CEILING.writing_reserve_percent),
            budget: goal.budget.or(&wanted.budget),
            task_budget: wanted.task_budget,
            // A budget that names a number of calls holds instead.
            max_calls: if goal.budget.or(&wanted.budget).model_calls.is_some() {
                0
            } else {
                wanted.max_calls
            },
            max_nesting: wanted.max_nesting.min(CEILING.max_nesting),
            people: People {
                review: goal.review.unwrap_or(wanted.people.review),
                answer_within_ms: wanted.people.answer_within_ms.clamp(1, LONGEST_RUN_MS),
                max_questions: wanted.people.max_questions.min(MOST_QUESTIONS),
                max_delegations: wanted.people.max_delegations.min(u32::from(CEILING.max_depth)),
                ..wanted.people.clone()
            },
            context: ContextLimits {
                max_entries: wanted.context.max_entries.min(CEILING.context.max_entries),
                max_bytes: wanted.context.max_bytes.min(CEILING.context.max_bytes),
            },
            peers: Peers {
                max_requests: wanted.peers.max_requests.min(CEILING.peers.max_requests),
                max_bytes: wanted.peers.max_bytes.min(CEILING.peers.max_bytes),
                help_within_ms: wanted.peers.help_within_ms.clamp(1, CEILING.peers.help_within_ms),
            },
            auction: AuctionRules {
                window_ms: wanted.auction.window_ms.clamp(1, CEILING.auction.window_ms),
                max_bids: wanted.auction.max_bids.clamp(1, CEILING.auction.max_bids),
                time_weight: wanted.auction.time_weight.min(CEILING.auction.time_weight),
                overrun: wanted.auction.overrun.min(CEILING.auction.overrun),
            },
            responses: Responses {
                stronger_models: first(&wanted.responses.stronger_models, Responses::MOST_MODELS),
                error_budget: wanted.responses.error_budget.min(MOST_FAILURES),
                blocked_after_ms: wanted.responses.blocked_after_ms.min(LONGEST_RUN_MS),
                ..wanted.responses.clone()
            },
            planning: goal.planning.unwrap_or(wanted.planning),
            iterate_plans: wanted.iterate_plans,
            max_replans: wanted.max_replans.min(CEILING.max_replans),
            replan_after_failures: wanted.replan_after_failures.min(CEILING.replan_after_failures),
            replan_after_tries: wanted.replan_after_tries.min(CEILING.replan_after_tries),
            replan_below_confidence: wanted.replan_below_confidence.min(CEILING.replan_below_confidence),
            max_milestones: wanted.max_milestones.clamp(1, CEILING.max_milestones),
            granularity: wanted.granularity,
            pattern: wanted.pattern,
            pattern_critical: wanted.pattern_critical,
            committee: committee(&wanted.committee),
            conflicts: Conflicts {
                tolerance_percent: wanted.conflicts.tolerance_percent.min(100),
                max_redos: wanted.conflicts.max_redos.min(CEILING.max_generations),
                max_conflicts: wanted.conflicts.max_conflicts.min(MOST_CONFLICTS),
                settle_within_ms: wanted.conflicts.settle_within_ms.clamp(1, LONGEST_RUN_MS),
                ..wanted.conflicts.clone()
            },
            draft_review: goal.draft_review.unwrap_or(wanted.draft_review),
            draft_rounds: wanted.draft_rounds.min(CEILING.draft_rounds),
            wait_for_role_ms: goal.wait_for_role_ms.unwrap_or(wanted.wait_for_role_ms).min(LONGEST_RUN_MS),
        }
    }

    /// The longest deadline that a goal may name, in milliseconds.
    #[must_use]
    pub const fn longest_deadline_ms() -> u64 {
        LONGEST_RUN_MS
    }
}
