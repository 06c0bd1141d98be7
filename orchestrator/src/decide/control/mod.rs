//! What people and programs ask of a run while it goes on. A request that cannot be met is refused with the reason
//! on record, so that whoever asked reads it there; one about a run that has ended changes nothing.

mod edit;
mod pause;
mod redo;
mod skip;

use muster_shared::flow::Plan;
use muster_shared::ids::TaskId;
use muster_shared::run::event::{RequestRefused, RunAborted, TaskReopened};
use muster_shared::run::{Group, Request, RunState, StopReason};

use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::{draft_review, groups, partial, survey};

pub(super) use edit::edit;
pub(super) use pause::{pause, put_down, resume, stop_early_bird};
pub(super) use redo::{begin_again, catch_up, redo};
pub(super) use skip::skip;

/// Stops the run. A run that has ended stays as it is.
pub(super) fn cancel(decision: &mut DecisionBuilder<'_>, reason: &str, by: &str) {
    let by = if by.is_empty() { "somebody" } else { by };
    let reason =
        if reason.is_empty() { format!("cancelled by {by}") } else { format!("cancelled by {by}: {reason}") };
    abort(decision, StopReason::Cancelled, reason);
}

/// Stops the run, whatever is in work. What there is to report is kept unless nobody wants it.
pub(super) fn abort(decision: &mut DecisionBuilder<'_>, why: StopReason, reason: String) {
    match why {
        StopReason::Cancelled | StopReason::Refused => {}
        StopReason::DeadlinePassed | StopReason::BudgetExhausted => groups::conclude(decision, &reason),
    }
    if matches!(why, StopReason::DeadlinePassed | StopReason::BudgetExhausted)
        && draft_review::rescue(decision, &reason)
    {
        return;
    }
    let Some(run) = decision.open() else { return };
    let report = match why {
        // Who cancels wants no answer any more; what was refused has none.
        StopReason::Cancelled | StopReason::Refused => None,
        StopReason::DeadlinePassed | StopReason::BudgetExhausted => {
            partial::report(run, &reason).map(Box::new)
        }
    };
    decision.effect(Effect::CancelRun { reason: reason.clone() });
    decision.emit(RunAborted { why, reason, report });
}

/// Does what is asked, once; what cannot be done is refused.
pub(super) fn obey(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    act: impl FnOnce(&mut DecisionBuilder<'_>, &Request) -> Result<(), String>,
) {
    let is_done = |run: &RunState| run.control.requests.contains(&request.id);
    if decision.open().is_none_or(is_done) || !decision.takes_up(request.id) {
        return;
    }
    if let Err(reason) = act(decision, request) {
        decision.emit(RequestRefused { id: request.id, reason });
    }
}

/// Who asked, and why, in a few words.
pub(super) fn asked_by(request: &Request) -> String {
    let by = if request.by.is_empty() { "somebody" } else { &request.by };
    if request.reason.is_empty() {
        format!("asked by {by}")
    } else {
        format!("{} (asked by {by})", request.reason)
    }
}

/// The plan, or why nothing can be asked of its tasks.
fn plan_of(run: &RunState) -> Result<&Plan, String> {
    run.plan.as_ref().ok_or_else(|| "there is no plan yet: ask again once there is one".to_owned())
}

/// Interrupts whoever has the newest generation of a task in hand.
pub(super) fn interrupt(decision: &mut DecisionBuilder<'_>, task: &TaskId, reason: &str) {
    let group = decision.open().zip(task.as_leaf()).and_then(|(run, index)| run.group_in_work(index));
    let members = group.into_iter().flat_map(Group::everybody);
    let members: Vec<TaskId> = members.map(|member| TaskId::Leaf(member.clone())).collect();
    for held in members.iter().chain([task]) {
        interrupt_one(decision, held, reason);
    }
}

fn interrupt_one(decision: &mut DecisionBuilder<'_>, task: &TaskId, reason: &str) {
    let held = decision.open().and_then(|run| run.tasks.get(task));
    let Some(state) = held.filter(|state| survey::is_offered(state)) else { return };
    let (generation, agent) = (state.generation, state.agent.clone());
    decision.effect(Effect::CancelTask { task: task.clone(), generation, agent, reason: reason.to_owned() });
}

/// Stops the writing of the report: what it is to be made of changes.
fn stop_writing(decision: &mut DecisionBuilder<'_>, reason: &str) {
    stop_review(decision, reason);
    reopen(decision, &TaskId::Write, reason);
}

/// Whoever reviews the draft of a report that is not to be delivered is told so.
fn stop_review(decision: &mut DecisionBuilder<'_>, reason: &str) {
    if let Some((number, _)) = decision.open().and_then(|run| run.drafts.open()) {
        interrupt(decision, &TaskId::DraftReview(number), reason);
    }
}

/// Opens a task again if it was begun.
fn reopen(decision: &mut DecisionBuilder<'_>, task: &TaskId, reason: &str) {
    if decision.open().and_then(|run| run.tasks.get(task)).is_some_and(|state| state.status.was_begun()) {
        interrupt(decision, task, reason);
        stop_review(decision, reason);
        decision.emit(TaskReopened { task: task.clone(), reason: reason.to_owned() });
    }
}
