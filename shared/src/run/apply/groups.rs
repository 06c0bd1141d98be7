//! What is folded of groups: members that begin, discuss and settle.

use super::super::group::Group;
use super::super::state::{RunState, TaskState};
use super::error::ApplyError;
use super::planning;
use super::task::{at_generation, executable, illegal, move_to};
use crate::flow::{GroupVerdict, Outcome, Pattern, Product, TaskStatus, View};
use crate::ids::{Attempt, Generation, TaskId, TaskIndex};
use crate::time::Millis;

/// Why members stop when their task has ended.
const OVER: &str = "its task does not need it any more";

/// The task is in work, and each member a task of its own that is to be offered.
pub(super) fn begun(
    state: &mut RunState,
    event: &'static str,
    (task, generation): (&TaskIndex, Generation),
    (pattern, members): (Pattern, &[TaskIndex]),
    now: Millis,
) -> Result<(), ApplyError> {
    let id = TaskId::Leaf(task.clone());
    let found = executable(state, &id, event)?;
    if found.status != TaskStatus::Created {
        return Err(illegal(&id, found.status, TaskStatus::Processing));
    }
    let wanted = found.generation.next();
    if generation != wanted {
        return Err(ApplyError::WrongGeneration { task: id, wanted, found: generation });
    }
    found.status = TaskStatus::Processing;
    found.generation = generation;
    found.queue = None;
    found.offered_at = Some(now);
    found.deadline = None;
    found.agent = None;
    found.attempt = Attempt(0);
    found.ack = None;
    found.last_step = 0;
    found.deaths.clear();
    for member in members {
        admit(state, event, task, member)?;
    }
    let members = members.to_vec();
    let group =
        Group { pattern, members, since: now, round: 0, views: Vec::new(), chair: None, verdict: None };
    state.groups.insert(task.clone(), group);
    Ok(())
}

/// A member begins anew. Its generations go on: what is about earlier ones stays closed.
fn admit(
    state: &mut RunState,
    event: &'static str,
    task: &TaskIndex,
    member: &TaskIndex,
) -> Result<(), ApplyError> {
    let id = TaskId::Leaf(member.clone());
    if !member.is_member() || !member.is_same_place(task) {
        return Err(ApplyError::UnknownTask { task: id, event });
    }
    let found = state.tasks.entry(id).or_default();
    let generation = found.generation;
    *found = TaskState { generation, attempt: found.attempt, ..TaskState::new() };
    Ok(())
}

/// Members that gave a result are to think again, knowing what the others found.
pub(super) fn discussed(
    state: &mut RunState,
    event: &'static str,
    (task, generation): (&TaskIndex, Generation),
    (round, views): (u8, &[View]),
    now: Millis,
) -> Result<(), ApplyError> {
    in_work(state, event, task, generation)?;
    for view in views {
        let id = TaskId::Leaf(view.member.clone());
        let found = executable(state, &id, event)?;
        if found.status != TaskStatus::Completed {
            return Err(illegal(&id, found.status, TaskStatus::Created));
        }
        found.status = TaskStatus::Created;
        found.failures = 0;
    }
    if let Some(group) = state.groups.get_mut(task) {
        group.round = round;
        group.views = views.to_vec();
        group.since = now;
    }
    Ok(())
}

/// One more member reads what the others found and gives the verdict.
pub(super) fn chaired(
    state: &mut RunState,
    event: &'static str,
    (task, generation): (&TaskIndex, Generation),
    (chair, views): (&TaskIndex, &[View]),
    now: Millis,
) -> Result<(), ApplyError> {
    in_work(state, event, task, generation)?;
    admit(state, event, task, chair)?;
    if let Some(group) = state.groups.get_mut(task) {
        group.chair = Some(chair.clone());
        group.views = views.to_vec();
        group.since = now;
    }
    Ok(())
}

/// The task ends with the result of one of its members.
pub(super) fn settled(
    state: &mut RunState,
    event: &'static str,
    (task, generation): (&TaskIndex, Generation),
    verdict: &GroupVerdict,
) -> Result<(), ApplyError> {
    in_work(state, event, task, generation)?;
    let counts = TaskId::Leaf(verdict.counts.clone());
    let given = executable(state, &counts, event)?.outcome.clone();
    let outcome = given
        .map(|outcome| marked(outcome, verdict))
        .ok_or(ApplyError::UnknownTask { task: counts, event })?;
    let id = TaskId::Leaf(task.clone());
    let found = at_generation(state, &id, generation, event)?;
    move_to(found, &id, TaskStatus::Completed)?;
    found.outcome = Some(outcome);
    state.stale.remove(task);
    planning::count_end(state, &id, true);
    if let Some(group) = state.groups.get_mut(task) {
        group.verdict = Some(verdict.clone());
    }
    Ok(())
}

/// The outcome as that of the task. Whoever uses its result reads who sees it differently; what was used stands with
/// the members.
fn marked(outcome: Outcome, verdict: &GroupVerdict) -> Outcome {
    let mut outcome = Outcome { last_step: None, ..outcome };
    if let (Some(Product::Result(result)), Some(dissent)) = (&mut outcome.product, verdict.dissent_in_words())
    {
        result.conclusion = format!("{} ({dissent})", result.conclusion.trim_end());
    }
    outcome
}

fn in_work(
    state: &mut RunState,
    event: &'static str,
    task: &TaskIndex,
    generation: Generation,
) -> Result<(), ApplyError> {
    let id = TaskId::Leaf(task.clone());
    let status = at_generation(state, &id, generation, event)?.status;
    if state.group_in_work(task).is_some() {
        Ok(())
    } else {
        Err(illegal(&id, status, TaskStatus::Completed))
    }
}

/// Whoever still works for a task that has ended, or is to be done again, stops. What its outcome says later is counted
/// as used.
pub(super) fn close_ended(state: &mut RunState) {
    let over: Vec<TaskId> = state
        .groups
        .iter()
        .filter(|(task, _)| state.group_in_work(task).is_none())
        .flat_map(|(_, group)| group.everybody())
        .map(|member| TaskId::Leaf(member.clone()))
        .filter(|member| state.tasks.get(member).is_some_and(|found| !found.status.is_ended()))
        .collect();
    for member in over {
        if let Some(found) = state.tasks.get_mut(&member) {
            found.status = TaskStatus::Aborted;
            found.agent = None;
            found.waiting = None;
            found.answered = None;
            found.continues = None;
            found.reasons.push(OVER.to_owned());
        }
    }
}
