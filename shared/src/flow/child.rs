//! Runs that belong to a task of another run (R6).

use serde::{Deserialize, Serialize};

use crate::ids::{RunId, TaskId};

/// The task that a run was begun for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Parent {
    /// The run of the task.
    pub run: RunId,
    /// The task, which waits for the end of this run.
    pub task: TaskId,
    /// How many runs stand above this one.
    pub depth: u32,
    /// What is being worked on above: the goals of those runs and of their tasks. None of them is a goal again.
    #[serde(default)]
    pub goals: Vec<String>,
}
