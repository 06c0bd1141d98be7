//! Single calls of tools that a person approves before they are made (T8). Its task is put down meanwhile and goes on with
//! the verdict. Silence approves nothing.

use muster_shared::flow::question::{APPROVE, REJECT};
use muster_shared::flow::{About, CallRuling, CallToApprove, CallVerdict, Question, Reply, Wait};
use muster_shared::ids::{QuestionId, TaskId};
use muster_shared::run::{Request, RunState};
use serde_json::Value;

use super::builder::DecisionBuilder;
use super::{questions, waits};

/// Asks whether a call may be made.
pub(super) fn begin(decision: &mut DecisionBuilder<'_>, task: TaskId, call: &CallToApprove) {
    let question = Question { reason: call.why.clone(), ..Question::new(call.question()) };
    questions::ask(decision, About::Call(task), question);
}

/// Somebody approves a call, perhaps with other arguments.
///
/// # Errors
/// Why it cannot be approved so.
pub(super) fn approve(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    id: QuestionId,
    arguments: Option<&Value>,
) -> Result<(), String> {
    let run = decision.require_open()?;
    if let Some(arguments) = arguments {
        check(run, arguments)?;
    }
    questions::answer_with(decision, request, id, APPROVE.to_owned(), arguments)
}

fn check(run: &RunState, arguments: &Value) -> Result<(), String> {
    if !arguments.is_object() {
        return Err("the arguments of a call are a JSON object".to_owned());
    }
    let wanted = run.limits.people.approvals;
    if wanted > 1 {
        return Err(format!(
            "{wanted} have to approve the same call (limits.people.approvals), so its arguments cannot be edited: reject it, \
             and say what is to be different"
        ));
    }
    Ok(())
}

/// A task goes on with what was said of its call.
pub(super) fn answered(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    reply: &Reply,
    arguments: Option<&Value>,
) {
    let waiting = decision.open().and_then(|run| run.tasks.get(task)?.waiting.as_ref());
    let Some(Wait::Approval(call)) = waiting.map(|waiting| &waiting.wait) else { return };
    let verdict = verdict(call.at, reply, arguments);
    waits::approve(decision, task, verdict);
}

fn verdict(at: u32, reply: &Reply, arguments: Option<&Value>) -> CallVerdict {
    let (Some(by), Some(text)) = (&reply.by, &reply.text) else { return CallVerdict::unanswered(at) };
    let (ruling, reason) = match (text.as_str(), arguments) {
        (APPROVE, None) => (CallRuling::Approved, ""),
        (APPROVE, Some(arguments)) => (CallRuling::Changed(arguments.clone()), ""),
        (REJECT, _) => (CallRuling::Refused, ""),
        (why, _) => (CallRuling::Refused, why),
    };
    CallVerdict { at, ruling, by: Some(by.clone()), reason: reason.to_owned() }
}
