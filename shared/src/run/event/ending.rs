//! How tasks end, and are opened again.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Evidence;
use super::payload::{Payload, Words};
use crate::flow::{TaskStatus, Usage};
use crate::ids::{Generation, Seq, TaskId, TaskIndex};
use crate::run::apply::ApplyResult;
use crate::run::apply::phase::back_to_executing;
use crate::run::apply::task::{
    GenerationEnd, count_in_a_row, end_generation, end_without_outcome, executable, illegal,
};
use crate::run::state::RunState;
use crate::time::Millis;

/// A task ended well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskCompleted {
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// Where its outcome stands.
    pub outcome: Seq,
}

impl Payload for TaskCompleted {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, _: Words<'_>) -> String {
        format!("{} completed", self.task)
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        let end = GenerationEnd {
            task: &self.task,
            generation: self.generation,
            to: TaskStatus::Completed,
            outcome: Some(self.outcome),
            now,
        };
        end_generation(run, &end)?;
        run.responses.model_failures = 0;
        count_in_a_row(run, &self.task, true);
        Ok(())
    }
}

/// A try of a task failed; it will be offered again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskRetried {
    /// The task.
    pub task: TaskId,
    /// The generation that failed.
    pub generation: Generation,
    /// Where its outcome stands, if there is one.
    pub outcome: Option<Seq>,
    /// Why.
    pub reason: String,
    /// Whether the next try goes on from the steps of this one: nothing is wrong with what was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_steps: bool,
}

impl Payload for TaskRetried {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{} to be tried again: {}", self.task, words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        let first = run.tasks.get(&self.task).and_then(|state| state.continues).or(Some(self.generation));
        let end = GenerationEnd {
            task: &self.task,
            generation: self.generation,
            to: TaskStatus::Created,
            outcome: self.outcome,
            now,
        };
        let found = end_generation(run, &end)?;
        found.continues = first.filter(|_| self.keeps_steps);
        found.note_failure(&self.reason);
        Ok(())
    }
}

/// A task failed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskFailed {
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// Where its outcome stands, if there is one.
    pub outcome: Option<Seq>,
    /// Why.
    pub reason: String,
}

impl Payload for TaskFailed {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{} failed: {}", self.task, words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        let end = GenerationEnd {
            task: &self.task,
            generation: self.generation,
            to: TaskStatus::Failed,
            outcome: self.outcome,
            now,
        };
        // A task without an agent of its role fails before its first offer.
        if self.task.as_leaf().is_none() && self.generation == Generation(0) {
            run.tasks.entry(self.task.clone()).or_default();
        }
        let found = end_generation(run, &end)?;
        found.note_failure(&self.reason);
        count_in_a_row(run, &self.task, false);
        Ok(())
    }
}

/// A task that agents kept dying of is given to nobody any more: it failed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskQuarantined {
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// What speaks against it.
    pub evidence: Evidence,
}

impl Payload for TaskQuarantined {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{} is in quarantine: {}", self.task, words.brief(&self.evidence.reason))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        count_unanswered(run, &self.task);
        let end = GenerationEnd {
            task: &self.task,
            generation: self.generation,
            to: TaskStatus::Failed,
            outcome: None,
            now,
        };
        end_generation(run, &end)?.reasons.push(self.evidence.reason.clone());
        count_in_a_row(run, &self.task, false);
        Ok(())
    }
}

/// Agents died of the task, and nobody goes on with it who could count what they had sent: a call each.
fn count_unanswered(run: &mut RunState, task: &TaskId) {
    let deaths = run.tasks.get(task).map_or(0, |task| task.deaths.len());
    let calls = u64::try_from(deaths).unwrap_or(u64::MAX);
    run.spending.used += Usage { wasted_calls: calls, ..Usage::default() };
}

/// A task cannot start because one it needs gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskBlocked {
    /// The task.
    pub task: TaskIndex,
    /// Why.
    pub reason: String,
}

impl Payload for TaskBlocked {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.to_task_id())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{} blocked: {}", self.task, words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let task = self.task.to_task_id();
        end_without_outcome(run, &task, TaskStatus::Blocked, &self.reason).map(drop)
    }
}

/// A task was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskAborted {
    /// The task.
    pub task: TaskId,
    /// Why.
    pub reason: String,
}

impl Payload for TaskAborted {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{} stopped: {}", self.task, words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        end_without_outcome(run, &self.task, TaskStatus::Aborted, &self.reason).map(drop)
    }
}

/// A task was left out by decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskSkipped {
    /// The task.
    pub task: TaskIndex,
    /// Why.
    pub reason: String,
    /// Whether a person said so. By rule it is left out for want of something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_person: bool,
}

impl Payload for TaskSkipped {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.to_task_id())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{} skipped: {}", self.task, words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let task = self.task.to_task_id();
        if self.by_person {
            run.take_approvals_back();
        }
        let found = end_without_outcome(run, &task, TaskStatus::Skipped, &self.reason)?;
        found.skipped_by_person = self.by_person;
        Ok(())
    }
}

/// A task that was begun, or had ended, is to be done again from its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskReopened {
    /// The task.
    pub task: TaskId,
    /// Why; whoever does it is told.
    pub reason: String,
    /// Whether its agent is shown what it gave before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_result: bool,
}

impl Payload for TaskReopened {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{} is done again: {}", self.task, words.brief(&self.reason))
    }

    /// What was being written is no longer what is to be written.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let found = executable(run, &self.task)?;
        if !found.was_begun() {
            return Err(illegal(&self.task, found.status, TaskStatus::Created));
        }
        let given = found.outcome.as_ref().and_then(|it| it.result()).cloned().map(Box::new);
        found.earlier = given.or(found.earlier.take()).filter(|_| self.shows_result);
        found.begin_anew();
        found.forget_answers();
        found.answered = None;
        found.reasons.push(self.reason.clone());
        if let TaskId::Reflect(index) = &self.task
            && let Some(leaf) = run.planned_mut(index)
        {
            leaf.reflection = None;
        }
        back_to_executing(run);
        Ok(())
    }
}
