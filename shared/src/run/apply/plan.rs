//! What a change of plan does to the tasks.

use std::collections::BTreeMap;

use super::super::state::RunState;
use super::error::ApplyError;
use super::task::move_to;
use crate::flow::{Plan, PlanTask, TaskStatus};
use crate::ids::{TaskId, TaskIndex};
use crate::plan::order;

/// Takes over a plan: new tasks appear, tasks that were not begun may go, leaves may be split.
pub(super) fn change_plan(state: &mut RunState, plan: &Plan) -> Result<(), ApplyError> {
    let before = state.plan.take().unwrap_or_default();
    for index in before.tasks.keys() {
        let id = TaskId::Leaf(index.clone());
        if !plan.tasks.contains_key(index) {
            let status = state.tasks.get(&id).map_or(TaskStatus::Created, |task| task.status);
            if status != TaskStatus::Created {
                return Err(ApplyError::PlanLostTask { run: state.id, task: index.clone(), status });
            }
            state.tasks.remove(&id);
        } else if before.is_leaf(index) && !plan.is_leaf(index) {
            let task = state.tasks.entry(id.clone()).or_default();
            move_to(task, &id, TaskStatus::Split)?;
            task.agent = None;
            task.waiting = None;
            task.answered = None;
        }
    }
    for index in plan.tasks.keys() {
        state.tasks.entry(TaskId::Leaf(index.clone())).or_default();
    }
    state.plan = Some(plan.clone());
    Ok(())
}

/// Adds tasks to the plan; those that are there stay as they are.
pub(super) fn grow_plan(state: &mut RunState, tasks: &BTreeMap<TaskIndex, PlanTask>) {
    let plan = state.plan.get_or_insert_default();
    for (index, task) in tasks {
        plan.tasks.entry(index.clone()).or_insert_with(|| task.clone());
        state.tasks.entry(TaskId::Leaf(index.clone())).or_default();
    }
}

/// A parent's state follows from the leaves below it. One that came about by a split stays `Split`.
pub(super) fn derive_parents(state: &mut RunState) {
    let Some(plan) = &state.plan else { return };
    let statuses = state.statuses();
    for index in plan.tasks.keys().filter(|index| !plan.is_leaf(index)) {
        if let Some(task) = state.tasks.get_mut(&TaskId::Leaf(index.clone()))
            && task.status != TaskStatus::Split
        {
            task.status = order::status_of(plan, &statuses, index);
        }
    }
}
