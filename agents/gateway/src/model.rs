//! `model`: a call of the fleet's model, by its keys, rates and budgets. What it used is the task's.

use std::sync::Arc;

use muster_agents::host::for_programs::ProgramQuestion;
use muster_agents::host::guarded::AfterGuards;
use muster_agents::model::call_admission::CallAdmission;
use muster_agents::model::chat::{ChatMessage, ModelError, ModelErrorKind};
use muster_agents::model::gate::Ownership;
use muster_bus::GatewayRequest;
use muster_shared::flow::{AgentState, ModelCall, Usage};
use muster_shared::ids::Role;
use muster_shared::wire::gateway::{GatewayRefusal, ModelRequest, RefusalCode, Speaker};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::open::{Course, OpenTask};
use crate::refusal::{Closed, busy, not_allowed};
use crate::route::{Begun, InHand, in_hand};

pub(crate) async fn model(
    desk: &Arc<Desk>,
    asked: &GatewayRequest,
    role: &Role,
    request: ModelRequest,
) -> Result<Option<Value>, GatewayRefusal> {
    let sent_as = request.id.as_deref();
    let InHand { task, mut course } = match in_hand(desk, asked, role, &request.token, sent_as).await? {
        Begun::ToDo(in_hand) => in_hand,
        Begun::Answered(answer) => return Ok(answer),
    };
    if let Some(closed) = &course.closed {
        return Err(closed.refusal());
    }
    if std::mem::replace(&mut course.is_asking, true) {
        return Err(busy("a model is being asked for this task already: wait for its answer"));
    }
    let mut gate = gate(desk, &task, &mut course);
    drop(course);
    task.progress.is(AgentState::Thinking);
    let AfterGuards { what, note } =
        desk.shared.guard_question(&task.role, &task.offer, question(&request)).await;
    let answered = match what {
        Ok(question) => Ok(desk.shared.ask(&task.role, &task.offer, question, &mut gate).await),
        Err(why) => Err(not_allowed(format!("the model was not asked: {why}"))),
    };
    let mut course = task.course.lock().await;
    course.is_asking = false;
    course.notes.extend(note);
    course.wasted += gate.take();
    course.gate = Some(gate);
    let call = answered?.map_err(|error| refused(&error))?;
    let answer = json!({
        "text": call.answer, "model": call.model, "cut": call.cut, "usage": call.usage, "millis": call.millis,
        "token": task.token,
    });
    course.pending.push(call);
    course.keep(request.id.as_deref(), &answer);
    if let Some(closed) = &course.closed {
        return Err(closed.refusal());
    }
    Ok(Some(answer))
}

fn gate(desk: &Desk, task: &OpenTask, course: &mut Course) -> CallAdmission {
    course.gate.take().unwrap_or_else(|| {
        let used = course.pending.iter().fold(course.history.usage(), |mut used: Usage, call: &ModelCall| {
            used += call.usage;
            used
        });
        let ownership: Arc<dyn Ownership> = course.journal.ownership();
        desk.shared.gate(&task.offer, used, ownership)
    })
}

fn question(request: &ModelRequest) -> ProgramQuestion {
    let messages = request.messages.iter().map(|spoken| match spoken.role {
        Speaker::User => ChatMessage::user(spoken.content.as_str()),
        Speaker::Assistant => ChatMessage::assistant(spoken.content.as_str()),
    });
    ProgramQuestion {
        system: request.system.clone(),
        messages: messages.collect(),
        schema: request.schema.clone(),
        temperature: request.temperature,
        max_tokens: request.max_tokens,
    }
}

fn refused(error: &ModelError) -> GatewayRefusal {
    match error.kind {
        ModelErrorKind::BudgetExhausted => not_allowed(format!(
            "{}: finish with what there is (`budget_exhausted` or `done_partial`)",
            error.message
        )),
        ModelErrorKind::Superseded => Closed::HandedOn(error.message.clone()).refusal(),
        _ if error.is_outage() => {
            let message =
                format!("the model gave no answer: {error}. Ask again later, or finish as `model_failed`");
            GatewayRefusal { retry: true, ..GatewayRefusal::new(RefusalCode::ModelFailed, message) }
        }
        _ => {
            let message = format!("the model gave no answer: {error}");
            GatewayRefusal::new(RefusalCode::ModelFailed, message)
        }
    }
}
