//! Settings of an orchestrator.

use std::time::Duration;

use muster_shared::flow::guard::joined;
use muster_shared::flow::limits::LONGEST_RUN_MS;
use muster_shared::flow::{Goal, RunLimits};
use muster_shared::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// How an orchestrator works, and its limits.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct OrchestratorSettings {
        /// Most runs at once; goals above it wait in the queue of commands.
        pub max_runs: usize = 64 => whole(1, 100_000),
        /// Most goals that wait while too many runs are going on; more are refused at once.
        pub max_waiting: usize = 256 => whole(0, 1_000_000),
        /// How long a goal is put back in the queue, a second at a time, before it is refused because too many runs
        /// are going on.
        #[serde(with = "muster_shared::span")]
        pub patience: Duration = Duration::from_secs(60) => span(0, DAY),
        /// Limits of a run whose goal names none. Not a setting of its own: the section `limits` is copied here.
        #[serde(skip)]
        pub limits: RunLimits = RunLimits::default() => internal(),
        /// Most lessons of earlier runs with a like goal that a new run is given; 0 for none.
        pub lessons: usize = 5 => whole(0, 100),
        /// Most inputs that are put off to be decided together. Not a setting: it only bounds how much one decision reads,
        /// and no fleet sends as much in the moment that it is put off for.
        #[serde(skip)]
        pub max_deferred: usize = 256 => internal(),
        /// After how many entries of its record the state of a run is kept aside, so that whoever takes it over need not
        /// fold all of them; 0 for never.
        pub snapshot_every: u32 = 200 => whole(0, 1_000_000),
        /// How often in a row a run may decide though nothing new came and nothing came of it, before it is set aside for
        /// `pause_in_vain`: a fault of one run must not keep the others waiting. What comes in for it, and its
        /// deadlines, are looked at all the same.
        pub max_turns_in_vain: u32 = 100 => whole(1, 1_000_000),
        /// How long such a run is set aside the first time. Twice as long every further time, at most 64 times as long.
        #[serde(with = "muster_shared::span")]
        pub pause_in_vain: Duration = Duration::from_secs(1) => span(1, HOUR),
        /// The domains whose runs this orchestrator sees to (`muster run --domain NAME`, the action `plan`); it leaves others
        /// to orchestrators of no domain, as long as there are some.
        pub domains: Vec<String> = Vec::new() => list(),
    }
}

impl OrchestratorSettings {
    /// The limits of a run: those its goal names, else these, none above what any run may have.
    #[must_use]
    pub fn limits_for(&self, goal: &Goal) -> RunLimits {
        let usual = goal.limits.as_ref().unwrap_or(&self.limits);
        // A goal whose limits cannot be read is refused: those of its refusal do not matter.
        let mut limits = usual.with(&goal.set_limits).unwrap_or_else(|_| usual.clone());
        limits.people.review = goal.review.unwrap_or(limits.people.review);
        limits.planning = goal.planning.unwrap_or(limits.planning);
        limits.draft_review = goal.draft_review.unwrap_or(limits.draft_review);
        limits.wait_for_role_ms = goal.wait_for_role_ms.unwrap_or(limits.wait_for_role_ms);
        limits.budget = goal.budget.or(&limits.budget);
        if limits.budget.model_calls.is_some() {
            // A budget that names a number of calls holds instead.
            limits.max_calls = 0;
        }
        // What a goal says adds guards and takes none away; a part of a run has those of the whole.
        limits.guards = joined(&self.limits.guards, &joined(&usual.guards, &limits.guards));
        // Nor does it give itself more rights than the fleet gives.
        let rights = self.limits.rights.narrowed_by(&usual.rights).narrowed_by(&limits.rights);
        limits.rights = Box::new(rights);
        limits.within_bounds()
    }

    /// The longest deadline that a goal may name, in milliseconds.
    #[must_use]
    pub const fn longest_deadline_ms() -> u64 {
        LONGEST_RUN_MS
    }
}
