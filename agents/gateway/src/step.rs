//! `step`: what a program did, in the run's record.

use std::sync::Arc;

use muster_agents::host::for_programs::said_by_program;
use muster_agents::host::guarded::AfterGuards;
use muster_bus::GatewayRequest;
use muster_shared::flow::{Action, AgentState, FurtherAction, Observation, Step, Thought, Use};
use muster_shared::ids::Role;
use muster_shared::run::{AgentEvent, ToolStarted};
use muster_shared::wire::gateway::{GatewayRefusal, StepRequest};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::open::{Course, OpenTask, Written};
use crate::past::Recorded;
use crate::refusal::not_allowed;
use crate::route::{Begun, InHand, in_hand};
use crate::{beat, orders, rights};

pub(crate) async fn step(
    desk: &Arc<Desk>,
    asked: &GatewayRequest,
    role: &Role,
    request: StepRequest,
) -> Result<Option<Value>, GatewayRefusal> {
    let sent_as = request.id.as_deref();
    let InHand { task, mut course } = match in_hand(desk, asked, role, &request.token, sent_as).await? {
        Begun::ToDo(in_hand) => in_hand,
        Begun::Answered(answer) => return Ok(answer),
    };
    let id = task.id_of(sent_as);
    let mut seen =
        Seen { observation: request.observation.clone().map(Observation::from), more: request.more.clone() };
    if course.recorded(id).is_none() {
        course.plausible.accept(request.usage)?;
        has_right(&task, &mut course, &request)?;
        announce(desk, &task, &mut course, &request).await?;
        seen = guarded(desk, &task, &mut course, &request, seen).await;
    }
    let made = |course: &Course| event(desk, &task, course, &request, &seen);
    let written = course.write(&task, id, made).await?;
    let number = match written {
        Written::Before(Recorded::Step(number) | Recorded::Begun(number)) => number,
        Written::Before(Recorded::End) => course.history.next_step(),
        Written::Now => {
            if request.observation.is_some() {
                course.pending.clear();
                course.notes.clear();
                course.told.clear();
                course.history.steps().last().map_or(0, |step| step.number)
            } else {
                course.history.next_step()
            }
        }
    };
    task.progress.is(AgentState::Observing);
    task.progress.status(&format!("step {number}: {}", request.action.name), course.history.usage());
    let mut answer = beat::news(&task, &mut course);
    answer["step"] = json!(number);
    if request.observation.is_none() {
        answer["idempotency_key"] = json!(key_of(&task, number));
        put_changed(&course, &mut seen.more, &mut answer);
    }
    let given = request.observation.clone().map(Observation::from);
    if let Some(kept) = seen.observation.as_ref().filter(|kept| Some(*kept) != given.as_ref()) {
        answer["observation"] = json!(kept.content);
    }
    if seen.more != request.more {
        answer["more"] = json!(seen.more);
    }
    course.keep(request.id.as_deref(), &answer);
    if let Some((_, why)) = task.is_to_park() {
        orders::put_down(desk, &task, &mut course, &why).await;
        answer["order"] = json!("park");
        answer["reason"] = json!(why);
        answer["over"] = json!(true);
    }
    drop(course);
    beat::keep(desk, &task).await;
    Ok(Some(answer))
}

/// Whether the task has a right to what a step is to do. What was done already stands in the record all the same, and
/// that there was no right to it.
fn has_right(task: &OpenTask, course: &mut Course, request: &StepRequest) -> Result<(), GatewayRefusal> {
    for (at, Call { action, is_done }) in calls(request).enumerate() {
        let wanted = Use::of_call(&action.name, &action.arguments);
        if !is_done {
            rights::may(task, course, at, &wanted)?;
        } else if let Err(refusal) = task.offer.rights.allow_all(&wanted) {
            rights::note(course, at, refusal);
        }
    }
    Ok(())
}

/// One call of a step.
struct Call<'a> {
    action: &'a Action,
    /// Whether it was observed what came of it.
    is_done: bool,
}

/// The calls of a step, in their places.
fn calls(request: &StepRequest) -> impl Iterator<Item = Call<'_>> {
    let first = Call { action: &request.action, is_done: request.observation.is_some() };
    let more = request.more.iter();
    std::iter::once(first)
        .chain(more.map(|one| Call { action: &one.action, is_done: one.observation.is_some() }))
}

/// Asks guards about the calls that are told before they are done.
async fn announce(
    desk: &Desk,
    task: &OpenTask,
    course: &mut Course,
    request: &StepRequest,
) -> Result<(), GatewayRefusal> {
    for (at, Call { action, is_done }) in calls(request).enumerate() {
        if !is_done {
            rights::let_through(desk, task, course, (at, action), &are_arguments).await?;
        }
    }
    Ok(())
}

fn are_arguments(arguments: &Value) -> Result<(), String> {
    if arguments.is_object() { Ok(()) } else { Err("`arguments` is no object".to_owned()) }
}

/// The arguments that a program is to use in the place of those that it announced: they stand in the record with the step.
fn put_changed(course: &Course, more: &mut [FurtherAction], answer: &mut Value) {
    let Some(begun) = course.history.begun() else { return };
    let notes = &begun.step.notes;
    if let Some(arguments) = rights::changed_arguments(notes, 0) {
        answer["arguments"] = arguments.clone();
    }
    for (at, one) in more.iter_mut().enumerate() {
        if let Some(arguments) = rights::changed_arguments(notes, at + 1) {
            one.action.arguments = arguments.clone();
        }
    }
}

/// What a program observed of the calls of a step.
struct Seen {
    observation: Option<Observation>,
    more: Vec<FurtherAction>,
}

/// The observations as guards leave them. What they said stands in the record with the step.
async fn guarded(
    desk: &Desk,
    task: &OpenTask,
    course: &mut Course,
    request: &StepRequest,
    Seen { observation, mut more }: Seen,
) -> Seen {
    let observation = match observation {
        None => None,
        Some(seen) => {
            let asked = desk.shared.guard_observation(&task.role, &task.offer, 0, &request.action, seen);
            let AfterGuards { what, note } = asked.await;
            course.notes.extend(note);
            Some(what)
        }
    };
    for (at, one) in more.iter_mut().enumerate() {
        let Some(seen) = one.observation.take() else { continue };
        let asked = desk.shared.guard_observation(&task.role, &task.offer, at + 1, &one.action, seen);
        let AfterGuards { what, note } = asked.await;
        course.notes.extend(note);
        one.observation = Some(what);
    }
    Seen { observation, more }
}

fn event(
    desk: &Desk,
    task: &OpenTask,
    course: &Course,
    request: &StepRequest,
    seen: &Seen,
) -> Result<AgentEvent, GatewayRefusal> {
    let (number, most) = (course.history.next_step(), task.offer.limits.max_steps);
    if number > most {
        let why = format!(
            "the task may take {most} steps, and has taken them: finish it with what there is (`done_partial`)"
        );
        return Err(not_allowed(why));
    }
    let mut thought = Thought::from(request.thought.clone());
    thought.text = desk.shared.redacted(&thought.text);
    let reported = said_by_program(&task.model, request.usage);
    let step = Step {
        number,
        thought,
        action: request.action.clone(),
        observation: seen.observation.clone(),
        more: seen.more.clone(),
        notes: course.notes.clone(),
        heard: course.told.clone(),
        calls: course.pending.iter().cloned().chain(reported).collect(),
        millis: request.millis,
        outside_millis: request.millis,
    };
    Ok(match request.observation {
        Some(_) => AgentEvent::Step(step),
        None => AgentEvent::ToolStarted(ToolStarted { step, idempotency_key: key_of(task, number) }),
    })
}

fn key_of(task: &OpenTask, number: u32) -> String {
    format!("{}/{}/{}/{number}", task.key.run, task.key.task, task.key.generation)
}
