//! `wait`: a task is put down until what it waits for is there. It comes back by a later `take`, with the answer.

use std::sync::Arc;

use muster_agents::host::for_programs::said_by_program;
use muster_bus::GatewayRequest;
use muster_shared::flow::question::{MAX_CHOICES, MAX_QUESTION_BYTES};
use muster_shared::flow::{Action, Awaited, RolePermission, Step, Thought, Use, Wait};
use muster_shared::ids::Role;
use muster_shared::run::{AgentEvent, Released, ToolStarted};
use muster_shared::text::first_line;
use muster_shared::wire::gateway::{GatewayRefusal, WaitRequest};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::open::{Course, OpenTask};
use crate::orders;
use crate::refusal::{Closed, invalid, not_allowed};
use crate::rights;
use crate::route::{Begun, InHand, in_hand};

/// Longest description of what a task waits for that is kept with it, in characters.
const SHOWN: usize = 200;

pub(crate) async fn wait(
    desk: &Arc<Desk>,
    asked: &GatewayRequest,
    role: &Role,
    request: WaitRequest,
) -> Result<Option<Value>, GatewayRefusal> {
    let sent_as = request.id.as_deref();
    let InHand { task, mut course } = match in_hand(desk, asked, role, &request.token, sent_as).await? {
        Begun::ToDo(in_hand) => in_hand,
        Begun::Answered(answer) => return Ok(answer),
    };
    let id = task.id_of(sent_as);
    let answer = json!({
        "waits": true, "over": true,
        "reason": "the task comes back by a later `take`, with the answer in `answered`",
    });
    if course.recorded(id).is_some() {
        return Ok(Some(answer));
    }
    course.plausible.accept(request.usage)?;
    may(desk, &task, &request.wait)?;
    rights::may(&task, &mut course, 0, &uses(&request.wait))?;
    let wait = guarded(desk, &task, &mut course, &request.wait).await?;
    let mut answer = answer;
    if wait != request.wait {
        answer["arguments"] = arguments(&wait);
    }
    let begun = task.id_of(request.id.as_deref().map(|id| format!("{id}/begun")).as_deref());
    let announced = |course: &Course| Ok(AgentEvent::ToolStarted(announced(desk, &task, course, &request)));
    course.write(&task, begun, announced).await?;
    let released = |course: &Course| {
        let reason = format!("it waits for {}", first_line(&wait.in_words(), SHOWN));
        let awaited = Awaited { step: course.history.next_step(), wait: wait.clone() };
        let wait = Some(Box::new(awaited));
        Ok(AgentEvent::Released(course.released(Released {
            reason,
            parked: true,
            wait,
            ..Released::default()
        })))
    };
    course.write(&task, id, released).await?;
    course.keep(request.id.as_deref(), &answer);
    orders::close(desk, &task, &mut course, Closed::Waits).await;
    drop(course);
    crate::beat::keep(desk, &task).await;
    Ok(Some(answer))
}

/// What it waits for as guards leave it. The record keeps in its step what the program said, and what they made of it.
async fn guarded(
    desk: &Desk,
    task: &OpenTask,
    course: &mut Course,
    wait: &Wait,
) -> Result<Wait, GatewayRefusal> {
    let action = Action { name: tool(wait).to_owned(), arguments: arguments(wait) };
    let fits = |changed: &Value| {
        let changed = with_arguments(wait, changed)?;
        may(desk, task, &changed).map_err(|refusal| refusal.message)?;
        task.offer.rights.allow_all(&uses(&changed)).map_err(|refusal| refusal.to_string())
    };
    let changed = rights::let_through(desk, task, course, (0, &action), &fits).await?;
    let changed = changed.and_then(|changed| with_arguments(wait, &changed).ok());
    Ok(changed.unwrap_or_else(|| wait.clone()))
}

/// What a wait uses, its tool too.
fn uses(wait: &Wait) -> Vec<Use<'_>> {
    std::iter::once(Use::Tool(tool(wait))).chain(Use::of_wait(wait)).collect()
}

/// What it waits for, without the word for its kind: what the tool is called with.
fn arguments(wait: &Wait) -> Value {
    match serde_json::to_value(wait) {
        Ok(Value::Object(kinds)) => kinds.into_iter().next().map_or(Value::Null, |(_, inner)| inner),
        _ => Value::Null,
    }
}

/// A wait of the same kind with other arguments.
fn with_arguments(wait: &Wait, arguments: &Value) -> Result<Wait, String> {
    let mut whole = serde_json::to_value(wait).map_err(|error| error.to_string())?;
    if let Some(inner) = whole.as_object_mut().and_then(|kinds| kinds.values_mut().next()) {
        *inner = arguments.clone();
    }
    serde_json::from_value(whole).map_err(|error| format!("`arguments`: {error}"))
}

/// The step that waits.
fn announced(desk: &Desk, task: &OpenTask, course: &Course, request: &WaitRequest) -> ToolStarted {
    let mut thought = Thought::from(request.thought.clone());
    thought.text = desk.shared.redacted(&thought.text);
    let name = tool(&request.wait);
    let arguments = serde_json::to_value(&request.wait).unwrap_or(Value::Null);
    let reported = said_by_program(&task.model, request.usage);
    let step = Step {
        number: course.history.next_step(),
        thought,
        action: Action { name: name.to_owned(), arguments },
        observation: None,
        more: Vec::new(),
        notes: course.notes.clone(),
        heard: course.told.clone(),
        calls: course.pending.iter().cloned().chain(reported).collect(),
        millis: 0,
        outside_millis: 0,
    };
    ToolStarted { step, idempotency_key: String::new() }
}

/// The tool by which an agent waits for this.
const fn tool(wait: &Wait) -> &'static str {
    match wait {
        Wait::Answer(_) | Wait::Approval(_) => "request_info",
        Wait::Task(_) => "delegate",
        Wait::Run(_) => "plan",
        Wait::Peer(_) => "ask_peer",
    }
}

/// Whether the role may wait for this, and whether it can be asked at all.
fn may(desk: &Desk, task: &OpenTask, wait: &Wait) -> Result<(), GatewayRefusal> {
    let permission = match wait {
        Wait::Answer(_) => RolePermission::People,
        // It is no question of its own: a program may always have a person approve what it does.
        Wait::Approval(_) => RolePermission::Tools,
        Wait::Task(_) => RolePermission::Delegate,
        Wait::Run(_) => RolePermission::Plan,
        Wait::Peer(_) => RolePermission::Peers,
    };
    if !desk.shared.permissions(&task.role).is_open(permission) {
        let (role, what) = (&task.role, permission.as_words());
        return Err(not_allowed(format!(
            "the role {role} may not {what} (agent.permissions): go on without, or finish with what there is"
        )));
    }
    match wait {
        Wait::Answer(question) if question.form.is_some() => Err(invalid(
            "for.answer.form",
            "only calls of tools ask for values: ask in words, or by `choices`",
        )),
        Wait::Answer(question) if question.text.trim().is_empty() => {
            Err(invalid("for.answer.text", "it is empty: say what is asked"))
        }
        Wait::Answer(question) if question.text.len() > MAX_QUESTION_BYTES => {
            Err(invalid("for.answer.text", &format!("{MAX_QUESTION_BYTES} bytes are the most")))
        }
        Wait::Answer(question) if question.choices.len() > MAX_CHOICES => {
            Err(invalid("for.answer.choices", &format!("{MAX_CHOICES} are the most")))
        }
        Wait::Approval(call) if call.tool.trim().is_empty() || call.tool.len() > MAX_QUESTION_BYTES => Err(
            invalid("for.approval.tool", &format!("say what is to be called, in {MAX_QUESTION_BYTES} bytes")),
        ),
        Wait::Approval(call) if call.arguments.to_string().len() > MAX_QUESTION_BYTES => {
            Err(invalid("for.approval.arguments", &format!("{MAX_QUESTION_BYTES} bytes are the most")))
        }
        Wait::Run(child) if child.goal.trim().is_empty() => {
            Err(invalid("for.run.goal", "it is empty: say what the run is for"))
        }
        Wait::Task(draft) if draft.goal.trim().is_empty() => {
            Err(invalid("for.task.goal", "it is empty: say what is to be done"))
        }
        Wait::Peer(_) if !task.offer.may_ask_peers => Err(not_allowed(
            "this task may not ask its peers (`may.ask_peers` of `take` says so): go on without",
        )),
        _ => Ok(()),
    }
}
