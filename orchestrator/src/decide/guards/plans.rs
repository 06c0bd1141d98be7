//! Plans that no planner gave: those that people bring and change, that come of a blueprint or with a fork, and what tasks
//! hand over. Guards are asked about each before it counts.

use std::collections::BTreeSet;

use muster_shared::flow::{Plan, PlanDraft, Product, TaskDraft};
use muster_shared::ids::{AgentId, Role, TaskId, TaskIndex};
use muster_shared::plan;
use muster_shared::run::event::{
    AskedAbout, HandOver, PlanEdited, PlanRefused, RequestRefused, RunFailed, StepsExpanded,
};
use muster_shared::run::{Held, Request, RequestAction, RunState};

use super::super::builder::DecisionBuilder;
use super::super::{blueprint, control, delegate, planning, questions};
use super::verdict::Refused;
use super::{Question, ask, has_guards};

/// Has guards asked about the plan that came with the goal. Tells whether it waits for them.
pub(in crate::decide) fn hold_brought(decision: &mut DecisionBuilder<'_>, brought: &PlanDraft) -> bool {
    has_guards(decision) && ask_about(decision, brought.clone(), AskedAbout::BroughtPlan)
}

/// The same for what is still to be done of the plan that a fork took over: its guards may be others.
pub(in crate::decide) fn hold_taken_over(decision: &mut DecisionBuilder<'_>) -> bool {
    let Some(left) = decision.open().and_then(taken_over) else { return false };
    has_guards(decision) && ask_about(decision, left, AskedAbout::TakenOver)
}

/// The same for the tasks by which the plan grows that is made from a blueprint.
pub(in crate::decide) fn hold_steps(decision: &mut DecisionBuilder<'_>, steps: &StepsExpanded) -> bool {
    if !has_guards(decision) {
        return false;
    }
    let Some(draft) = decision.open().and_then(|run| of_steps(run, steps)) else { return false };
    ask_about(decision, draft, AskedAbout::Steps(Box::new(steps.clone())))
}

/// The same for a person's change of the plan.
///
/// # Errors
/// When another one waits for them: which of the two came last would be a matter of chance.
pub(in crate::decide) fn hold_edit(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
) -> Result<bool, String> {
    let Some(run) = decision.open().filter(|_| has_guards(decision)) else { return Ok(false) };
    let Some(draft) = of_edit(run, request) else { return Ok(false) };
    if let Some(other) = run.guarding.edit() {
        let by = questions::author(other);
        return Err(format!(
            "a change of the plan by {by} waits for guards: ask again when they have answered"
        ));
    }
    Ok(ask_about(decision, draft, AskedAbout::Edit(Box::new(request.clone()))))
}

/// The same for work that a task hands over.
pub(in crate::decide) fn hold_hand_over(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    part: &TaskDraft,
    agent: Option<AgentId>,
) -> bool {
    if !has_guards(decision) {
        return false;
    }
    let Some(run) = decision.open() else { return false };
    let Some(generation) = run.tasks.get(task).map(|state| state.generation) else { return false };
    let (product, maker) = (Product::Plan(one(part)), role_of(run, task));
    let about = HandOver { task: task.clone(), generation, part: part.clone(), agent };
    let question = Question { product: &product, maker, outcome: None };
    ask(decision, question, AskedAbout::HandOver(Box::new(about)))
}

fn ask_about(decision: &mut DecisionBuilder<'_>, plan: PlanDraft, about: AskedAbout) -> bool {
    ask(decision, Question::of_nobody(&Product::Plan(plan)), about)
}

/// Whether the plan may be changed: not while guards look at all of it.
pub(in crate::decide) fn check_free(run: &RunState) -> Result<(), String> {
    if run.guarding.holds_plan() {
        return Err("the plan waits for guards: ask again when they have answered".to_owned());
    }
    Ok(())
}

/// What is still to be done of a plan that was taken over.
pub(super) fn taken_over(run: &RunState) -> Option<PlanDraft> {
    let plan = run.plan.as_ref()?;
    Some(plan::shown(plan, &open_leaves(run, plan)))
}

fn open_leaves(run: &RunState, plan: &Plan) -> BTreeSet<TaskIndex> {
    let has_ended = |index: &TaskIndex| run.planned(index).is_some_and(|state| state.status.is_ended());
    plan.leaves().map(|(index, _)| index).filter(|index| !has_ended(index)).cloned().collect()
}

/// The tasks by which the plan grows.
pub(super) fn of_steps(run: &RunState, steps: &StepsExpanded) -> Option<PlanDraft> {
    let whole = blueprint::grown(run.plan.as_ref()?, &steps.tasks);
    Some(plan::shown(&whole, &steps.tasks.keys().cloned().collect()))
}

/// What the plan would have anew by a person's change; nothing where it would have nothing.
pub(super) fn of_edit(run: &RunState, request: &Request) -> Option<PlanDraft> {
    match &request.action {
        RequestAction::Approve { plan, .. } => plan.as_deref().cloned(),
        RequestAction::Edit { task: Some(task), goal } => control::edited(run, task, goal),
        RequestAction::Edit { task: None, .. }
        | RequestAction::Cancel
        | RequestAction::Pause
        | RequestAction::Resume { .. }
        | RequestAction::Skip { .. }
        | RequestAction::Redo { .. }
        | RequestAction::Reject { .. }
        | RequestAction::Answer { .. }
        | RequestAction::SetContext { .. } => None,
    }
}

/// A plan of one task.
pub(super) fn one(task: &TaskDraft) -> PlanDraft {
    PlanDraft { tasks: vec![task.clone()], ..PlanDraft::default() }
}

/// Whose work a task is.
pub(super) fn role_of(run: &RunState, task: &TaskId) -> Option<Role> {
    let planned = run.plan_task(&task.as_leaf()?.planned())?;
    Some(planned.role.clone())
}

/// What follows from what guards said of a plan that no planner gave.
pub(super) fn answered(
    decision: &mut DecisionBuilder<'_>,
    held: Held,
    left: Option<Product>,
    refused: Option<Refused>,
) {
    let changed = match left {
        Some(Product::Plan(changed)) => Some(changed),
        Some(_) | None => None,
    };
    let why = refused.map(|refused| refused.why);
    match (held, why) {
        (Held::BroughtPlan, Some(why)) => fail(decision, "the plan that was brought", why),
        (Held::BroughtPlan, None) => {
            let brought = || decision.open().and_then(|run| run.goal.plan.as_deref().cloned());
            if let Some(plan) = changed.or_else(brought) {
                planning::take_over(decision, &plan);
            }
        }
        (Held::TakenOver, Some(why)) => fail(decision, "the plan that was taken over", why),
        (Held::TakenOver, None) => {
            if let Some(changed) = changed {
                change_taken_over(decision, &changed);
            }
        }
        (Held::Steps(steps), Some(why)) => blueprint::refused(decision, &steps, why),
        (Held::Steps(steps), None) => blueprint::let_through(decision, *steps, changed.as_ref()),
        (Held::Edit(request), why) => {
            let done = match why {
                Some(why) => Err(format!("the change was {why}; the plan stays as it was")),
                None => control::let_through(decision, &request, changed.as_ref()),
            };
            if let Err(reason) = done {
                decision.emit(RequestRefused { id: request.id, reason });
            }
        }
        (Held::HandOver(wanted), Some(why)) => delegate::refused(decision, &wanted, &why),
        (Held::HandOver(wanted), None) => delegate::let_through(decision, &wanted, changed.as_ref()),
        (Held::Outcome { .. } | Held::Report(_) | Held::Stopped(_) | Held::GivenUp(_), _) => {}
    }
}

/// Ends a run whose plan was refused before anything was done.
fn fail(decision: &mut DecisionBuilder<'_>, what: &str, why: String) {
    let reason = format!("{what} was {why}");
    decision.emit(PlanRefused { reasons: vec![why] });
    decision.emit(RunFailed { reason });
}

/// What guards made of a plan that was taken over, if it is as good as the plan was.
fn change_taken_over(decision: &mut DecisionBuilder<'_>, changed: &PlanDraft) {
    let Some((run, before)) = decision.open().and_then(|run| Some((run, run.plan.clone()?))) else { return };
    let these = open_leaves(run, &before);
    match planning::changed(decision, &before, &these, changed) {
        Ok(tasks) => {
            let mut plan = before;
            plan.tasks.extend(tasks);
            decision.emit(PlanEdited { plan, reason: "changed by guards".to_owned() });
        }
        Err(why) => fail(decision, "the plan that was taken over", cannot_be_carried_out(&why)),
    }
}

/// What is said of a change of guards that the rules of plans do not allow.
pub(in crate::decide) fn cannot_be_carried_out(why: &str) -> String {
    format!("changed by guards into what cannot be carried out: {why}")
}
