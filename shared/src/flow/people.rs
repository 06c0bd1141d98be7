//! What people have a say in while a run goes on.

use serde::{Deserialize, Serialize};

use super::question::OnTimeout;

/// When people are asked, for how long an answer is waited for, and what follows when none comes. Part of a run's
/// limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct People {
    /// Whether a person looks at the plan before it is carried out.
    pub review: ReviewPolicy,
    /// Whether a person is asked what an ambiguous goal means. Else the planner goes on with what it assumes.
    pub ask_about_goal: bool,
    /// Time for an answer, in milliseconds.
    pub answer_within_ms: u64,
    /// What follows when nobody answers in time.
    pub on_timeout: OnTimeout,
    /// Whom to ask, one after the other; whoever looks after the run when empty.
    pub ask: Vec<String>,
    /// Milestones after which a person says whether to go on: indices or names of tasks.
    pub pause_at: Vec<String>,
    /// Whether a person says how to go on when a critical task failed for good.
    pub pause_on_failure: bool,
    /// A person says whether to go on with a result whose agent is less sure of it than this, in percent; 0 for never.
    pub pause_below_confidence: u8,
    /// Most questions of one run; further ones are answered at once with their default.
    pub max_questions: u32,
    /// How many times a task that was handed over may be handed over again.
    pub max_delegations: u32,
}

impl Default for People {
    fn default() -> Self {
        Self::USUAL
    }
}

impl People {
    /// What holds when nothing was said.
    pub const USUAL: Self = Self {
        review: ReviewPolicy::Auto,
        ask_about_goal: false,
        answer_within_ms: 30 * 60 * 1000,
        on_timeout: OnTimeout::Proceed,
        ask: Vec::new(),
        pause_at: Vec::new(),
        pause_on_failure: false,
        pause_below_confidence: 0,
        max_questions: 50,
        max_delegations: 2,
    };

    /// Whether somebody can be asked besides whoever an agent asks by itself: a person reviews plans, or is named.
    #[must_use]
    pub fn are_there(&self) -> bool {
        self.review != ReviewPolicy::Auto || !self.ask.is_empty()
    }

    /// Whether nothing was said about people.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::USUAL
    }
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
