//! Runs that are begun for tasks of a run.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use crate::flow::Goal;
use crate::ids::{Generation, RunId, TaskId};
use crate::run::apply::task::waiting;
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::children::{Child, ChildEnd};
use crate::run::state::RunState;
use crate::time::Millis;

/// A run was begun for a task that waits for its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ChildBegun {
    /// The task.
    pub task: TaskId,
    /// Its generation that asked for it.
    pub generation: Generation,
    /// The run.
    pub run: RunId,
    /// Its goal.
    pub goal: Box<Goal>,
}

impl Payload for ChildBegun {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        let (task, run) = (&self.task, self.run.short());
        format!("{task} waits for a run of its own, {run}: {}", words.brief(&self.goal.text))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        waiting(run, &self.task)?.for_run = Some(self.run);
        let (task, generation, goal) = (self.task.clone(), self.generation, self.goal.clone());
        run.children.insert(self.run, Child { task, generation, goal, asked_at: now, end: None });
        Ok(())
    }
}

/// Nothing was heard of a child for long: word of it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ChildAsked {
    /// The run.
    pub run: RunId,
}

impl Payload for ChildAsked {
    fn text(&self, _: Words<'_>) -> String {
        format!("nothing was heard of {} for long: it is asked", self.run.short())
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        open(run, self.run)?.asked_at = now;
        Ok(())
    }
}

/// A run that was begun for a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ChildEnded {
    /// The run.
    pub run: RunId,
    /// How.
    pub end: Box<ChildEnd>,
}

impl Payload for ChildEnded {
    fn text(&self, words: Words<'_>) -> String {
        let reason = if self.end.reason.is_empty() {
            String::new()
        } else {
            format!(": {}", words.brief(&self.end.reason))
        };
        format!("{} ended as {:?}{reason}", self.run.short(), self.end.status)
    }

    /// What it used was used by this run.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        open(run, self.run)?.end = Some(self.end.clone());
        run.spending.used += self.end.usage;
        Ok(())
    }
}

/// A child whose end is not known.
fn open(run: &mut RunState, child: RunId) -> ApplyResult<&mut Child> {
    let id = run.id;
    let found = run.children.get_mut(&child).filter(|child| child.end.is_none());
    found.ok_or(ApplyError::NoSuchChild { run: id, child })
}
