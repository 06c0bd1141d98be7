//! What people have a say in while a run goes on.

use serde::{Deserialize, Serialize};

use super::limits::LONGEST_RUN_MS;
use super::question::OnTimeout;
use crate::settings;

settings! {
    /// When people are asked, for how long an answer is waited for, and what follows when none comes. Part of a run's
    /// limits.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub const struct People {
        /// Whether a person looks at the plan before it is carried out: auto (nobody does), ask, or ask-if-risky.
        pub review: ReviewPolicy = ReviewPolicy::Auto => words::<ReviewPolicy>(),
        /// Whether a person is asked what an ambiguous goal means; else the planner goes on with what it assumes.
        pub ask_about_goal: bool = false => flag(),
        /// Time for an answer.
        pub answer_within_ms: u64 = 30 * 60 * 1000 => span(1, LONGEST_RUN_MS),
        /// What follows when nobody answers in time: proceed with the default, abort, or ask-another person.
        pub on_timeout: OnTimeout = OnTimeout::Proceed => words::<OnTimeout>(),
        /// Whom to ask, one after the other; whoever looks after the run when empty. Where somebody is named or reviews
        /// plans, a task that its agent cannot go on with (it went in circles, every model declined) waits for a
        /// person's word instead of ending.
        pub ask: Vec<String> = Vec::new() => list().example("[\"ann\", \"ben\"]"),
        /// Milestones after which a person says whether to go on: indices or names of tasks.
        pub pause_at: Vec<String> = Vec::new() => list().example("[\"1-2\"]"),
        /// Whether a person says how to go on when a critical task failed for good.
        pub pause_on_failure: bool = false => flag(),
        /// A person says whether to go on with a result whose agent is less sure of it than this, in percent; 0 for
        /// never.
        pub pause_below_confidence: u8 = 0 => percent(100),
        /// Who may approve, reject and answer; everybody when empty. Names as in their credentials (`muster keys issue
        /// person:NAME`); `operator` is whoever runs the fleet.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub approve_by: Vec<String> = Vec::new() => list().example("[\"ann\", \"ben\"]"),
        /// How many different people must approve before something goes on. One who approves twice counts once.
        #[serde(skip_serializing_if = "is_one")]
        pub approvals: u8 = 1 => whole(1, 5),
        // Each is part of the run's state.
        /// Most questions of one run; further ones are answered at once with their default.
        pub max_questions: u32 = 50 => whole(0, 500),
        /// How many times a task that was handed over may be handed over again.
        pub max_delegations: u32 = 2 => whole(0, 20),
    }
}

impl People {
    /// Whether somebody can be asked besides whoever an agent asks by itself: a person reviews plans, or is named.
    #[must_use]
    pub fn are_there(&self) -> bool {
        self.review != ReviewPolicy::Auto || !self.ask.is_empty()
    }

    /// Whether not everybody may approve, or one is not enough: then nothing is approved because nobody answered.
    #[must_use]
    pub fn has_policy(&self) -> bool {
        self.approvals > 1 || !self.approve_by.is_empty()
    }

    /// Whether somebody may approve, reject and answer.
    #[must_use]
    pub fn may_approve(&self, name: &str) -> bool {
        self.approve_by.is_empty() || self.approve_by.iter().any(|one| one == name)
    }

    /// Whether nothing was said about people.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::USUAL
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_one(count: &u8) -> bool {
    *count == 1
}

/// Whether a person looks at the plan before it is carried out (R1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewPolicy {
    /// It is carried out at once.
    #[default]
    Auto,
    /// It waits for a person.
    Ask,
    /// It waits for a person when something in it is risky.
    AskIfRisky,
}
