//! The transitions of one task.

use super::super::event::{AgentEvent, AgentKey};
use super::super::state::{RunState, TaskState};
use super::agent::count_usage;
use super::error::ApplyError;
use crate::flow::{Ending, Outcome, TaskStatus};
use crate::ids::{AgentId, Generation, Seq, TaskId};

pub(super) fn end_generation<'a>(
    state: &'a mut RunState,
    event: &'static str,
    task: &TaskId,
    generation: Generation,
    to: TaskStatus,
    outcome: Option<Seq>,
) -> Result<&'a mut TaskState, ApplyError> {
    at_generation(state, task, generation, event)?;
    let outcome = outcome.map(|seq| take_outcome(state, task, generation, seq)).transpose()?;
    let (author, outcome) = outcome.unzip();
    let held_by = at_generation(state, task, generation, event)?.agent.clone();
    if let Some(agent) = author.as_ref().or(held_by.as_ref()) {
        count_end(state, agent, to, outcome.as_ref());
    }
    let found = at_generation(state, task, generation, event)?;
    move_to(found, task, to)?;
    found.agent = None;
    if author.is_some() {
        found.ended_by.clone_from(&author);
    }
    if let Some(agent) = author.or(held_by).filter(|_| to != TaskStatus::Completed) {
        found.avoid(agent, "it failed it");
    }
    found.continues = None;
    found.answered = None;
    if outcome.is_some() {
        found.outcome = outcome;
    }
    Ok(found)
}

/// Counts how a task ended with an agent. One that did not say was still at it when its time was up; what was called
/// off says nothing about it.
fn count_end(state: &mut RunState, agent: &AgentId, to: TaskStatus, outcome: Option<&Outcome>) {
    let Some(tally) = state.tally(agent) else { return };
    match outcome.map(|outcome| outcome.ending) {
        _ if to == TaskStatus::Completed => tally.done += 1,
        Some(Ending::DeadlinePassed) | None => tally.late += 1,
        Some(Ending::Cancelled | Ending::BudgetExhausted | Ending::Blocked | Ending::Delegate) => {}
        Some(
            Ending::Done
            | Ending::DonePartial
            | Ending::ModelFailed
            | Ending::AgentFailed
            | Ending::GaveUp
            | Ending::Escalate,
        ) => tally.failed += 1,
    }
    if let Some(outcome) = outcome {
        let ms: u64 = outcome.steps.iter().map(|step| step.millis).sum();
        tally.ms = tally.ms.saturating_add(ms);
        tally.cost_micros = tally.cost_micros.saturating_add(outcome.usage.cost_micros);
    }
}

pub(super) fn end_without_outcome(
    state: &mut RunState,
    event: &'static str,
    task: &TaskId,
    to: TaskStatus,
    reason: &str,
) -> Result<(), ApplyError> {
    let found = executable(state, task, event)?;
    move_to(found, task, to)?;
    found.agent = None;
    found.waiting = None;
    found.answered = None;
    found.reasons.push(reason.to_owned());
    Ok(())
}

/// The task that an event is about: offered before, at the generation that the event names, and no parent.
pub(super) fn at_generation<'a>(
    state: &'a mut RunState,
    task: &TaskId,
    generation: Generation,
    event: &'static str,
) -> Result<&'a mut TaskState, ApplyError> {
    let found = executable(state, task, event)?;
    if found.generation == generation {
        Ok(found)
    } else {
        Err(ApplyError::WrongGeneration { task: task.clone(), wanted: found.generation, found: generation })
    }
}

pub(super) fn executable<'a>(
    state: &'a mut RunState,
    task: &TaskId,
    event: &'static str,
) -> Result<&'a mut TaskState, ApplyError> {
    let unknown = || ApplyError::UnknownTask { task: task.clone(), event };
    match task {
        TaskId::Leaf(index) if !state.plan.as_ref().is_some_and(|plan| plan.is_leaf(&index.planned())) => {
            Err(unknown())
        }
        TaskId::Leaf(_)
        | TaskId::Plan
        | TaskId::Reflect(_)
        | TaskId::Refine(_)
        | TaskId::Settle(_)
        | TaskId::Write
        | TaskId::DraftReview(_) => state.tasks.get_mut(task).ok_or_else(unknown),
    }
}

pub(super) fn move_to(state: &mut TaskState, task: &TaskId, to: TaskStatus) -> Result<(), ApplyError> {
    if may_become(state.status, to) {
        state.status = to;
        Ok(())
    } else {
        Err(illegal(task, state.status, to))
    }
}

/// The transitions of a task. `Queued` is reached by offers and by the loss of an agent only, which
/// have rules of their own.
const fn may_become(from: TaskStatus, to: TaskStatus) -> bool {
    match from {
        TaskStatus::Created => match to {
            TaskStatus::Failed
            | TaskStatus::Aborted
            | TaskStatus::Skipped
            | TaskStatus::Blocked
            | TaskStatus::Split => true,
            TaskStatus::Created | TaskStatus::Queued | TaskStatus::Processing | TaskStatus::Completed => {
                false
            }
        },
        TaskStatus::Queued | TaskStatus::Processing => match to {
            // Processing again: another agent took over within the generation.
            TaskStatus::Created
            | TaskStatus::Processing
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Aborted
            | TaskStatus::Skipped
            | TaskStatus::Split => true,
            TaskStatus::Queued | TaskStatus::Blocked => false,
        },
        TaskStatus::Failed => match to {
            TaskStatus::Skipped | TaskStatus::Split => true,
            TaskStatus::Created
            | TaskStatus::Queued
            | TaskStatus::Processing
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Aborted
            | TaskStatus::Blocked => false,
        },
        // What did not take place may be left out after all: what depends on it then goes on.
        TaskStatus::Aborted | TaskStatus::Blocked => match to {
            TaskStatus::Skipped => true,
            TaskStatus::Created
            | TaskStatus::Queued
            | TaskStatus::Processing
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Aborted
            | TaskStatus::Blocked
            | TaskStatus::Split => false,
        },
        TaskStatus::Completed | TaskStatus::Skipped | TaskStatus::Split => false,
    }
}

pub(super) fn illegal(task: &TaskId, from: TaskStatus, to: TaskStatus) -> ApplyError {
    ApplyError::IllegalTransition { task: task.clone(), from, to }
}

fn take_outcome(
    state: &mut RunState,
    task: &TaskId,
    generation: Generation,
    seq: Seq,
) -> Result<(AgentId, Outcome), ApplyError> {
    let missing = || ApplyError::NoOutcome { task: task.clone(), generation, seq };
    let fits = |(key, event): &&(AgentKey, AgentEvent)| {
        key.task == *task && key.generation == generation && matches!(event, AgentEvent::Outcome(_))
    };
    if state.pending.get(&seq).filter(fits).is_none() {
        return Err(missing());
    }
    let (key, event) = state.pending.remove(&seq).ok_or_else(missing)?;
    count_usage(state, &key, &event);
    match event {
        AgentEvent::Outcome(outcome) => Ok((key.agent, outcome)),
        AgentEvent::Started(_)
        | AgentEvent::ToolStarted(_)
        | AgentEvent::Step(_)
        | AgentEvent::Released(_) => Err(missing()),
    }
}
