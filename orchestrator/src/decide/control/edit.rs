//! Changing goals.

use std::collections::BTreeSet;

use muster_shared::flow::{Goal, Plan, PlanDraft, PlanTask};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::plan::check::MAX_TEXT_BYTES;
use muster_shared::plan::{self, goal_with_indices, reference, unknown_task};
use muster_shared::run::event::GoalEdited;
use muster_shared::run::{Phase, Request, RunState};

use super::super::builder::DecisionBuilder;
use super::super::{groups, guards, outcome::want_change, survey};
use super::redo::{begin_again, begun_below, can_be_paid_for};
use super::{asked_by, plan_of, reopen, stop_review, stop_writing};

/// Changes the goal of a task, or that of the run.
pub(in crate::decide) fn edit(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    task: Option<&TaskIndex>,
    goal: &str,
) -> Result<(), String> {
    match task {
        Some(task) => of_task(decision, request, task, goal.trim()),
        None => of_run(decision, request, goal.trim()),
    }
}

/// Guards are asked first, where there are some for plans.
fn of_task(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    task: &TaskIndex,
    goal: &str,
) -> Result<(), String> {
    let run = decision.require_open()?;
    check_all(run, task, goal)?;
    if guards::hold_edit(decision, request)? {
        return Ok(());
    }
    change(decision, request, task, goal)
}

/// Changes the goal of a task. One that was begun is done again.
fn change(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    task: &TaskIndex,
    goal: &str,
) -> Result<(), String> {
    let Some(run) = decision.open() else { return Ok(()) };
    let (goal, begun) = check_all(run, task, goal)?;
    let reason = asked_by(request);
    decision.emit(GoalEdited { task: Some(task.clone()), goal, reason: reason.clone() });
    if !begun.is_empty() {
        begin_again(decision, &begun, &format!("the goal of {task} was changed: {reason}"), false);
    }
    Ok(())
}

/// The goal as the plan would keep it, and the leaves that would be done again.
fn check_all(run: &RunState, task: &TaskIndex, goal: &str) -> Result<(String, BTreeSet<TaskIndex>), String> {
    let goal = named(run, task, goal)?;
    check(run, task, &goal)?;
    let begun = begun_below(run, plan_of(run)?, task);
    can_be_paid_for(run, &begun)?;
    Ok((goal, begun))
}

/// The task as it would stand, below those that it is a part of: what guards are shown.
pub(in crate::decide) fn edited(run: &RunState, task: &TaskIndex, goal: &str) -> Option<PlanDraft> {
    let plan = with_goal(run, task, goal)?;
    Some(plan::shown(&plan, &BTreeSet::from([task.clone()])))
}

fn with_goal(run: &RunState, task: &TaskIndex, goal: &str) -> Option<Plan> {
    let goal = named(run, task, goal.trim()).ok()?;
    let mut plan = run.plan.clone()?;
    plan.tasks.get_mut(task)?.goal = goal;
    Some(plan)
}

/// Changes the goal of a task that guards had nothing against, or that they changed. Nothing else of it is theirs to change.
pub(super) fn let_through(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    task: &TaskIndex,
    goal: &str,
    changed: Option<&PlanDraft>,
) -> Result<(), String> {
    let Some(changed) = changed else { return change(decision, request, task, goal.trim()) };
    let Some(run) = decision.open() else { return Ok(()) };
    let cannot = |why: &str| format!("the change was {}", guards::cannot_be_carried_out(why));
    // Without it the plan has changed so that the task is gone, and what is said of that is said below.
    let Some(plan) = with_goal(run, task, goal) else { return change(decision, request, task, goal.trim()) };
    let reworded = plan::reworded(&plan, &BTreeSet::from([task.clone()]), changed);
    let reworded = reworded.map_err(|why| cannot(&why))?;
    let Some(new) = reworded.get(task) else { return Ok(()) };
    let goal = new.goal.clone();
    if plan.tasks.get(task).is_some_and(|was| PlanTask { goal: was.goal.clone(), ..new.clone() } != *was) {
        return Err(cannot("of a task that a person changed, only the goal can be another"));
    }
    change(decision, request, task, &goal).map_err(|why| cannot(&why))
}

/// The goal with indices in place of the names of tasks, as plans keep it.
fn named(run: &RunState, task: &TaskIndex, goal: &str) -> Result<String, String> {
    if !plan_of(run)?.tasks.contains_key(task) {
        return Ok(goal.to_owned());
    }
    goal_with_indices(plan_of(run)?, task, goal).map_err(|problem| problem.to_string())
}

fn check(run: &RunState, task: &TaskIndex, goal: &str) -> Result<(), String> {
    if task.is_member() {
        return Err(groups::no_own_goal(task));
    }
    let plan = plan_of(run)?;
    if !plan.tasks.contains_key(task) {
        return Err(unknown_task(plan, task));
    }
    if goal.is_empty() {
        return Err("the goal is empty: say in a sentence or two what is to be done".to_owned());
    }
    if goal.len() > MAX_TEXT_BYTES {
        return Err(format!("the goal has {} bytes, {MAX_TEXT_BYTES} is the most for a task", goal.len()));
    }
    reference::resolve(goal, plan, &[], &run.peers.context).map_err(|wrong| wrong.to_string())?;
    check_values(run, plan, task, goal)
}

/// No task may come to use a value that nobody writes.
fn check_values(run: &RunState, plan: &Plan, task: &TaskIndex, goal: &str) -> Result<(), String> {
    let values = survey::values(run);
    let mut edited = plan.clone();
    if let Some(task) = edited.tasks.get_mut(task) {
        goal.clone_into(&mut task.goal);
    }
    let before = values.unwritten(plan);
    match values.unwritten(&edited).into_iter().find(|problem| !before.contains(problem)) {
        None => Ok(()),
        Some(problem) => Err(format!(
            "{problem}; or write it first: `muster context {} --write KEY=VALUE`",
            run.id.short()
        )),
    }
}

/// The plan was made for the old goal. One that is being made is made anew; one that stands is refined, even if the
/// limit of refinements is reached: that limit is for what agents wish, not for what people decide.
fn of_run(decision: &mut DecisionBuilder<'_>, request: &Request, goal: &str) -> Result<(), String> {
    Goal::new(goal).check().map_err(|wrong| wrong.to_string())?;
    let reason = asked_by(request);
    stop_review(decision, &reason);
    decision.emit(GoalEdited { task: None, goal: goal.to_owned(), reason: reason.clone() });
    let run = decision.require_open()?;
    let why = format!("the goal of the run was changed: {reason}");
    match run.phase {
        Phase::Planning => reopen(decision, &TaskId::Plan, &why, false),
        Phase::Executing | Phase::Writing => {
            stop_writing(decision, &why);
            if decision.open().is_some_and(|run| run.planning.is_replanning()) {
                reopen(decision, &TaskId::Plan, &why, false);
            }
            want_change(decision, why);
        }
        Phase::Ended => {}
    }
    Ok(())
}
