//! `step`: what a program did, in the run's record.

use std::sync::Arc;

use muster_agents::host::for_programs::said_by_program;
use muster_bus::GatewayRequest;
use muster_shared::flow::{AgentState, Observation, Step, Thought};
use muster_shared::ids::Role;
use muster_shared::run::{AgentEvent, ToolStarted};
use muster_shared::wire::gateway::{GatewayRefusal, StepRequest};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::open::{Course, OpenTask, Written};
use crate::past::Recorded;
use crate::refusal::not_allowed;
use crate::route::{Begun, InHand, Message, in_hand};
use crate::{beat, orders};

pub(crate) async fn step(
    desk: &Arc<Desk>,
    asked: &GatewayRequest,
    role: &Role,
    request: StepRequest,
) -> Result<Option<Value>, GatewayRefusal> {
    let message = Message { token: &request.token, id: request.id.as_deref() };
    let InHand { task, mut course } = match in_hand(desk, asked, role, message).await? {
        Begun::ToDo(in_hand) => in_hand,
        Begun::Answered(answer) => return Ok(answer),
    };
    let id = task.id_of(request.id.as_deref());
    let written = course.write(&task, id, |course| event(desk, &task, course, &request)).await?;
    let number = match written {
        Written::Before(Recorded::Step(number) | Recorded::Begun(number)) => number,
        Written::Before(Recorded::End) => course.history.next_step(),
        Written::Now => {
            if request.observation.is_some() {
                course.pending.clear();
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

fn event(
    desk: &Desk,
    task: &OpenTask,
    course: &Course,
    request: &StepRequest,
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
        observation: request.observation.clone().map(Observation::from),
        more: request.more.clone(),
        notes: Vec::new(),
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
