//! The transitions of one task.

use std::sync::Arc;

use super::super::event::{AgentEvent, AgentKey};
use super::super::state::RunState;
use super::super::task_state::{Lost, TaskState, Waiting};
use super::super::trials;
use super::agent::count_usage;
use super::error::{ApplyError, ApplyResult};
use crate::flow::{Ending, FailureKind, Outcome, TaskStatus};
use crate::ids::{AgentId, Generation, Seq, TaskId};
use crate::time::Millis;

/// Notes where the decision stands that took tasks from agents that were lost.
pub(super) fn note_losses(run: &mut RunState, at: Seq) {
    let lost = run.tasks.values_mut().filter_map(|task| task.lost.as_mut());
    for lost in lost.filter(|lost| lost.at == Lost::NOW) {
        lost.at = at;
    }
}

/// How one generation of a task ends.
pub(in crate::run) struct GenerationEnd<'a> {
    pub(in crate::run) task: &'a TaskId,
    pub(in crate::run) generation: Generation,
    pub(in crate::run) to: TaskStatus,
    /// Where its outcome stands, if there is one.
    pub(in crate::run) outcome: Option<Seq>,
    pub(in crate::run) now: Millis,
}

/// Ends a generation of a task: its outcome is kept, and what its agent did is counted.
///
/// # Errors
/// When it is not the newest, cannot go over to that state, or no such outcome is there.
pub(in crate::run) fn end_generation<'a>(
    state: &'a mut RunState,
    end: &GenerationEnd<'_>,
) -> ApplyResult<&'a mut TaskState> {
    let GenerationEnd { task, generation, to, now, .. } = *end;
    at_generation(state, task, generation)?;
    let outcome = end.outcome.map(|seq| take_end(state, end, seq)).transpose()?;
    let (author, outcome) = outcome.unzip();
    let found = at_generation(state, task, generation)?;
    let (held_by, deadline) = (found.agent.clone(), found.deadline);
    if let Some(agent) = author.as_ref().or(held_by.as_ref()) {
        let is_late = deadline.is_some_and(|deadline| deadline < now);
        count_end(state, agent, (to, is_late), outcome.as_deref());
    }
    trials::note_end(state, task, (to, now), outcome.as_deref());
    let found = at_generation(state, task, generation)?;
    move_to(found, task, to)?;
    found.agent = None;
    if author.is_some() {
        found.ended_by.clone_from(&author);
    }
    if let Some(agent) = author.or(held_by).filter(|_| to != TaskStatus::Completed) {
        match (found.answers.last, outcome.as_ref().map(|outcome| outcome.ending)) {
            // Any planner may correct a refused plan.
            (None | Some(FailureKind::PlanRefused), Some(_)) if task.as_leaf().is_none() => {}
            (_, Some(Ending::Cancelled)) => found.avoid(agent, "it failed it"),
            _ => found.avoid_idle(agent, "it failed it"),
        }
    }
    found.continues = None;
    found.answered = None;
    if outcome.is_some() {
        found.outcome = outcome;
    }
    Ok(found)
}

/// Counts leaves that fail one after the other. Verifications are not planned.
pub(in crate::run) fn count_in_a_row(state: &mut RunState, task: &TaskId, well: bool) {
    if task.as_leaf().is_some_and(|index| !index.is_member() && !state.is_verification(index)) {
        let row = &mut state.planning.failures_in_a_row;
        *row = if well { 0 } else { row.saturating_add(1) };
    }
}

/// What a task waits for.
///
/// # Errors
/// When it does not wait.
pub(in crate::run) fn waiting<'a>(state: &'a mut RunState, task: &TaskId) -> ApplyResult<&'a mut Waiting> {
    let found = state.tasks.get_mut(task).and_then(|found| found.waiting.as_mut());
    found.ok_or_else(|| ApplyError::NotWaiting { task: task.clone() })
}

/// Counts how a task ended with an agent. One that did not say was still at it when its time was up; what was called
/// off says nothing about it.
fn count_end(
    state: &mut RunState,
    agent: &AgentId,
    (to, is_late): (TaskStatus, bool),
    outcome: Option<&Outcome>,
) {
    let Some(tally) = state.tally(agent) else { return };
    match outcome.map(|outcome| outcome.ending) {
        // A part that counts because nothing better came is no task that was done in time.
        _ if to == TaskStatus::Completed && is_late => tally.late += 1,
        _ if to == TaskStatus::Completed => tally.done += 1,
        Some(Ending::DeadlinePassed) | None => tally.late += 1,
        Some(Ending::DonePartial) if is_late => tally.late += 1,
        Some(Ending::Blocked) => tally.failed += 1,
        Some(Ending::Delegate) => tally.handed_back += 1,
        Some(Ending::Cancelled | Ending::BudgetExhausted) => {}
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

pub(in crate::run) fn end_without_outcome<'a>(
    state: &'a mut RunState,
    task: &TaskId,
    to: TaskStatus,
    reason: &str,
) -> ApplyResult<&'a mut TaskState> {
    let found = executable(state, task)?;
    move_to(found, task, to)?;
    found.agent = None;
    found.answered = None;
    found.reasons.push(reason.to_owned());
    Ok(found)
}

/// The task that an event is about: offered before, at the generation that the event names, and no parent.
pub(in crate::run) fn at_generation<'a>(
    state: &'a mut RunState,
    task: &TaskId,
    generation: Generation,
) -> ApplyResult<&'a mut TaskState> {
    let found = executable(state, task)?;
    if found.generation == generation {
        Ok(found)
    } else {
        Err(ApplyError::WrongGeneration { task: task.clone(), wanted: found.generation, found: generation })
    }
}

pub(in crate::run) fn executable<'a>(
    state: &'a mut RunState,
    task: &TaskId,
) -> ApplyResult<&'a mut TaskState> {
    let unknown = || ApplyError::UnknownTask { task: task.clone() };
    if let TaskId::Leaf(index) = task
        && !state.plan.as_ref().is_some_and(|plan| plan.is_leaf(&index.planned()))
    {
        Err(unknown())
    } else {
        state.tasks.get_mut(task).ok_or_else(unknown)
    }
}

pub(in crate::run) fn move_to(state: &mut TaskState, task: &TaskId, to: TaskStatus) -> ApplyResult {
    if may_become(state.status, to) {
        state.end_wait();
        state.status = to;
        Ok(())
    } else {
        Err(illegal(task, state.status, to))
    }
}

/// The transitions of a task. `Queued` is reached by offers and by the loss of an agent only, `Waiting`
/// by what a task asks for: both have rules of their own.
const fn may_become(from: TaskStatus, to: TaskStatus) -> bool {
    match from {
        TaskStatus::Created | TaskStatus::Waiting => matches!(
            to,
            TaskStatus::Failed
                | TaskStatus::Aborted
                | TaskStatus::Skipped
                | TaskStatus::Blocked
                | TaskStatus::Split
        ),
        TaskStatus::Queued | TaskStatus::Processing => {
            // Processing again: another agent took over within the generation.
            !matches!(to, TaskStatus::Queued | TaskStatus::Waiting | TaskStatus::Blocked)
        }
        TaskStatus::Failed => matches!(to, TaskStatus::Skipped | TaskStatus::Split),
        // What did not take place may be left out after all: what depends on it then goes on.
        TaskStatus::Aborted | TaskStatus::Blocked => matches!(to, TaskStatus::Skipped),
        TaskStatus::Completed | TaskStatus::Skipped | TaskStatus::Split => false,
    }
}

pub(in crate::run) fn illegal(task: &TaskId, from: TaskStatus, to: TaskStatus) -> ApplyError {
    ApplyError::IllegalTransition { task: task.clone(), from, to }
}

/// What ended the generation: its outcome, or an entry that was none and counts as the failure of its agent.
fn take_end(state: &mut RunState, end: &GenerationEnd<'_>, seq: Seq) -> ApplyResult<(AgentId, Arc<Outcome>)> {
    let missing = || ApplyError::NoOutcome { task: end.task.clone(), generation: end.generation, seq };
    // What one build cannot read another may: then it is an entry like others, and ends nothing well.
    let fits = |(key, event): &&(AgentKey, AgentEvent)| {
        key.task == *end.task
            && key.generation == end.generation
            && (end.to != TaskStatus::Completed || matches!(event, AgentEvent::Outcome(_)))
    };
    if state.pending.get(&seq).filter(fits).is_none() {
        return Err(missing());
    }
    let (key, event) = state.pending.remove(&seq).ok_or_else(missing)?;
    count_usage(state, &key, &event);
    if let AgentEvent::Outcome(outcome) = event {
        Ok((key.agent, outcome))
    } else {
        Ok((key.agent, Arc::new(Outcome::of_fault())))
    }
}
