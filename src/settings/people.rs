//! What people have a say in, as people write it.

use std::time::Duration;

use muster_shared::flow::{OnTimeout, People, ReviewPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When people are asked, for how long an answer is waited for, and what follows when none comes: [`People`] as people
/// write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PeopleSettings {
    /// Whether a person looks at the plan before it is carried out: auto (nobody does), ask, or ask-if-risky.
    pub(crate) review: ReviewPolicy,
    /// Whether a person is asked what an ambiguous goal means; else the planner goes on with what it assumes.
    pub(crate) ask_about_goal: bool,
    /// Time for an answer.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) answer_within: Duration,
    /// What follows when nobody answers in time: proceed with the default, abort, or ask-another person.
    pub(crate) on_timeout: OnTimeout,
    /// Whom to ask, one after the other.
    pub(crate) ask: Vec<String>,
    /// Milestones after which a person says whether to go on: indices or names of tasks.
    pub(crate) pause_at: Vec<String>,
    /// Whether a person says how to go on when a critical task failed for good.
    pub(crate) pause_on_failure: bool,
    /// A person says whether to go on with a result whose agent is less sure of it than this, in percent; 0 for never.
    pub(crate) pause_below_confidence: u8,
    /// Most questions of one run; further ones are answered at once with their default.
    pub(crate) max_questions: u32,
    /// How many times a task that was handed over may be handed over again.
    pub(crate) max_delegations: u32,
}

impl Default for PeopleSettings {
    fn default() -> Self {
        Self::from(&People::USUAL)
    }
}

impl From<&People> for PeopleSettings {
    fn from(people: &People) -> Self {
        let People {
            review,
            ask_about_goal,
            answer_within_ms,
            on_timeout,
            ask,
            pause_at,
            pause_on_failure,
            pause_below_confidence,
            max_questions,
            max_delegations,
        } = people.clone();
        Self {
            review,
            ask_about_goal,
            answer_within: Duration::from_millis(answer_within_ms),
            on_timeout,
            ask,
            pause_at,
            pause_on_failure,
            pause_below_confidence,
            max_questions,
            max_delegations,
        }
    }
}

impl From<&PeopleSettings> for People {
    fn from(settings: &PeopleSettings) -> Self {
        let PeopleSettings {
            review,
            ask_about_goal,
            answer_within,
            on_timeout,
            ask,
            pause_at,
            pause_on_failure,
            pause_below_confidence,
            max_questions,
            max_delegations,
        } = settings.clone();
        Self {
            review,
            ask_about_goal,
            answer_within_ms: u64::try_from(answer_within.as_millis()).unwrap_or(u64::MAX),
            on_timeout,
            ask,
            pause_at,
            pause_on_failure,
            pause_below_confidence,
            max_questions,
            max_delegations,
        }
    }
}
