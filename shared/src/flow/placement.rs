//! To whom a task goes, and why.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, Queue, TaskId};

/// To whom a task goes. Stands in the decision that offered it, where it made a difference: a replay is told, and does
/// not look at the fleet again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Placement {
    /// The task.
    pub task: TaskId,
    /// Where its offer goes.
    pub to: Queue,
    /// Why there, in a few words each, the weightiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Who else could have been asked, and why they were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
}

impl Placement {
    /// Most agents of which it is said why they were passed over.
    pub const MOST_PASSED_OVER: usize = 6;

    /// The same without its reasons.
    #[must_use]
    pub fn bare(self) -> Self {
        Self { reasons: Vec::new(), passed_over: Vec::new(), ..self }
    }
}

/// An agent that a task does not go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PassedOver {
    /// The agent.
    pub agent: AgentId,
    /// Why.
    pub reason: String,
}
