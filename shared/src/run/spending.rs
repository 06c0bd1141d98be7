//! What a run used, and what is set aside for what it has in work.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::{Budget, Usage};
use crate::ids::{AgentId, Generation, TaskId};
use crate::run::AgentKey;

/// What a run used, and what is set aside for what it has in work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Spending {
    /// What its tasks used, as far as decisions know.
    pub used: Usage,
    /// What was set aside for generations of tasks whose usage is not known yet, where the run has a budget.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allotted: Vec<Allotment>,
    /// Who had generations of tasks last, where nobody has said yet what was used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
}

/// Whoever had a generation of a task last, and has not said what was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Uncounted {
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// Who had it.
    pub agent: AgentId,
}

/// A part of the run's budget that was set aside for one generation of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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

    /// Somebody has a generation of a task from now on: what is used is for it to say.
    pub(super) fn is_with(&mut self, task: &TaskId, generation: Generation, agent: &AgentId) {
        self.is_counted(task, generation);
        let (task, agent) = (task.clone(), agent.clone());
        self.uncounted.push(Uncounted { task, generation, agent });
    }

    /// It was said what a generation of a task used.
    pub(super) fn is_counted(&mut self, task: &TaskId, generation: Generation) {
        self.uncounted.retain(|kept| (&kept.task, kept.generation) != (task, generation));
    }

    /// Whether it is for this agent to say what was used.
    pub(super) fn awaits(&self, key: &AgentKey) -> bool {
        let awaited = |kept: &Uncounted| {
            (&kept.task, kept.generation, &kept.agent) == (&key.task, key.generation, &key.agent)
        };
        self.uncounted.iter().any(awaited)
    }
}
