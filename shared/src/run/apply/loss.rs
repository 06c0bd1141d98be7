//! What is folded when a task leaves an agent's hands unfinished.

use super::super::state::{Death, RunState, TaskState};
use super::error::ApplyError;
use super::task::{at_generation, illegal, move_to};
use crate::flow::{TaskStatus, Usage};
use crate::ids::{AgentId, Attempt, Generation, TaskId};
use crate::run::REPAIRS_SINCE;
use crate::time::Millis;

/// Who had a task, and in which try.
pub(super) struct Holder<'a> {
    pub(super) task: &'a TaskId,
    pub(super) generation: Generation,
    pub(super) agent: &'a AgentId,
    pub(super) attempt: Attempt,
}

/// An agent started. Only now is it certain how far the one before it came.
pub(super) fn started(
    state: &mut RunState,
    event: &'static str,
    holder: &Holder<'_>,
    ack: &str,
    after_step: u32,
) -> Result<(), ApplyError> {
    let task = at_generation(state, holder.task, holder.generation, event)?;
    move_to(task, holder.task, TaskStatus::Processing)?;
    if holder.attempt <= task.attempt {
        let (last, found) = (task.attempt, holder.attempt);
        return Err(ApplyError::WrongAttempt { task: holder.task.clone(), last, found });
    }
    if let Some(last) = task.deaths.last_mut().filter(|last| last.attempt == task.attempt) {
        last.step = last.step.max(after_step);
    }
    note_step(task, after_step);
    task.agent = Some(holder.agent.clone());
    task.attempt = holder.attempt;
    task.ack = Some(ack.to_owned()).filter(|ack| !ack.is_empty());
    Ok(())
}

/// The agent was lost: the task waits for another, which goes on after the last step.
pub(super) fn orphaned(
    state: &mut RunState,
    event: &'static str,
    holder: &Holder<'_>,
    (last_step, beside): (u32, u32),
    now: Millis,
) -> Result<(), ApplyError> {
    let task = taken_from(state, event, holder, now)?;
    note_step(task, last_step);
    let (agent, attempt, step) = (holder.agent.clone(), holder.attempt, task.last_step);
    task.deaths.push(Death { agent, attempt, step, beside });
    Ok(())
}

/// Agents died of the task, and nobody goes on with it who could count what they had sent: a call each.
pub(super) fn count_unanswered(state: &mut RunState, task: &TaskId) {
    if state.event_version < REPAIRS_SINCE {
        return;
    }
    let deaths = state.tasks.get(task).map_or(0, |task| task.deaths.len());
    let calls = u64::try_from(deaths).unwrap_or(u64::MAX);
    state.usage += Usage { wasted_calls: calls, ..Usage::default() };
}

/// The agent handed the task over in good order.
pub(super) fn released(
    state: &mut RunState,
    event: &'static str,
    holder: &Holder<'_>,
    now: Millis,
) -> Result<(), ApplyError> {
    taken_from(state, event, holder, now).map(drop)
}

/// The task is in its queue again, within the same generation. Where its acknowledgement goes is still good: by it the
/// queue can be told once more.
fn taken_from<'a>(
    state: &'a mut RunState,
    event: &'static str,
    holder: &Holder<'_>,
    now: Millis,
) -> Result<&'a mut TaskState, ApplyError> {
    if let Some(seen) = state.seen.get_mut(holder.task).filter(|seen| seen.generation == holder.generation) {
        seen.agent = None;
    }
    let task = at_generation(state, holder.task, holder.generation, event)?;
    if task.status != TaskStatus::Processing {
        return Err(illegal(holder.task, task.status, TaskStatus::Queued));
    }
    if task.attempt != holder.attempt {
        let (last, found) = (task.attempt, holder.attempt);
        return Err(ApplyError::WrongAttempt { task: holder.task.clone(), last, found });
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
