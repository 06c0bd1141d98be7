//! Leaving tasks out.

use muster_shared::flow::{Plan, TaskStatus};
use muster_shared::ids::TaskIndex;
use muster_shared::plan::unknown_task;
use muster_shared::run::event::TaskSkipped;
use muster_shared::run::{Phase, Request, RunState};

use super::super::builder::DecisionBuilder;
use super::super::groups;
use super::{asked_by, interrupt, plan_of};

/// Leaves out a task and all below it. What depends on it goes on without it.
pub(in crate::decide) fn skip(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    task: &TaskIndex,
) -> Result<(), String> {
    if task.is_member() {
        return groups::skip(decision, request, task);
    }
    let run = decision.require_open()?;
    let leaves = skippable(run, plan_of(run)?, task)?;
    let reason = asked_by(request);
    for leaf in leaves {
        interrupt(decision, &leaf.to_task_id(), &reason);
        decision.emit(TaskSkipped { task: leaf, reason: reason.clone(), by_person: true });
    }
    Ok(())
}

/// The leaves that are left out with a task: those that have not given a result.
fn skippable(run: &RunState, plan: &Plan, task: &TaskIndex) -> Result<Vec<TaskIndex>, String> {
    if !plan.tasks.contains_key(task) {
        return Err(unknown_task(plan, task));
    }
    if run.phase == Phase::Writing {
        return Err("the report is being written: all tasks have ended".to_owned());
    }
    let statuses = run.statuses();
    let status = |leaf: &TaskIndex| statuses.get(leaf).copied().unwrap_or(TaskStatus::Created);
    let is_open = |leaf: &&TaskIndex| {
        !matches!(status(leaf), TaskStatus::Completed | TaskStatus::Skipped | TaskStatus::Split)
    };
    let leaves: Vec<TaskIndex> = plan.leaves_of(task).filter(is_open).cloned().collect();
    if !leaves.is_empty() {
        return Ok(leaves);
    }
    if plan.leaves_of(task).all(|leaf| status(leaf) == TaskStatus::Skipped) {
        return Err(format!("{task} is left out already"));
    }
    Err(format!("{task} has ended with a result, which is kept; `muster redo` has it done again"))
}
