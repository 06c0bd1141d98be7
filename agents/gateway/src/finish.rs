//! `finish`: how a task ends. A result that does not hold is sent back, and the task stays open.

use std::sync::Arc;

use muster_agents::definition::Contract;
use muster_agents::host::for_programs::said_by_program;
use muster_agents::react::close::outcome_of;
use muster_agents::react::lookup::note_of;
use muster_agents::react::of_programs::{held, to_look_up};
use muster_agents::roles::Submission;
use muster_bus::GatewayRequest;
use muster_shared::contract::Schema;
use muster_shared::flow::{Action, AgentState, Ending, Note, Step, Thought};
use muster_shared::ids::Role;
use muster_shared::run::AgentEvent;
use muster_shared::wire::gateway::{FinishRequest, GatewayRefusal, RefusalCode};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::open::{Course, OpenTask};
use crate::refusal::Closed;
use crate::route::{Begun, InHand, in_hand};
use crate::{offer, orders};

/// How often a result is sent back for what it cites. Then what does not hold is left out, and it counts as a part.
const SENT_BACK: u32 = 2;

pub(crate) async fn finish(
    desk: &Arc<Desk>,
    asked: &GatewayRequest,
    role: &Role,
    request: FinishRequest,
) -> Result<Option<Value>, GatewayRefusal> {
    let sent_as = request.id.as_deref();
    let InHand { task, mut course } = match in_hand(desk, asked, role, &request.token, sent_as).await? {
        Begun::ToDo(in_hand) => in_hand,
        Begun::Answered(answer) => return Ok(answer),
    };
    let id = task.id_of(sent_as);
    if course.recorded(id).is_some() {
        let ending = course.history.ended_before().map_or(request.ending, |outcome| outcome.ending);
        return Ok(Some(json!({ "ending": ending, "recorded": true })));
    }
    if let Some(closed) = &course.closed {
        return Err(closed.refusal());
    }
    let submission = submission(&task, &request)?;
    let (submission, note) = looked_up(desk, &task, &mut course, submission).await?;
    course.plausible.accept(request.usage)?;
    let (pending, wasted) = (std::mem::take(&mut course.pending), course.all_wasted());
    let said = said_by_program(&task.model, request.usage);
    let calls: Vec<_> = pending.iter().cloned().chain(said).collect();
    let make = |course: &Course| {
        let step = Step {
            number: course.history.next_step(),
            thought: Thought::from(request.thought.clone()),
            action: Action { name: Action::SUBMIT.to_owned(), arguments: Value::Null },
            observation: None,
            more: Vec::new(),
            notes: course.notes.iter().cloned().chain(note.clone()).collect(),
            heard: course.told.clone(),
            calls: calls.clone(),
            millis: 0,
            outside_millis: 0,
        };
        let says = !step.thought.text.is_empty() || !step.calls.is_empty() || !step.notes.is_empty();
        let last = says.then_some(step);
        Ok(AgentEvent::Outcome(outcome_of(&course.history, submission.clone(), last, wasted).into()))
    };
    if let Err(refusal) = course.write(&task, id, make).await {
        course.pending = pending;
        return Err(refusal);
    }
    let answer = json!({ "ending": submission.ending, "recorded": true });
    course.keep(request.id.as_deref(), &answer);
    let usage = course.history.usage();
    task.progress.is(if submission.ending.is_success() { AgentState::Finished } else { AgentState::Error });
    task.progress.status(&format!("ended: {:?}", submission.ending), usage);
    orders::close(desk, &task, &mut course, Closed::Ended).await;
    drop(course);
    crate::beat::keep(desk, &task).await;
    Ok(Some(answer))
}

/// What is submitted, by the rules of its kind of work.
fn submission(task: &OpenTask, request: &FinishRequest) -> Result<Submission, GatewayRefusal> {
    let rules = offer::rules(&task.offer, &task.contract);
    let reason = request.reason.trim();
    let Some(word) = word_of(request.ending) else {
        return early_end(task, request);
    };
    let mut arguments = request.result.clone().unwrap_or_else(|| json!({}));
    if let Some(fields) = arguments.as_object_mut() {
        if task.offer.work.leaf().is_some() {
            // The schema has it too.
            if request.ending != Ending::Done || fields.get("ending").is_none_or(Value::is_null) {
                fields.insert("ending".to_owned(), json!(word));
            }
            fields.entry("conclusion").or_insert_with(|| json!(""));
        }
        if !reason.is_empty() {
            fields.insert("reason".to_owned(), json!(reason));
        }
    }
    let faults = misfits(task, request, &arguments);
    if !faults.is_empty() {
        return Err(bad_result(faults));
    }
    rules.submission(&task.offer, &arguments).map_err(bad_result)
}

/// What of a result does not fit its schema. Who gives up need not give what was promised.
fn misfits(task: &OpenTask, request: &FinishRequest, arguments: &Value) -> Vec<String> {
    let gives_up = ["escalate", "delegate", "blocked", "give_up"];
    let gives = arguments["ending"].as_str().is_none_or(|ending| !gives_up.contains(&ending));
    let schema = match (gives, &request.result) {
        (true, _) => offer::rules(&task.offer, &task.contract).submit_schema(&task.offer),
        (false, Some(_)) => offer::rules(&task.offer, &Contract::default()).submit_schema(&task.offer),
        (false, None) => return Vec::new(),
    };
    match Schema::new(schema) {
        Ok(schema) => schema.faults("result", arguments),
        Err(why) => {
            tracing::error!(why, "the schema of a result cannot be used");
            Vec::new()
        }
    }
}

/// An end that no model chooses: the program or what it needs failed, or was stopped.
fn early_end(task: &OpenTask, request: &FinishRequest) -> Result<Submission, GatewayRefusal> {
    let reason = request.reason.trim();
    if reason.is_empty() {
        return Err(bad_result(vec!["`reason`: say why the task ends so".to_owned()]));
    }
    let early = Submission::without_product(request.ending, reason);
    match &request.result {
        None => Ok(early),
        Some(_) => {
            let partial = FinishRequest { ending: Ending::DonePartial, ..request.clone() };
            let product = submission(task, &partial)?.product;
            Ok(Submission { product, ..early })
        }
    }
}

/// The word by which a model says it, where it may.
const fn word_of(ending: Ending) -> Option<&'static str> {
    match ending {
        Ending::Done => Some("done"),
        Ending::DonePartial => Some("done_partial"),
        Ending::Escalate => Some("escalate"),
        Ending::Delegate => Some("delegate"),
        Ending::Blocked => Some("blocked"),
        Ending::GaveUp => Some("give_up"),
        Ending::ModelFailed
        | Ending::AgentFailed
        | Ending::DeadlinePassed
        | Ending::Cancelled
        | Ending::BudgetExhausted => None,
    }
}

fn bad_result(faults: Vec<String>) -> GatewayRefusal {
    let message = format!(
        "the result is not taken: {}. Nothing was recorded and the task stays yours: mend it and send `finish` again",
        faults.join("; ")
    );
    GatewayRefusal::new(RefusalCode::BadResult, message).of_fields(faults)
}

/// A submission whose citations were looked up, with the note of that.
async fn looked_up(
    desk: &Desk,
    task: &OpenTask,
    course: &mut Course,
    submission: Submission,
) -> Result<(Submission, Option<Note>), GatewayRefusal> {
    let asked = to_look_up(&course.history, &task.offer, &submission);
    let Some(corpus) = task.offer.corpus.as_ref().filter(|_| !asked.is_empty()) else {
        return Ok((submission, None));
    };
    let found = desk.shared.look_up(corpus, &task.offer.rights, asked.clone()).await;
    let note = note_of(&asked, found);
    let as_it_stands = course.sent_back >= SENT_BACK;
    match held(&course.history, &task.offer, submission, &note, as_it_stands) {
        Ok(submission) => Ok((submission, Some(note))),
        Err(faults) => {
            course.sent_back += 1;
            Err(bad_result(faults))
        }
    }
}
