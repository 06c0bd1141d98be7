//! Tasks that wait: put down until what they wait for is there. They hold no slot meanwhile.

use muster_shared::flow::{
    About, Awaited, CallRuling, CallVerdict, FormReply, Observation, ObservationStatus, PeerAnswer, Wait,
};
use muster_shared::ids::{Generation, TaskId};
use muster_shared::run::event::{TaskAnswered, TaskWaits};
use muster_shared::time::millis;

use super::builder::DecisionBuilder;
use super::trials::shadow;
use super::{approvals, children, control, delegate, peers, questions, rights};

/// An agent put a task down until what it waits for is there.
pub(super) fn begin(
    decision: &mut DecisionBuilder<'_>,
    task: TaskId,
    generation: Generation,
    awaited: Awaited,
) {
    let Some(run) = decision.open() else { return };
    let agent = run.tasks.get(&task).and_then(|state| state.agent.clone());
    control::put_down(decision, task.clone(), generation);
    let Awaited { step, wait } = awaited;
    decision.emit(TaskWaits { task: task.clone(), generation, step, wait: wait.clone() });
    if let Some(refusal) = decision.open().and_then(|run| rights::refused(run, &task, &wait)) {
        return refuse(decision, &task, &format!("Not done: {refusal}. Go on without it."));
    }
    if decision.open().is_some_and(|run| run.goal.shadow.is_some()) {
        return refuse(decision, &task, shadow::REFUSED);
    }
    match wait {
        Wait::Answer(question) => questions::ask(decision, About::Task(task), question),
        Wait::Approval(call) => approvals::begin(decision, task, &call),
        Wait::Task(part) => delegate::begin(decision, &task, &part, agent),
        Wait::Peer(request) => peers::begin(decision, &task, &request, agent),
        Wait::Run(wanted) => {
            let asking = children::AskingStep { task: &task, generation, number: step };
            children::begin(decision, asking, &wanted);
        }
    }
}

/// What a task waited for is there.
pub(super) fn answer(decision: &mut DecisionBuilder<'_>, task: &TaskId, observation: Observation) {
    answer_with(decision, task, observation, None);
}

/// The same, with what programs are told.
pub(super) fn answer_with(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    observation: Observation,
    answer: Option<Box<PeerAnswer>>,
) {
    let Some((step, observation)) = ended(decision, task, observation) else { return };
    let (task, verdict, form) = (task.clone(), None, None);
    decision.emit(TaskAnswered { task, step, observation, answer, verdict, form });
}

/// A person was asked for something by a call of the task, and this came of it.
pub(super) fn fill(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    observation: Observation,
    reply: FormReply,
) {
    let Some((step, observation)) = ended(decision, task, observation) else { return };
    let (task, form) = (task.clone(), Some(Box::new(reply)));
    decision.emit(TaskAnswered { task, step, observation, answer: None, verdict: None, form });
}

/// The step whose wait is over, and what came of it with the time that it took; nothing where nobody waits.
fn ended(
    decision: &DecisionBuilder<'_>,
    task: &TaskId,
    observation: Observation,
) -> Option<(u32, Observation)> {
    let now = decision.now();
    let waiting = decision.open().and_then(|run| run.tasks.get(task)?.waiting.as_ref());
    let (step, since) = waiting.map(|waiting| (waiting.step, waiting.since))?;
    let millis = millis(now.since(since));
    Some((step, Observation { millis, ..observation }))
}

/// A person said of a call of the task whether it is made.
pub(super) fn approve(decision: &mut DecisionBuilder<'_>, task: &TaskId, verdict: CallVerdict) {
    let waiting = decision.open().and_then(|run| run.tasks.get(task)?.waiting.as_ref());
    let Some(step) = waiting.map(|waiting| waiting.step) else { return };
    let status = match verdict.ruling {
        CallRuling::Approved | CallRuling::Changed(_) => ObservationStatus::Success,
        CallRuling::Refused => ObservationStatus::Refused,
    };
    let observation = Observation::new(status, verdict.to_string());
    let verdict = Some(Box::new(verdict));
    decision.emit(TaskAnswered { task: task.clone(), step, observation, answer: None, verdict, form: None });
}

/// What a task waits for cannot be had: it is told so at once.
pub(super) fn refuse(decision: &mut DecisionBuilder<'_>, task: &TaskId, why: &str) {
    answer(decision, task, Observation::new(ObservationStatus::Refused, why.to_owned()));
}

/// Goes on with what has come to its end meanwhile.
pub(super) fn settle(decision: &mut DecisionBuilder<'_>) {
    delegate::settle(decision);
    questions::withdraw(decision);
}
