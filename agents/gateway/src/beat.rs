//! `beat`: a program lives, and hears what is new.

use std::sync::Arc;

use muster_bus::GatewayRequest;
use muster_shared::flow::AgentState;
use muster_shared::ids::Role;
use muster_shared::wire::gateway::{BeatRequest, GatewayRefusal, RefusalCode};
use serde_json::{Value, json};

use crate::desk::{Desk, PastTask};
use crate::open::{Course, OpenTask};
use crate::orders;
use crate::refusal::Closed;
use crate::route::{Found, find};

pub(crate) async fn beat(
    desk: &Arc<Desk>,
    asked: &GatewayRequest,
    role: &Role,
    request: BeatRequest,
) -> Result<Option<Value>, GatewayRefusal> {
    let task = match find(desk, asked, role, &request.token).await {
        Ok(Found::Open(task)) => task,
        Ok(Found::Past(past)) => return Ok(Some(over(&past.why))),
        Ok(Found::Answered) => return Ok(None),
        Err(refusal) => return told_over(refusal).map(Some),
    };
    let _at_work = task.at_work();
    if let Some(status) = &request.status {
        task.progress.is(AgentState::Acting);
        task.progress.status(&desk.shared.redacted(status), muster_shared::flow::Usage::default());
    }
    // A call of another request about the task must not keep it from being heard.
    let Ok(mut course) = task.course.try_lock() else {
        keep(desk, &task).await;
        return Ok(Some(json!({ "token": task.token })));
    };
    if let Some((_, why)) = task.is_to_park().filter(|_| course.closed.is_none()) {
        orders::put_down(desk, &task, &mut course, &why).await;
    }
    if let Some(closed) = &course.closed {
        return Ok(Some(over(closed)));
    }
    let answer = news(&task, &mut course);
    drop(course);
    keep(desk, &task).await;
    Ok(Some(answer))
}

/// What is new, with the token to go on with.
pub(crate) fn news(task: &OpenTask, course: &mut Course) -> Value {
    let mut answer = json!({ "token": task.token });
    let told = task.mailbox.take(course.history.steps());
    if !told.is_empty() {
        answer["news"] = json!(told);
        course.told.extend(told);
    }
    if let Some(progress) = task.mailbox.progress() {
        answer["progress"] = json!(progress);
    }
    answer
}

/// The program of a task was heard of.
pub(crate) async fn keep(desk: &Desk, task: &OpenTask) {
    let Some(program) = desk.programs.find(&task.agent) else { return };
    let busy = u32::try_from(desk.of_agent(&task.agent).len()).unwrap_or(u32::MAX);
    if let Err(error) = program.hear(busy).await {
        tracing::warn!(%error, agent = %task.agent, "a heartbeat is lost");
    }
}

/// A task is not its program's any more: a beat is told so, and not refused.
fn over(why: &Closed) -> Value {
    json!({ "order": why.order(), "over": true, "reason": why.refusal().message })
}

fn told_over(refusal: GatewayRefusal) -> Result<Value, GatewayRefusal> {
    let order = match refusal.code {
        RefusalCode::GivenAway => "given_away",
        RefusalCode::Cancelled => "cancel",
        RefusalCode::PutDown => "park",
        RefusalCode::Ended => "ended",
        _ => return Err(refusal),
    };
    Ok(json!({ "order": order, "over": true, "reason": refusal.message }))
}

impl PastTask {
    /// What a message about it is answered: as before, or that it is over.
    pub(crate) fn answer(&self, message: Option<&str>) -> Result<Value, GatewayRefusal> {
        let known = message.and_then(|message| self.answers.iter().find(|(id, _)| id == message));
        known.map(|(_, answer)| answer.clone()).ok_or_else(|| self.why.refusal())
    }
}
