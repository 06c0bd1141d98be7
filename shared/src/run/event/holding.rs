//! Who has a task in hand, and how it leaves their hands unfinished.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use super::{AgentEvent, AgentKey};
use crate::flow::TaskStatus;
use crate::ids::{AgentId, Attempt, Generation, TaskId};
use crate::run::apply::agent::{count_usage, is_to_count};
use crate::run::apply::task::{GenerationEnd, at_generation, end_generation, illegal, move_to};
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::state::RunState;
use crate::run::task_state::{Death, Lost, TaskState};
use crate::time::Millis;

/// An agent started a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskStarted {
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// The agent.
    pub agent: AgentId,
    /// Which try.
    pub attempt: Attempt,
    /// Where the queue's acknowledgement goes, to hand the task on when the agent dies.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ack: String,
    /// The last step of the tries before it; work goes on after it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub after_step: u32,
}

impl Payload for TaskStarted {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, _: Words<'_>) -> String {
        format!("{} is in work with {} (attempt {})", self.task, self.agent, self.attempt)
    }

    /// Only now is it certain how far the one before it came.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let task = at_generation(run, &self.task, self.generation)?;
        move_to(task, &self.task, TaskStatus::Processing)?;
        if self.attempt <= task.attempt {
            let (last, found) = (task.attempt, self.attempt);
            return Err(ApplyError::WrongAttempt { task: self.task.clone(), last, found });
        }
        if let Some(last) = task.deaths.last_mut().filter(|last| last.attempt == task.attempt) {
            last.step = last.step.max(self.after_step);
        }
        note_step(task, self.after_step);
        task.agent = Some(self.agent.clone());
        task.attempt = self.attempt;
        task.ack = Some(self.ack.clone()).filter(|ack| !ack.is_empty());
        run.spending.is_with(&self.task, self.generation, &self.agent);
        Ok(())
    }
}

/// The agent that had a task was lost. The task goes to another within the same generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskOrphaned {
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// Which try was lost.
    pub attempt: Attempt,
    /// The agent.
    pub agent: AgentId,
    /// How the loss is known.
    pub reason: String,
    /// The last step known to be in the record.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub last_step: u32,
    /// How many other tasks the agent had in hand.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub beside: u32,
}

impl Payload for TaskOrphaned {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        let Self { task, agent, .. } = self;
        format!("{task} goes to another agent: {agent} is lost, {}", words.brief(&self.reason))
    }

    /// The task waits for another, which goes on after the last step.
    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        let task = back_in_queue(run, &self.task, self.generation, self.attempt, now)?;
        note_step(task, self.last_step);
        let (agent, attempt, step) = (self.agent.clone(), self.attempt, task.last_step);
        task.lost = Some(Lost { agent: agent.clone(), at: Lost::NOW });
        task.deaths.push(Death { agent, attempt, step, beside: self.beside });
        Ok(())
    }
}

/// The agent that had a task handed it over in good order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskReleased {
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// The agent.
    pub agent: AgentId,
    /// Which try.
    pub attempt: Attempt,
}

impl Payload for TaskReleased {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, _: Words<'_>) -> String {
        format!("{} goes to another agent: {} handed it over", self.task, self.agent)
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        back_in_queue(run, &self.task, self.generation, self.attempt, now).map(drop)
    }
}

/// The task is in its queue again, within the same generation. Where its acknowledgement goes is still good: by it the
/// queue can be told once more.
fn back_in_queue<'a>(
    run: &'a mut RunState,
    id: &TaskId,
    generation: Generation,
    attempt: Attempt,
    now: Millis,
) -> ApplyResult<&'a mut TaskState> {
    if let Some(seen) = run.seen.get_mut(id).filter(|seen| seen.generation == generation) {
        seen.agent = None;
    }
    let task = at_generation(run, id, generation)?;
    if task.status != TaskStatus::Processing {
        return Err(illegal(id, task.status, TaskStatus::Queued));
    }
    if task.attempt != attempt {
        return Err(ApplyError::WrongAttempt { task: id.clone(), last: task.attempt, found: attempt });
    }
    task.status = TaskStatus::Queued;
    task.offered_at = Some(now);
    task.agent = None;
    Ok(task)
}

/// A step that was taken since clears the task of the deaths before it.
fn note_step(task: &mut TaskState, step: u32) {
    task.last_step = task.last_step.max(step);
    let last = task.last_step;
    task.deaths.retain(|death| death.step == last);
}

/// Whoever had a task wrote nothing about it for too long. It is offered to another, which goes on after the last
/// step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskTakenBack {
    /// The task.
    pub task: TaskId,
    /// The generation that ends with this.
    pub generation: Generation,
    /// The agent that fell silent.
    pub agent: AgentId,
    /// Why, in a sentence.
    pub reason: String,
}

impl Payload for TaskTakenBack {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{} is taken from {}: {}", self.task, self.agent, words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        let before = at_generation(run, &self.task, self.generation)?;
        let (agent, continues) = (before.agent.clone(), before.continues.or(Some(self.generation)));
        let end = GenerationEnd {
            task: &self.task,
            generation: self.generation,
            to: TaskStatus::Created,
            outcome: None,
            now,
        };
        let found = end_generation(run, &end)?;
        found.continues = continues;
        found.note_failure(&self.reason);
        if let Some(agent) = agent {
            found.avoid_idle(agent, "it fell silent with it");
        }
        Ok(())
    }
}

/// A task was put down where it stands, to be offered again: the next generation goes on from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskParked {
    /// The task.
    pub task: TaskId,
    /// The generation that was put down.
    pub generation: Generation,
}

impl Payload for TaskParked {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, _: Words<'_>) -> String {
        format!("{} was put down; it goes on later", self.task)
    }

    /// The next generation goes on from the steps of this one.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let found = at_generation(run, &self.task, self.generation)?;
        if !found.status.is_in_work() {
            return Err(illegal(&self.task, found.status, TaskStatus::Created));
        }
        // Of a task that a pause takes out of its queue, an agent may have put it down already: that counts once a
        // decision names it, whether or not who decides has read it.
        let is_put_down_by_its_agent = found.status == TaskStatus::Processing;
        move_to(found, &self.task, TaskStatus::Created)?;
        found.agent = None;
        found.continues = found.continues.or(Some(self.generation));
        if is_put_down_by_its_agent {
            count_put_down(run, &self.task, self.generation);
        }
        Ok(())
    }
}

/// Counts what was used by a generation that its agent put down. What was set aside for it is free again at once, so
/// that what is decided next can make use of it.
fn count_put_down(run: &mut RunState, task: &TaskId, generation: Generation) {
    let of_it = |key: &AgentKey, event: &AgentEvent| {
        key.task == *task
            && key.generation == generation
            && matches!(event, AgentEvent::Released(released) if released.parked)
    };
    let put_down = |(key, event): &(AgentKey, AgentEvent)| of_it(key, event) && is_to_count(run, key);
    let put_down = run.pending.iter().find(|(_, said)| put_down(said)).map(|(seq, _)| *seq);
    if let Some((key, event)) = put_down.and_then(|seq| run.pending.remove(&seq)) {
        count_usage(run, &key, &event);
    }
}
