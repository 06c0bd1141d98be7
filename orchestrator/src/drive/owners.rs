//! What orchestrators ask of each other: a command or a timer that came to one of them reaches the one that has the
//! run, at once and by name. A command stays in its queue, in the hands of the one it came to, until it is on record.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use futures::StreamExt;
use muster_bus::{BusError, ControlTarget};
use muster_shared::ids::{AgentId, RunId};
use muster_shared::run::Input;
use muster_shared::wire::{Command, ControlMessage, OwnerAnswer, OwnerMessage};
use tokio::sync::{Semaphore, oneshot};
use uuid::Uuid;

use super::capacity::ORCHESTRATOR;
use super::context::OrchestratorContext;
use super::intake;
use super::registry::Registry;
use super::run_actor::RunMessage;
use super::turn::OrderReply;

/// Longest wait for another orchestrator's answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Orders of others that are in hand at once; more are told to come again.
const AT_ONCE: usize = 64;

/// Orders that others have in hand.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    waiting: DashMap<Uuid, oneshot::Sender<OwnerAnswer>>,
}

/// Hands a command to the orchestrator that has its run, and waits for the answer.
pub(super) async fn hand_on(
    context: &OrchestratorContext,
    owner: &AgentId,
    command: &Command,
    sender: &AgentId,
) -> OrderReply {
    let (id, (tell, told)) = (Uuid::new_v4(), oneshot::channel());
    context.handed.waiting.insert(id, tell);
    let from = context.bus.who().clone();
    let command = Box::new(command.clone());
    let sent = send(context, owner, OwnerMessage::Order { id, from, command, sender: sender.clone() }).await;
    let answer = match sent {
        Ok(()) => tokio::time::timeout(PATIENCE, told).await.ok().and_then(Result::ok),
        Err(error) => {
            tracing::warn!(%owner, %error, "a command could not be handed on; it will be given out again");
            None
        }
    };
    context.handed.waiting.remove(&id);
    match answer {
        Some(OwnerAnswer::Recorded) => OrderReply::Recorded,
        Some(OwnerAnswer::NoSuchRun) => OrderReply::NoSuchRun,
        Some(OwnerAnswer::Later) | None => OrderReply::Later,
    }
}

/// Sees to a timer that fired, here or by telling the orchestrator that has the run.
pub(super) async fn due(context: &Arc<OrchestratorContext>, run: RunId) {
    if context.is_set_aside(run) {
        return;
    }
    let Some(owner) = elsewhere(context, run) else { return wake(context, run) };
    if let Err(error) = send(context, &owner, OwnerMessage::Due { run }).await {
        // It keeps an alarm of its own.
        tracing::debug!(%run, %owner, %error, "an owner could not be told of a timer");
    }
}

/// Which other orchestrator says that it has the run.
pub(super) fn elsewhere(context: &OrchestratorContext, run: RunId) -> Option<AgentId> {
    if context.registry.has(run) {
        return None;
    }
    context.ownership.sessions().owner(run).filter(|owner| *owner != context.bus.who()).cloned()
}

fn wake(context: &Arc<OrchestratorContext>, run: RunId) {
    drop(Registry::open(context, run));
    context.registry.tell(run, RunMessage::Wake(Input::Timer));
}

async fn send(context: &OrchestratorContext, owner: &AgentId, message: OwnerMessage) -> Result<(), BusError> {
    let to = ControlTarget::Agent(owner.clone());
    context.bus.control().send(&to, &ControlMessage::Owners(message)).await
}

/// Hears what others ask, until it is told to leave.
///
/// # Errors
/// When nothing can be heard, or cannot be heard any more.
pub(super) async fn hear(context: Arc<OrchestratorContext>) -> Result<(), BusError> {
    let mut messages = context.bus.control().listen(context.bus.who(), ORCHESTRATOR).await?;
    let hands = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(message) = messages.next().await {
        match message {
            ControlMessage::Owners(message) => take(&context, &hands, message),
            ControlMessage::Shutdown => return Ok(()),
            // Runs are stopped by a durable command; these are for agents.
            ControlMessage::CancelRun { .. }
            | ControlMessage::CancelTask { .. }
            | ControlMessage::ParkRun { .. }
            | ControlMessage::ParkTask { .. }
            | ControlMessage::Inform { .. } => {}
        }
    }
    Err(BusError::Other { what: "control".into(), reason: "the bus gave no more messages".into() })
}

fn take(context: &Arc<OrchestratorContext>, hands: &Arc<Semaphore>, message: OwnerMessage) {
    match message {
        OwnerMessage::Due { run } => {
            if context.registry.has(run) {
                context.registry.tell(run, RunMessage::Wake(Input::Timer));
            }
        }
        OwnerMessage::Answer { id, answer } => {
            if let Some((_, tell)) = context.handed.waiting.remove(&id) {
                // Whoever asked may have stopped waiting.
                let _gone = tell.send(answer);
            }
        }
        OwnerMessage::Order { id, from, command, sender } => {
            let hand = Arc::clone(hands).try_acquire_owned().ok();
            let inside = Arc::clone(context);
            context.in_hand.spawn(async move {
                let answer = match hand {
                    Some(_hand) => obey(&inside, &command, &sender).await,
                    None => OwnerAnswer::Later,
                };
                if let Err(error) = send(&inside, &from, OwnerMessage::Answer { id, answer }).await {
                    tracing::debug!(%from, %error, "an answer is lost; the command will be given out again");
                }
            });
        }
    }
}

async fn obey(context: &Arc<OrchestratorContext>, command: &Command, sender: &AgentId) -> OwnerAnswer {
    match intake::see_to(context, command, sender, 0).await {
        Ok(OrderReply::Recorded) => OwnerAnswer::Recorded,
        Ok(OrderReply::NoSuchRun) => OwnerAnswer::NoSuchRun,
        Ok(OrderReply::Elsewhere(_) | OrderReply::Crowded | OrderReply::Later) => OwnerAnswer::Later,
        Err(error) => {
            tracing::warn!(%error, "an order of another orchestrator could not be seen to");
            OwnerAnswer::Later
        }
    }
}
