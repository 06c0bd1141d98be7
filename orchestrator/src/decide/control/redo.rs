//! Doing tasks again, and whatever used their results.

use std::collections::BTreeSet;

use muster_shared::flow::{Plan, TaskStatus};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::plan::{order, unknown_task};
use muster_shared::run::{Request, RunState, TaskState};

use super::super::builder::DecisionBuilder;
use super::super::{budget, groups};
use super::{asked_by, plan_of, reopen, stop_writing};

/// Has a task and all below it done again, with everything that used what it gave.
pub(in crate::decide) fn redo(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    task: &TaskIndex,
) -> Result<(), String> {
    if task.is_member() {
        return groups::redo(decision, request, task);
    }
    let run = decision.require_open()?;
    let plan = plan_of(run)?;
    if !plan.tasks.contains_key(task) {
        return Err(unknown_task(plan, task));
    }
    let begun = begun_below(run, plan, task);
    if begun.is_empty() {
        return Err(format!("{task} has not begun: there is nothing to do again"));
    }
    can_be_paid_for(run, &begun)?;
    let reason = format!("it is to be done again: {}", asked_by(request));
    // Without a reason, nothing of the result is known to be worth a look.
    begin_again(decision, &begun, &reason, !request.reason.trim().is_empty());
    Ok(())
}

/// A report that is drafted is not given up for what nothing is left to do again with.
pub(super) fn can_be_paid_for(run: &RunState, leaves: &BTreeSet<TaskIndex>) -> Result<(), String> {
    let can_be = |leaf: &TaskIndex| budget::affords(run, &leaf.to_task_id());
    if run.drafts.kept.is_none() || leaves.is_empty() || leaves.iter().any(can_be) {
        return Ok(());
    }
    Err(format!("{}, and the report is drafted already: begin a new run with more", budget::USED_UP))
}

/// The leaves of a task that were begun or have ended.
pub(super) fn begun_below(run: &RunState, plan: &Plan, task: &TaskIndex) -> BTreeSet<TaskIndex> {
    plan.leaves_of(task).filter(|leaf| was_begun(run, leaf)).cloned().collect()
}

/// Opens these leaves again, what used their results, the reflections on both, and the report. `shows_result` has the
/// agents of these leaves shown what they gave before.
pub(in crate::decide) fn begin_again(
    decision: &mut DecisionBuilder<'_>,
    leaves: &BTreeSet<TaskIndex>,
    reason: &str,
    shows_result: bool,
) {
    let users = decision.open().map(|run| users(run, leaves)).unwrap_or_default();
    let named: Vec<String> = leaves.iter().map(TaskIndex::to_string).collect();
    let follows = format!("what it used is done again ({}): {reason}", named.join(", "));
    for leaf in leaves {
        again(decision, leaf, reason, shows_result);
    }
    for leaf in &users {
        again(decision, leaf, &follows, false);
    }
    stop_writing(decision, reason);
}

fn again(decision: &mut DecisionBuilder<'_>, leaf: &TaskIndex, reason: &str, shows_result: bool) {
    reopen(decision, &leaf.to_task_id(), reason, shows_result);
    reopen(decision, &TaskId::Reflect(leaf.clone()), reason, false);
}

/// Deals with the leaves that were begun before the plan gave them more to build on, and with what used their results.
pub(in crate::decide) fn catch_up(decision: &mut DecisionBuilder<'_>, before: &Plan) {
    let Some(run) = decision.open() else { return };
    let Some(plan) = &run.plan else { return };
    let skipped =
        |leaf: &TaskIndex| run.planned(leaf).is_some_and(|state| state.status == TaskStatus::Skipped);
    let builds_on_more =
        |leaf: &TaskIndex| !order::dependencies(plan, leaf).is_subset(&order::dependencies(before, leaf));
    let begun = plan.leaves().map(|(leaf, _)| leaf).filter(|leaf| was_begun(run, leaf) && !skipped(leaf));
    let late: BTreeSet<TaskIndex> = begun.filter(|leaf| builds_on_more(leaf)).cloned().collect();
    let users = users(run, &late);
    for leaf in late.iter().chain(&users) {
        again(decision, leaf, "what it builds on was split after it had begun", false);
    }
}

/// The leaves that used what these gave, directly or not. What was left out stays so.
fn users(run: &RunState, leaves: &BTreeSet<TaskIndex>) -> BTreeSet<TaskIndex> {
    let Some(plan) = &run.plan else { return BTreeSet::new() };
    let skipped =
        |leaf: &TaskIndex| run.planned(leaf).is_some_and(|state| state.status == TaskStatus::Skipped);
    let dependents = order::dependents(plan, leaves).into_iter();
    dependents.filter(|leaf| !leaves.contains(leaf) && was_begun(run, leaf) && !skipped(leaf)).collect()
}

fn was_begun(run: &RunState, leaf: &TaskIndex) -> bool {
    run.planned(leaf).is_some_and(TaskState::was_begun)
}
