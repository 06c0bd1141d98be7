//! What events tell besides: evidence, what stopped a run, plans that failed.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::AgentId;

/// Why a task is in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Evidence {
    /// The agents that died of it, in order.
    pub agents: Vec<AgentId>,
    /// The last step in the record; 0 when there is none.
    pub last_step: u32,
    /// In words.
    pub reason: String,
}

/// What stopped a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Somebody cancelled it.
    Cancelled,
    /// Its deadline passed.
    DeadlinePassed,
    /// Its budget was used up.
    BudgetExhausted,
    /// There was too much to do: it was not taken up at all.
    Refused,
}

/// A plan that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct FailedPlan {
    /// Its tasks, one line each, with how they ended.
    pub tasks: Vec<String>,
    /// Why it failed.
    pub reasons: Vec<String>,
}
