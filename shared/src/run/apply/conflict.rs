//! What is folded when results contradict each other.

use std::collections::BTreeMap;

use super::super::conflicts::{ConflictEnd, ConflictState, Settling};
use super::super::state::{RunState, TaskState};
use super::error::ApplyError;
use super::plan::change_plan;
use crate::conflict::Side;
use crate::flow::{ConflictStep, Plan};
use crate::ids::{TaskId, TaskIndex};
use crate::time::Millis;

/// A conflict was found, or another task takes part in one that is being settled.
pub(super) fn found(
    state: &mut RunState,
    event: &'static str,
    (id, subject): (u32, &str),
    (sides, certain): (&[Side], bool),
    (until, now): (Millis, Millis),
) -> Result<(), ApplyError> {
    if let Some(known) = state.conflicts.get_mut(&id) {
        if !known.is_open() {
            return Err(ApplyError::NoSuchConflict { id, event });
        }
        known.sides = sides.to_vec();
        known.certain |= certain;
        return Ok(());
    }
    let wanted = state.conflicts.last_key_value().map_or(0, |(id, _)| *id).saturating_add(1);
    if id != wanted {
        return Err(ApplyError::NoSuchConflict { id, event });
    }
    let conflict = ConflictState {
        subject: subject.to_owned(),
        sides: sides.to_vec(),
        certain,
        found_at: now,
        until,
        steps: std::collections::BTreeSet::new(),
        verified_by: None,
        end: None,
        redone: Vec::new(),
    };
    state.conflicts.insert(id, conflict);
    Ok(())
}

/// Somebody is asked.
pub(super) fn examined(
    state: &mut RunState,
    event: &'static str,
    (id, step): (u32, Option<ConflictStep>),
    tasks: &BTreeMap<u32, Settling>,
) -> Result<(), ApplyError> {
    open(state, event, id)?.steps.extend(step);
    for (number, settling) in tasks {
        if state.settling.insert(*number, settling.clone()).is_some() {
            return Err(ApplyError::NoSuchConflict { id, event });
        }
        state.tasks.insert(TaskId::Settle(*number), TaskState::new());
    }
    Ok(())
}

/// The plan has a task more, which finds out what holds.
pub(super) fn verification(
    state: &mut RunState,
    event: &'static str,
    (id, task): (u32, &TaskIndex),
    plan: &Plan,
) -> Result<(), ApplyError> {
    open(state, event, id)?;
    let is_new = state.plan.as_ref().is_some_and(|plan| !plan.tasks.contains_key(task));
    if !is_new || !plan.is_leaf(task) {
        return Err(ApplyError::UnknownTask { task: TaskId::Leaf(task.clone()), event });
    }
    change_plan(state, plan)?;
    let conflict = open(state, event, id)?;
    conflict.steps.insert(ConflictStep::Verify);
    conflict.verified_by = Some(task.clone());
    Ok(())
}

/// A conflict ended.
pub(super) fn resolved(
    state: &mut RunState,
    event: &'static str,
    id: u32,
    (end, redone): (&ConflictEnd, &[TaskIndex]),
) -> Result<(), ApplyError> {
    let conflict = open(state, event, id)?;
    conflict.end = Some(end.clone());
    conflict.redone = redone.to_vec();
    Ok(())
}

fn open<'a>(
    state: &'a mut RunState,
    event: &'static str,
    id: u32,
) -> Result<&'a mut ConflictState, ApplyError> {
    let found = state.conflicts.get_mut(&id).filter(|conflict| conflict.is_open());
    found.ok_or(ApplyError::NoSuchConflict { id, event })
}
