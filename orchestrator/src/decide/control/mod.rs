//! What people and programs ask of a run while it goes on. A request that cannot be met is refused with the reason
//! on record, so that whoever asked reads it there; one about a run that has ended changes nothing.

mod edit;
mod pause;
mod redo;
mod skip;

use muster_shared::flow::{Plan, PlanDraft};
use muster_shared::ids::TaskId;
use muster_shared::run::event::{RequestRefused, RunAborted, Stopped, TaskReopened};
use muster_shared::run::{Request, RequestAction, RunState, StopReason, TaskState};

use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::{draft_review, groups, guards, partial, peers, questions, review, survey};

use edit::edit;
pub(super) use edit::edited;
use pause::{pause, resume};
pub(super) use pause::{put_down, stop_early_bird};
use redo::redo;
pub(super) use redo::{begin_again, catch_up};
use skip::skip;

/// Stops the run.
fn cancel(decision: &mut DecisionBuilder<'_>, Request { by, reason, .. }: &Request) {
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
    let asked =
        report.as_deref().map(|report| Stopped { why, reason: reason.clone(), report: report.clone() });
    if asked.is_some_and(|stopped| guards::hold_stop(decision, stopped)) {
        return;
    }
    decision.effect(Effect::CancelRun { reason: reason.clone() });
    decision.emit(RunAborted { why, reason, report });
}

/// Does what is asked, once; what cannot be done is refused.
pub(super) fn take_in(decision: &mut DecisionBuilder<'_>, request: &Request) {
    let is_done = |run: &RunState| run.control.requests.contains(&request.id);
    if decision.open().is_none_or(is_done) || !decision.takes_up(request.id) {
        return;
    }
    if guards::is_stopping(decision) && !matches!(request.action, RequestAction::Cancel) {
        let reason = "the run is being stopped".to_owned();
        return decision.emit(RequestRefused { id: request.id, reason });
    }
    let done = may_ask(decision, request).and_then(|()| carry_out(decision, request));
    if let Err(reason) = done {
        decision.emit(RequestRefused { id: request.id, reason });
    }
}

/// Makes a change of the plan that guards had nothing against, or that they changed.
///
/// # Errors
/// Why it cannot be made, as the run stands by now.
pub(super) fn let_through(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    changed: Option<&PlanDraft>,
) -> Result<(), String> {
    match &request.action {
        RequestAction::Edit { task: Some(task), goal } => {
            edit::let_through(decision, request, task, goal, changed)
        }
        RequestAction::Approve { plan: Some(edited), .. } => {
            review::let_through(decision, request, changed.unwrap_or(edited))
        }
        RequestAction::Edit { task: None, .. }
        | RequestAction::Approve { plan: None, .. }
        | RequestAction::Cancel
        | RequestAction::Pause
        | RequestAction::Resume { .. }
        | RequestAction::Skip { .. }
        | RequestAction::Redo { .. }
        | RequestAction::Reject { .. }
        | RequestAction::Answer { .. }
        | RequestAction::SetContext { .. } => carry_out(decision, request),
    }
}

fn carry_out(decision: &mut DecisionBuilder<'_>, request: &Request) -> Result<(), String> {
    match &request.action {
        RequestAction::Cancel => {
            cancel(decision, request);
            Ok(())
        }
        RequestAction::Pause => pause(decision, request),
        RequestAction::Resume { deadline_ms } => resume(decision, request, *deadline_ms),
        RequestAction::Skip { task } => skip(decision, request, task),
        RequestAction::Redo { task } => redo(decision, request, task),
        RequestAction::Edit { task, goal } => edit(decision, request, task.as_ref(), goal),
        RequestAction::Approve { question, arguments, plan } => {
            let given = review::Given { plan: plan.as_deref(), arguments: arguments.as_ref() };
            review::approve(decision, request, *question, given)
        }
        RequestAction::Reject { question } => review::reject(decision, request, *question),
        RequestAction::Answer { question, text } => questions::answer(decision, request, *question, text),
        RequestAction::SetContext { key, value, version } => {
            peers::set(decision, request, (key, value, *version))
        }
    }
}

/// Whether somebody may ask this of a run in which not everybody has a say: what is approved is what is done in the end, so
/// whoever may not approve changes nothing of it either. To stop it, and to let it go on, is everybody's.
fn may_ask(decision: &DecisionBuilder<'_>, request: &Request) -> Result<(), String> {
    let run = decision.require_open()?;
    if changes_plan(&request.action) {
        guards::check_free(run)?;
    }
    let needs_a_say = match &request.action {
        RequestAction::Cancel | RequestAction::Pause | RequestAction::Resume { .. } => false,
        RequestAction::Approve { .. }
        | RequestAction::Reject { .. }
        | RequestAction::Answer { .. }
        | RequestAction::Skip { .. }
        | RequestAction::Redo { .. }
        | RequestAction::Edit { .. } => true,
        RequestAction::SetContext { .. } => review::is_open(run),
    };
    if needs_a_say { questions::check_voice(run, request) } else { Ok(()) }
}

/// Whether something else would be done of the plan.
const fn changes_plan(action: &RequestAction) -> bool {
    matches!(
        action,
        RequestAction::Skip { .. }
            | RequestAction::Redo { .. }
            | RequestAction::Edit { task: Some(_), .. }
            | RequestAction::Approve { plan: Some(_), .. }
    )
}

/// Who asked, and why, in a few words.
pub(super) fn asked_by(request: &Request) -> String {
    let by = questions::author(request);
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
    let members = group.into_iter().flat_map(|group| &group.members);
    let members: Vec<TaskId> = members.map(|member| member.to_task_id()).collect();
    for held in members.iter().chain([task]) {
        interrupt_one(decision, held, reason);
    }
}

fn interrupt_one(decision: &mut DecisionBuilder<'_>, task: &TaskId, reason: &str) {
    let held = decision.task(task);
    let Some(state) = held.filter(|state| survey::is_offered(state)) else { return };
    let (generation, agent) = (state.generation, state.agent.clone());
    decision.effect(Effect::CancelTask { task: task.clone(), generation, agent, reason: reason.to_owned() });
}

/// Stops the writing of the report: what it is to be made of changes.
fn stop_writing(decision: &mut DecisionBuilder<'_>, reason: &str) {
    stop_review(decision, reason);
    reopen(decision, &TaskId::Write, reason, false);
}

/// Whoever reviews the draft of a report that is not to be delivered is told so.
fn stop_review(decision: &mut DecisionBuilder<'_>, reason: &str) {
    if let Some((number, _)) = decision.open().and_then(|run| run.drafts.open()) {
        interrupt(decision, &TaskId::DraftReview(number), reason);
    }
}

/// Opens a task again if it was offered or has ended. `shows_result` has its agent shown what it gave before.
fn reopen(decision: &mut DecisionBuilder<'_>, task: &TaskId, reason: &str, shows_result: bool) {
    if decision.task(task).is_some_and(TaskState::was_begun) {
        interrupt(decision, task, reason);
        stop_review(decision, reason);
        decision.emit(TaskReopened { task: task.clone(), reason: reason.to_owned(), shows_result });
    }
}
