//! Changes of plan (P4).

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::TaskDraft;
use crate::ids::TaskIndex;

/// One change of plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum RefineOperation {
    /// Replace a failed, current or future leaf by 2 to 4 smaller ones below it.
    Split {
        /// The leaf.
        task: TaskIndex,
        /// What it becomes.
        into: Vec<TaskDraft>,
    },
    /// Add siblings after a current or future task, or after the last one that ended.
    Add {
        /// The task after which they come.
        after: TaskIndex,
        /// The new tasks.
        tasks: Vec<TaskDraft>,
    },
    /// Take out a task that has not started.
    Delete {
        /// The task.
        task: TaskIndex,
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Leave the plan as it is.
    Exit {
        /// Why.
        #[serde(default)]
        reason: String,
    },
}

impl RefineOperation {
    /// `split 1-2`, `add after 3`, `delete 4`, `exit`.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Split { task, .. } => format!("split {task}"),
            Self::Add { after, .. } => format!("add after {after}"),
            Self::Delete { task, .. } => format!("delete {task}"),
            Self::Exit { .. } => "exit".to_owned(),
        }
    }
}

/// An operation that was refused, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RefusedOperation {
    /// What was wanted.
    pub operation: RefineOperation,
    /// Why not.
    pub reason: String,
}
