//! What people have a run do.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::payload::{Payload, Words};
use crate::ids::{TaskId, TaskIndex};
use crate::run::apply::phase::back_to_executing;
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::control::Paused;
use crate::run::state::RunState;
use crate::time::Millis;

/// Nothing is offered until the run is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RunPaused {
    /// Who asked for it, and why.
    pub reason: String,
}

impl Payload for RunPaused {
    fn text(&self, words: Words<'_>) -> String {
        format!("run paused: {}", words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        if run.control.paused.is_some() {
            return Err(ApplyError::WrongPause { paused: true });
        }
        run.control.paused = Some(Paused { since: now, reason: self.reason.clone() });
        Ok(())
    }
}

/// The run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RunResumed {
    /// Who asked for it, and why.
    pub reason: String,
    /// When it must be finished, if that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Millis>,
}

impl Payload for RunResumed {
    fn text(&self, words: Words<'_>) -> String {
        format!("run resumed: {}", words.brief(&self.reason))
    }

    /// The time of the pause is not counted against reviews of drafts and missing roles.
    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        let Some(paused) = run.control.paused.take() else {
            return Err(ApplyError::WrongPause { paused: false });
        };
        let pause = now.since(paused.since);
        for review in run.drafts.reviews.iter_mut().filter(|review| review.end.is_none()) {
            review.until = review.until.after(pause);
        }
        for since in run.missing_roles.values_mut() {
            *since = since.after(pause);
        }
        run.deadline = self.deadline.unwrap_or(run.deadline);
        Ok(())
    }
}

/// A goal was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct GoalEdited {
    /// The task whose goal it is; the run's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskIndex>,
    /// The goal as it stands now.
    pub goal: String,
    /// Who changed it, and why.
    pub reason: String,
}

impl Payload for GoalEdited {
    fn task(&self) -> Option<TaskId> {
        self.task.clone().map(TaskId::Leaf)
    }

    fn text(&self, words: Words<'_>) -> String {
        let whose = self.task.as_ref().map_or_else(|| "the run".to_owned(), TaskIndex::to_string);
        format!("goal of {whose} changed ({}): {}", words.brief(&self.reason), words.brief(&self.goal))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        run.take_approvals_back();
        let Some(index) = &self.task else {
            let first_words = std::mem::replace(&mut run.goal.text, self.goal.clone());
            run.planning.original_goal.get_or_insert(first_words);
            back_to_executing(run);
            return Ok(());
        };
        let planned = run.plan.as_mut().and_then(|plan| plan.tasks.get_mut(index));
        let unknown = || ApplyError::UnknownTask { task: index.to_task_id() };
        planned.ok_or_else(unknown)?.goal.clone_from(&self.goal);
        Ok(())
    }
}

/// What somebody asked of the run cannot be done. Nothing else changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RequestRefused {
    /// The request.
    pub id: Uuid,
    /// Why, and what to do.
    pub reason: String,
}

impl Payload for RequestRefused {
    fn text(&self, words: Words<'_>) -> String {
        format!("refused: {}", words.brief(&self.reason))
    }

    fn fold(&self, _: &mut RunState, _: Millis) -> ApplyResult {
        Ok(())
    }
}
