//! What a run used, and what is set aside for what it has in work.

use serde::{Deserialize, Serialize};

use crate::flow::{Budget, Usage};
use crate::ids::{Generation, TaskId};

/// What a run used, and what is set aside for what it has in work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Spending {
    /// What its tasks used, as far as decisions know.
    pub used: Usage,
    /// What was set aside for generations of tasks whose usage is not known yet, where the run has a budget.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allotted: Vec<Allotment>,
}

/// A part of the run's budget that was set aside for one generation of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Allotment {
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// The most that it may use.
    pub budget: Budget,
}

impl Spending {
    /// Frees what was set aside for a generation of a task.
    pub(super) fn free(&mut self, task: &TaskId, generation: Generation) {
        self.allotted.retain(|kept| (&kept.task, kept.generation) != (task, generation));
    }
}
