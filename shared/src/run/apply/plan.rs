//! What a change of plan does to the tasks.

use std::collections::BTreeMap;

use super::super::event::FailedPlan;
use super::super::state::RunState;
use super::super::task_state::TaskState;
use super::error::{ApplyError, ApplyResult};
use super::task::move_to;
use crate::flow::{Plan, PlanTask, TaskStatus};
use crate::ids::{TaskId, TaskIndex};
use crate::plan::order;
use crate::plan::progress::{self, Detail};

/// Takes over a plan: new tasks appear, tasks that were not begun may go, leaves may be split.
pub(in crate::run) fn change_plan(state: &mut RunState, plan: &Plan) -> ApplyResult {
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
            task.answered = None;
        }
    }
    for index in plan.tasks.keys() {
        state.tasks.entry(TaskId::Leaf(index.clone())).or_default();
    }
    state.plan = Some(plan.clone());
    Ok(())
}

/// Takes over a plan that has one task more.
///
/// # Errors
/// When the task is not new, or nobody could do it.
pub(in crate::run) fn add_task<'a>(
    state: &'a mut RunState,
    task: &TaskIndex,
    plan: &Plan,
) -> ApplyResult<&'a mut TaskState> {
    let unknown = || ApplyError::UnknownTask { task: TaskId::Leaf(task.clone()) };
    let is_new = state.plan.as_ref().is_some_and(|plan| !plan.tasks.contains_key(task));
    if !is_new || !plan.is_leaf(task) {
        return Err(unknown());
    }
    change_plan(state, plan)?;
    state.planned_mut(task).ok_or_else(unknown)
}

/// Adds tasks to the plan; those that are there stay as they are.
pub(in crate::run) fn grow_plan(state: &mut RunState, tasks: &BTreeMap<TaskIndex, PlanTask>) {
    let plan = state.plan.get_or_insert_default();
    for (index, task) in tasks {
        plan.tasks.entry(index.clone()).or_insert_with(|| task.clone());
        state.tasks.entry(TaskId::Leaf(index.clone())).or_default();
    }
}

/// A parent's state follows from the leaves below it. One that came about by a split stays `Split`.
pub(super) fn derive_parents(state: &mut RunState) {
    let Some(plan) = &state.plan else { return };
    let mut parents = plan.parents().peekable();
    if parents.peek().is_none() {
        return;
    }
    let statuses = state.statuses();
    for index in parents {
        if let Some(task) = state.tasks.get_mut(&TaskId::Leaf(index.clone()))
            && task.status != TaskStatus::Split
        {
            task.status = order::status_of(plan, &statuses, index);
        }
    }
}

/// The plan as it stands, as one that failed.
#[must_use]
pub fn failed_plan(state: &RunState) -> FailedPlan {
    let lines = progress::lines(state, Detail::Decided).into_iter();
    let tasks = lines.map(|line| line.to_string()).collect();
    FailedPlan { tasks, reasons: state.planning.reasons_to_replan().to_vec() }
}
