//! What is folded when a task waits, when what it waits for is there, and when people are asked.

use serde_json::Value;

use super::super::peers::Shared;
use super::super::state::{Child, ChildEnd, QuestionEnd, QuestionState, RunState, Waiting};
use super::error::ApplyError;
use super::plan::change_plan;
use super::task::{at_generation, executable};
use crate::flow::{
    About, Answered, ContextAuthor, ContextEntry, ContextRead, Goal, Observation, OnTimeout, PeerAnswer,
    PeerRequest, Plan, Question, TaskStatus, Wait,
};
use crate::ids::{AgentId, Generation, QuestionId, RunId, TaskId, TaskIndex};
use crate::time::Millis;

/// A task that was put down waits.
pub(super) fn waits(
    state: &mut RunState,
    event: &'static str,
    (task, generation): (&TaskId, Generation),
    (step, wait): (u32, &Wait),
    now: Millis,
) -> Result<(), ApplyError> {
    let found = at_generation(state, task, generation, event)?;
    // What is not of a step is of the task as a whole, which nobody goes on with from where it stood.
    if found.status != TaskStatus::Created || (found.continues.is_none() && step > 0) {
        return Err(ApplyError::NotWaiting { task: task.clone(), event });
    }
    found.answered = None;
    found.waiting = Some(Waiting { step, wait: wait.clone(), since: now, for_run: None, for_task: None });
    if let Wait::Peer(request) = wait {
        state.peers.requests = state.peers.requests.saturating_add(1);
        if let (PeerRequest::ContextRead(ContextRead { key, prefix }), TaskId::Leaf(task)) =
            (&**request, task)
        {
            let asked = if *prefix { format!("{key}*") } else { key.clone() };
            state.peers.asked.entry(task.clone()).or_default().insert(asked);
        }
    }
    Ok(())
}

/// What it waited for is there.
pub(super) fn answered(
    state: &mut RunState,
    event: &'static str,
    task: &TaskId,
    step: u32,
    (observation, answer): (&Observation, Option<&PeerAnswer>),
) -> Result<(), ApplyError> {
    let found = executable(state, task, event)?;
    if found.waiting.take().is_none_or(|waiting| waiting.step != step) {
        return Err(ApplyError::NotWaiting { task: task.clone(), event });
    }
    let (observation, answer) = (observation.clone(), answer.cloned().map(Box::new));
    found.answered = Some(Box::new(Answered { step, observation, answer }));
    Ok(())
}

/// A task told others something.
pub(super) fn shared(
    state: &mut RunState,
    event: &'static str,
    number: u32,
    told: Shared,
) -> Result<(), ApplyError> {
    let known = |index: &&TaskIndex| state.plan.as_ref().is_some_and(|plan| plan.tasks.contains_key(*index));
    if let Some(unknown) = told.from.iter().chain(&told.to).find(|index| !known(index)) {
        return Err(ApplyError::UnknownTask { task: TaskId::Leaf(unknown.clone()), event });
    }
    let wanted = state.peers.next_number();
    if number != wanted {
        return Err(ApplyError::WrongInformation { run: state.id, wanted, found: number });
    }
    if let Some(key) = &told.key {
        // Only what a value is now is worth telling.
        state.peers.shared.retain(|_, before| before.key.as_ref() != Some(key));
    }
    state.peers.shared.insert(number, told);
    Ok(())
}

/// The plan has a task more, for whose end another waits.
pub(super) fn delegated(
    state: &mut RunState,
    event: &'static str,
    (by, to): (&TaskIndex, &TaskIndex),
    plan: &Plan,
) -> Result<(), ApplyError> {
    let unknown = |task: &TaskIndex| ApplyError::UnknownTask { task: TaskId::Leaf(task.clone()), event };
    let is_new = state.plan.as_ref().is_some_and(|plan| !plan.tasks.contains_key(to));
    if !is_new || !plan.is_leaf(to) {
        return Err(unknown(to));
    }
    change_plan(state, plan)?;
    let task = TaskId::Leaf(by.clone());
    let waiting = state.tasks.get_mut(&task).and_then(|found| found.waiting.as_mut());
    let waiting = waiting.ok_or(ApplyError::NotWaiting { task, event })?;
    waiting.for_task = Some(to.clone());
    state.delegated.insert(to.clone(), by.clone());
    Ok(())
}

/// A value of the shared context has its next version.
pub(super) fn context_written(
    state: &mut RunState,
    key: &str,
    (value, version, by): (&Value, u32, &ContextAuthor),
    at: Millis,
) -> Result<(), ApplyError> {
    let wanted = state.peers.context.get(key).map_or(0, |entry| entry.version).saturating_add(1);
    if version != wanted {
        return Err(ApplyError::WrongContext { key: key.to_owned(), wanted, found: version });
    }
    if let ContextAuthor::Task { task, .. } = by {
        state.peers.wrote.entry(task.clone()).or_default().insert(key.to_owned());
    }
    let entry = ContextEntry { value: value.clone(), version, by: by.clone(), at };
    state.peers.context.insert(key.to_owned(), entry);
    Ok(())
}

/// Who goes round in circles should rather not have the task again.
pub(super) fn hand_over_refused(
    state: &mut RunState,
    event: &'static str,
    task: &TaskIndex,
    agent: Option<&AgentId>,
) -> Result<(), ApplyError> {
    let task = TaskId::Leaf(task.clone());
    still_waits(state, event, &task)?;
    if let (Some(found), Some(agent)) = (state.tasks.get_mut(&task), agent) {
        found.avoid(agent.clone(), "it handed work over in a circle");
    }
    Ok(())
}

/// The task waits: what comes next ends its wait.
pub(super) fn still_waits(state: &RunState, event: &'static str, task: &TaskId) -> Result<(), ApplyError> {
    let waits = state.tasks.get(task).is_some_and(|found| found.waiting.is_some());
    if waits { Ok(()) } else { Err(ApplyError::NotWaiting { task: task.clone(), event }) }
}

pub(super) fn asked(
    state: &mut RunState,
    event: &'static str,
    id: QuestionId,
    (about, question): (&About, &Question),
    (expires, on_timeout): (Millis, OnTimeout),
    now: Millis,
) -> Result<(), ApplyError> {
    let wanted = state.questions.last_key_value().map_or(QuestionId(0), |(id, _)| *id).next();
    if id != wanted {
        return Err(ApplyError::WrongQuestion { run: state.id, id, event });
    }
    let asked = QuestionState {
        about: about.clone(),
        question: question.clone(),
        asked_at: now,
        asked_of: question.to.clone(),
        passed_on: 0,
        expires,
        on_timeout,
        end: None,
    };
    state.questions.insert(id, asked);
    Ok(())
}

/// Time during which the whole run waited for an answer is not counted against its phase.
pub(super) fn ended(
    state: &mut RunState,
    event: &'static str,
    id: QuestionId,
    end: QuestionEnd,
    now: Millis,
) -> Result<(), ApplyError> {
    let was_held = state.is_held();
    let open = open(state, event, id)?;
    open.end = Some(end);
    let since = open.asked_at;
    if was_held && !state.is_held() {
        state.phase_since = state.phase_since.after(now.since(since.max(state.phase_since)));
    }
    Ok(())
}

pub(super) fn passed_on(
    state: &mut RunState,
    event: &'static str,
    id: QuestionId,
    to: &str,
    expires: Millis,
) -> Result<(), ApplyError> {
    let open = open(state, event, id)?;
    open.asked_of = Some(to.to_owned());
    open.passed_on = open.passed_on.saturating_add(1);
    open.expires = expires;
    Ok(())
}

/// With the end of the run nobody waits any more.
pub(super) fn end_all(state: &mut RunState, reason: &str) {
    for question in state.questions.values_mut().filter(|question| question.is_open()) {
        question.end = Some(QuestionEnd::Withdrawn(reason.to_owned()));
    }
    for task in state.tasks.values_mut() {
        task.waiting = None;
    }
}

fn open<'a>(
    state: &'a mut RunState,
    event: &'static str,
    id: QuestionId,
) -> Result<&'a mut QuestionState, ApplyError> {
    let run = state.id;
    let found = state.questions.get_mut(&id).filter(|question| question.is_open());
    found.ok_or(ApplyError::WrongQuestion { run, id, event })
}

/// A run was begun for a task that waits.
pub(super) fn child_begun(
    state: &mut RunState,
    event: &'static str,
    (task, generation): (&TaskId, Generation),
    (run, goal): (RunId, &Goal),
    now: Millis,
) -> Result<(), ApplyError> {
    let waiting = state.tasks.get_mut(task).and_then(|found| found.waiting.as_mut());
    let waiting = waiting.ok_or_else(|| ApplyError::NotWaiting { task: task.clone(), event })?;
    waiting.for_run = Some(run);
    let goal = Box::new(goal.clone());
    let child = Child { task: task.clone(), generation, goal, asked_at: now, end: None };
    state.children.insert(run, child);
    Ok(())
}

/// Word of a child was asked for again. One that is not known is of no interest.
pub(super) fn child_asked(state: &mut RunState, run: RunId, now: Millis) {
    if let Some(child) = state.children.get_mut(&run) {
        child.asked_at = now;
    }
}

/// A child ended: what it used was used by this run.
pub(super) fn child_ended(state: &mut RunState, run: RunId, end: &ChildEnd) {
    if let Some(child) = state.children.get_mut(&run).filter(|child| child.end.is_none()) {
        child.end = Some(Box::new(end.clone()));
        state.usage += end.usage;
    }
}
