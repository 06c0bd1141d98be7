//! Questions to people: asked, answered, passed on, and answered by default when their time is up.
//!
//! A question is part of the run's state, so that it outlives whoever asked it; its time limit is one of the run's
//! deadlines. What its answer is for stands in [`About`]: [`answered`] is the one place that says what follows.

use std::time::Duration;

use muster_shared::flow::question::{MAX_CHOICES, MAX_QUESTION_BYTES};
use muster_shared::flow::{About, Observation, ObservationStatus, OnTimeout, Question, Reply, TaskStatus};
use muster_shared::ids::{QuestionId, TaskId};
use muster_shared::run::event::{
    ApprovalGiven, QuestionAnswered, QuestionAsked, QuestionPassedOn, QuestionWithdrawn,
};
use muster_shared::run::{QuestionEnd, QuestionState, Request, RunState, StopReason};
use muster_shared::time::Millis;

use serde_json::Value;

use super::builder::DecisionBuilder;
use super::{approvals, control, review, stuck, waits};

/// Of the time that the run has left, the most that one question may take, in percent: something has to be done with
/// the answer.
const MOST_OF_THE_REST: u64 = 75;

/// Asks somebody. The answer comes to [`answered`], at once when no more questions are allowed.
pub(super) fn ask(decision: &mut DecisionBuilder<'_>, about: About, question: Question) {
    let Some(run) = decision.open() else { return };
    let id = run.questions.last_key_value().map_or(QuestionId(0), |(id, _)| *id).next();
    let people = &run.limits.people;
    let no_more = run.questions.len() >= usize::try_from(people.max_questions).unwrap_or(usize::MAX);
    let mut question = bounded(question);
    question.to = question.to.or_else(|| people.ask.first().cloned());
    if about.is_approved() {
        question.choices = about.approval_choices();
    }
    if !question.choices.is_empty() {
        // The default that is shown is the one that takes effect: one of the choices, or none.
        let default = question.default.take();
        question.default = default.and_then(|default| question.read(&default).ok());
    }
    let on_timeout = question.on_timeout.unwrap_or(people.on_timeout);
    let expires = expires(run, &question, decision.now());
    decision.emit(QuestionAsked { id, about, question, expires, on_timeout });
    if no_more {
        by_default(decision, id);
    }
}

/// Takes a person's answer.
pub(super) fn answer(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    id: QuestionId,
    text: &str,
) -> Result<(), String> {
    let run = decision.require_open()?;
    let asked = run.questions.get(&id).ok_or_else(|| no_such(run, id))?;
    if let Some(end) = &asked.end {
        return Err(ended_before(id, end));
    }
    if asked.about.is_approved() {
        return review::choose(decision, request, id, text);
    }
    let text = if let Some(form) = &asked.question.form {
        form.form.read(text)?;
        text.trim().to_owned()
    } else {
        asked.question.read(text)?
    };
    answer_with(decision, request, id, text, None)
}

/// Takes a person's answer as it is recorded, with the arguments of a call that they changed.
pub(super) fn answer_with(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    id: QuestionId,
    text: String,
    arguments: Option<&Value>,
) -> Result<(), String> {
    let run = decision.require_open()?;
    if let Some(approval) = one_of_several(run, id, request, &text)? {
        decision.emit(approval);
        return Ok(());
    }
    let by = Some(author(request).to_owned());
    answered(decision, &Reply { question: id, text: Some(text), by }, arguments);
    Ok(())
}

/// Name of the person who sent a request.
pub(super) fn author(request: &Request) -> &str {
    if request.by.is_empty() { "somebody" } else { &request.by }
}

/// Whether somebody may approve, reject, answer and change what is done in this run.
pub(super) fn check_voice(run: &RunState, request: &Request) -> Result<(), String> {
    let people = &run.limits.people;
    let voice = request.voice();
    if people.may_approve(voice) {
        return Ok(());
    }
    let voice = if voice.is_empty() { "nobody in particular" } else { voice };
    Err(format!(
        "{voice} has no say in this: of this run, {} may approve, reject, answer and change what is done \
         (limits.people.approve_by)",
        people.approve_by.join(", ")
    ))
}

/// An approval that is not enough by itself; nothing where it is, or it is none.
fn one_of_several(
    run: &RunState,
    id: QuestionId,
    request: &Request,
    text: &str,
) -> Result<Option<ApprovalGiven>, String> {
    let wanted = usize::from(run.limits.people.approvals);
    let Some(asked) = run.questions.get(&id).filter(|asked| review::approves(&asked.about, text)) else {
        return Ok(None);
    };
    let (by, before) = (request.voice(), asked.approvals.len());
    if wanted > 1 && asked.is_approved_by(by) {
        return Err(format!(
            "{by} has approved this already: {} more of {wanted} have to (limits.people.approvals)",
            wanted.saturating_sub(before)
        ));
    }
    let more = wanted.saturating_sub(before + 1);
    Ok((more > 0).then(|| ApprovalGiven {
        id,
        by: by.to_owned(),
        more: u8::try_from(more).unwrap_or(u8::MAX),
    }))
}

/// Sees to questions whose time is up.
pub(super) fn enforce(decision: &mut DecisionBuilder<'_>) {
    let now = decision.now();
    let Some(run) = decision.open().filter(|run| run.control.paused.is_none()) else { return };
    let late: Vec<QuestionId> =
        run.open_questions().filter(|(_, asked)| asked.expires <= now).map(|(id, _)| id).collect();
    for id in late {
        time_is_up(decision, id);
    }
}

fn time_is_up(decision: &mut DecisionBuilder<'_>, id: QuestionId) {
    let Some(run) = decision.open() else { return };
    let Some(asked) = run.questions.get(&id) else { return };
    match asked.on_timeout {
        OnTimeout::Proceed => by_default(decision, id),
        OnTimeout::Abort => {
            let reason = format!("nobody answered question {id} in time: {}", asked.question.text);
            let withdrawn = "nobody answered in time, and the run is stopped for that".to_owned();
            decision.emit(QuestionWithdrawn { id, reason: withdrawn });
            control::abort(decision, StopReason::DeadlinePassed, reason);
        }
        OnTimeout::AskAnother => match next_person(run, asked) {
            Some(to) => {
                let expires = expires(run, &asked.question, decision.now());
                decision.emit(QuestionPassedOn { id, to, expires });
            }
            None => by_default(decision, id),
        },
    }
}

fn by_default(decision: &mut DecisionBuilder<'_>, id: QuestionId) {
    let Some(run) = decision.open() else { return };
    let asked = run.questions.get(&id);
    if let Some(asked) = asked.filter(|asked| asked.about.needs_approval_to_continue(&run.limits.people)) {
        let reason = format!("question {id} was not approved in time: {}", asked.question.text);
        decision.emit(QuestionWithdrawn { id, reason: "no approval in time".to_owned() });
        return control::abort(decision, StopReason::DeadlinePassed, reason);
    }
    let text = asked.and_then(|asked| asked.question.default.clone());
    answered(decision, &Reply { question: id, text, by: None }, None);
}

/// What follows from an answer, by what the question was about.
fn answered(decision: &mut DecisionBuilder<'_>, reply: &Reply, arguments: Option<&Value>) {
    let asked = decision.open().and_then(|run| run.questions.get(&reply.question));
    let Some(asked) = asked.filter(|asked| asked.is_open()) else { return };
    let (about, form) = (asked.about.clone(), asked.question.form.as_ref().map(|form| form.reply(reply)));
    decision.emit(QuestionAnswered { reply: reply.clone() });
    match about {
        About::Task(task) if decision.open().is_some_and(|run| stuck::is_stuck(run, &task)) => {
            stuck::answered(decision, &task, reply);
        }
        About::Task(task) => match form {
            Some(given) => waits::fill(decision, &task, observed(reply), given),
            None => waits::answer(decision, &task, observed(reply)),
        },
        About::Call(task) => approvals::answered(decision, &task, reply, arguments),
        // The planner is told with its next offer; what follows for a step of a blueprint, or for a
        // conflict, is decided with the others.
        About::Goal | About::Step(_) | About::Conflict(_) => {}
        about @ (About::Plan | About::Milestone(_) | About::Failure(_)) => {
            review::decided(decision, &about, reply);
        }
    }
}

/// Withdraws questions of tasks that do not wait for the answer any more.
pub(super) fn withdraw(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open() else { return };
    let waits = |task: &TaskId| run.tasks.get(task).is_some_and(|state| state.status == TaskStatus::Waiting);
    let idle = run.open_questions().filter(|(_, asked)| {
        if let About::Task(task) | About::Call(task) = &asked.about { !waits(task) } else { false }
    });
    let idle: Vec<QuestionId> = idle.map(|(id, _)| id).collect();
    withdraw_these(decision, idle, "the task does not wait for it any more");
}

/// Withdraws all questions: nothing can follow from an answer any more.
pub(super) fn withdraw_all(decision: &mut DecisionBuilder<'_>, reason: &str) {
    let Some(run) = decision.open() else { return };
    let open: Vec<QuestionId> = run.open_questions().map(|(id, _)| id).collect();
    withdraw_these(decision, open, reason);
}

fn withdraw_these(decision: &mut DecisionBuilder<'_>, questions: Vec<QuestionId>, reason: &str) {
    for id in questions {
        decision.emit(QuestionWithdrawn { id, reason: reason.to_owned() });
    }
}

/// What the task that asked is told.
fn observed(reply: &Reply) -> Observation {
    let (status, content) = match (&reply.by, &reply.text) {
        (Some(by), text) => {
            (ObservationStatus::Success, format!("{by} answers: {}", text.as_deref().unwrap_or_default()))
        }
        (None, Some(default)) => (
            ObservationStatus::Success,
            format!("Nobody answered in time. What was given as the default is taken: {default}"),
        ),
        (None, None) => (
            ObservationStatus::Timeout,
            "Nobody answered in time, and there is no default. Go on as you judge best and say in the result what you \
             assumed, or end the task if that would be wrong."
                .to_owned(),
        ),
    };
    Observation::new(status, content)
}

fn expires(run: &RunState, question: &Question, now: Millis) -> Millis {
    let within = question.within_ms.unwrap_or(run.limits.people.answer_within_ms);
    let left = run.deadline.0.saturating_sub(now.0);
    let most = left / 100 * MOST_OF_THE_REST;
    now.after(Duration::from_millis(within.min(most)))
}

/// Who is asked after the one who did not answer.
fn next_person(run: &RunState, asked: &QuestionState) -> Option<String> {
    let people = &run.limits.people.ask;
    let at = match &asked.asked_of {
        Some(now) => people.iter().position(|person| person == now).map_or(0, |at| at + 1),
        None => 0,
    };
    let turns_left = usize::try_from(asked.passed_on).unwrap_or(usize::MAX) < people.len();
    people.get(at).filter(|_| turns_left).cloned()
}

/// Nothing that an agent sends is longer than a person can be shown.
fn bounded(mut question: Question) -> Question {
    for text in [&mut question.text, &mut question.reason] {
        text.truncate(text.floor_char_boundary(MAX_QUESTION_BYTES));
    }
    question.choices.truncate(MAX_CHOICES);
    // What nobody can be asked for is asked in words.
    question.form = question.form.take().filter(|form| form.form.fault().is_none());
    question
}

fn no_such(run: &RunState, id: QuestionId) -> String {
    let open: Vec<String> = run.open_questions().map(|(id, _)| id.to_string()).collect();
    if open.is_empty() {
        format!("there is no question {id}, and none waits for an answer")
    } else {
        format!("there is no question {id}: these wait for an answer: {}", open.join(", "))
    }
}

fn ended_before(id: QuestionId, end: &QuestionEnd) -> String {
    match end {
        QuestionEnd::Answered(Reply { by: Some(by), text, .. }) => {
            format!("question {id} was answered by {by}: {}", text.as_deref().unwrap_or_default())
        }
        QuestionEnd::Answered(Reply { by: None, text, .. }) => format!(
            "the time for question {id} is up; {} was taken",
            text.as_deref().map_or_else(|| "no answer".to_owned(), |text| format!("{text:?}"))
        ),
        QuestionEnd::Withdrawn(reason) => format!("question {id} was withdrawn: {reason}"),
    }
}
