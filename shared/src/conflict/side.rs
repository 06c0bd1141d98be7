//! One side of a conflict: a claim, and whose it is.

use serde::{Deserialize, Serialize};

use crate::flow::Claim;
use crate::ids::{AgentId, Generation, Role, TaskIndex};

/// A claim, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Side {
    /// The task, or the member of a committee.
    pub task: TaskIndex,
    /// The generation of it that made the claim.
    #[serde(default)]
    pub generation: Generation,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The role of whoever did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// What is claimed.
    pub claim: Claim,
}

impl Side {
    /// A claim of a task, by nobody in particular.
    #[must_use]
    pub const fn new(task: TaskIndex, claim: Claim) -> Self {
        Self { task, generation: Generation(0), agent: None, role: None, claim }
    }
}

/// `1-2: 30 %`.
impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.task, self.claim.value)
    }
}
