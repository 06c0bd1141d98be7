//! What people ask of a run, once decided: pauses, tasks put down or opened again, goals changed.

use super::super::event::{AgentEvent, AgentKey};
use super::super::state::{Paused, Phase, RunState};
use super::agent::count_usage;
use super::drafts;
use super::error::ApplyError;
use super::responses;
use super::task::{at_generation, executable, illegal, move_to};
use crate::flow::TaskStatus;
use crate::ids::{Generation, TaskId, TaskIndex};
use crate::time::Millis;

/// Makes the run busy with another phase.
pub(super) const fn enter(state: &mut RunState, phase: Phase, now: Millis) {
    state.phase = phase;
    state.phase_since = now;
}

pub(super) fn pause(
    state: &mut RunState,
    event: &'static str,
    reason: &str,
    now: Millis,
) -> Result<(), ApplyError> {
    if state.paused.is_some() {
        return Err(ApplyError::WrongPause { event, paused: true });
    }
    state.paused = Some(Paused { since: now, reason: reason.to_owned() });
    Ok(())
}

/// The time of the pause is not counted against the phase, nor against what keeps others waiting.
pub(super) fn resume(
    state: &mut RunState,
    event: &'static str,
    deadline: Option<Millis>,
    now: Millis,
) -> Result<(), ApplyError> {
    let Some(paused) = state.paused.take() else {
        return Err(ApplyError::WrongPause { event, paused: false });
    };
    let pause = now.since(paused.since);
    state.phase_since = state.phase_since.after(pause);
    for begun in state.responses.begun.values_mut() {
        *begun = begun.after(pause);
    }
    for review in state.drafts.reviews.iter_mut().filter(|review| review.end.is_none()) {
        review.until = review.until.after(pause);
    }
    state.deadline = deadline.unwrap_or(state.deadline);
    Ok(())
}

/// Puts a task down where it stands: the next generation goes on from the steps of this one.
pub(super) fn park(
    state: &mut RunState,
    event: &'static str,
    task: &TaskId,
    generation: Generation,
) -> Result<(), ApplyError> {
    let found = at_generation(state, task, generation, event)?;
    match found.status {
        TaskStatus::Queued | TaskStatus::Processing => {}
        from @ (TaskStatus::Created
        | TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Aborted
        | TaskStatus::Skipped
        | TaskStatus::Blocked
        | TaskStatus::Split) => return Err(illegal(task, from, TaskStatus::Created)),
    }
    // Of a task that a pause takes out of its queue, an agent may have put it down already: that counts once a decision
    // names it, whether or not who decides has read it.
    let is_put_down_by_its_agent = found.status == TaskStatus::Processing;
    move_to(found, task, TaskStatus::Created)?;
    found.agent = None;
    found.continues = found.continues.or(Some(generation));
    if is_put_down_by_its_agent {
        count_put_down(state, task, generation);
    }
    Ok(())
}

/// Counts what was used by a generation that its agent put down. What was set aside for it is free again at once, so
/// that what is decided next can make use of it.
fn count_put_down(state: &mut RunState, task: &TaskId, generation: Generation) {
    let of_it = |key: &AgentKey, event: &AgentEvent| {
        key.task == *task
            && key.generation == generation
            && matches!(event, AgentEvent::Released(released) if released.parked)
    };
    let put_down = state.pending.iter().find(|(_, (key, event))| of_it(key, event)).map(|(seq, _)| *seq);
    if let Some((key, event)) = put_down.and_then(|seq| state.pending.remove(&seq)) {
        count_usage(state, &key, &event);
    }
}

/// Opens a task again, from its beginning. What was being written is no longer what is to be written.
pub(super) fn reopen(
    state: &mut RunState,
    event: &'static str,
    task: &TaskId,
    reason: &str,
    now: Millis,
) -> Result<(), ApplyError> {
    let found = executable(state, task, event)?;
    if !found.was_begun() {
        return Err(illegal(task, found.status, TaskStatus::Created));
    }
    found.status = TaskStatus::Created;
    found.agent = None;
    found.outcome = None;
    found.continues = None;
    found.waiting = None;
    found.answered = None;
    found.failures = 0;
    found.reasons.push(reason.to_owned());
    responses::reopened(state, task);
    match task {
        TaskId::Leaf(index) => drop(state.stale.remove(index)),
        TaskId::Reflect(index) => drop(state.reflections.remove(index)),
        TaskId::Plan | TaskId::Refine(_) | TaskId::Settle(_) | TaskId::Write | TaskId::DraftReview(_) => {}
    }
    back_to_executing(state, now);
    Ok(())
}

/// Marks a result that was made from one that has changed since.
pub(super) fn mark_stale(
    state: &mut RunState,
    event: &'static str,
    index: &TaskIndex,
    reason: &str,
) -> Result<(), ApplyError> {
    let task = TaskId::Leaf(index.clone());
    let found = executable(state, &task, event)?;
    if found.status != TaskStatus::Completed {
        return Err(illegal(&task, found.status, TaskStatus::Completed));
    }
    state.stale.insert(index.clone(), reason.to_owned());
    Ok(())
}

pub(super) fn edit(
    state: &mut RunState,
    event: &'static str,
    task: Option<&TaskIndex>,
    goal: &str,
    now: Millis,
) -> Result<(), ApplyError> {
    match task {
        None => {
            goal.clone_into(&mut state.goal.text);
            back_to_executing(state, now);
            Ok(())
        }
        Some(index) => match state.plan.as_mut().and_then(|plan| plan.tasks.get_mut(index)) {
            Some(planned) => {
                goal.clone_into(&mut planned.goal);
                Ok(())
            }
            None => Err(ApplyError::UnknownTask { task: TaskId::Leaf(index.clone()), event }),
        },
    }
}

fn back_to_executing(state: &mut RunState, now: Millis) {
    match state.phase {
        Phase::Writing => {
            drafts::dropped(state);
            enter(state, Phase::Executing, now);
        }
        Phase::Planning | Phase::Executing | Phase::Ended => {}
    }
}
