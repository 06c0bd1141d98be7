//! One side of a conflict: a claim, and whose it is.

use serde::{Deserialize, Serialize};

use crate::flow::{Citation, Claim};
use crate::ids::{AgentId, Generation, Role, TaskIndex};

/// A claim, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Side {
    /// The task, or the member of a committee.
    pub task: TaskIndex,
    /// The generation of it that made the claim.
    #[serde(default)]
    pub generation: Generation,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The role of whoever did it.
    #[serde(skip_serializing_if = "Option::is_none")]
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

    /// The claim with how sure its author is, on what evidence and by which method.
    #[must_use]
    pub fn in_full(&self) -> String {
        let sure = match self.claim.confidence {
            0 => String::new(),
            percent => format!(", {percent} % sure"),
        };
        let method =
            if self.claim.method.is_empty() { String::new() } else { format!(" ({})", self.claim.method) };
        format!("{self}{sure}{}{method}", Citation::places(&self.claim.evidence))
    }
}

/// `1-2: 30 %`.
impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.task, self.claim.value)
    }
}
