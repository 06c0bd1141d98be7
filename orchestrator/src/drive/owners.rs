//! What orchestrators ask of each other: a command that came to one of them reaches the one that has the run, at once
//! and by name. A command is handed on by NATS request and reply, and stays in its queue, in the hands of
//! the one it came to, until the answer says that it is on record.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use muster_bus::{BusError, ControlTarget, ReceivedControl};
use muster_shared::ids::{AgentId, RunId};
use muster_shared::run::Input;
use muster_shared::wire::{ControlMessage, OwnerAnswer, OwnerMessage};
use tokio::sync::Semaphore;

use super::capacity::ORCHESTRATOR;
use super::context::OrchestratorContext;
use super::intake::{self, Given};
use super::registry::Registry;
use super::run_actor::RunMessage;
use super::turn::OrderReply;

/// Longest wait for another orchestrator's answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Orders of others that are in hand at once; more are told to come again.
const AT_ONCE: usize = 64;

/// Hands a command to the orchestrator that has its run, and waits for the answer. One that is not answered, because the
/// other one died or is too busy, is given out again by the queue: nothing depends on the answer getting through.
pub(super) async fn hand_on(context: &OrchestratorContext, owner: &AgentId, order: &Given) -> OrderReply {
    let (command, signed) = (Box::new(order.command.clone()), order.signed.clone());
    let order = ControlMessage::Owners(OwnerMessage::Order { command, signed });
    match context.bus.control().request(owner, &order, PATIENCE).await {
        Ok(ControlMessage::Owners(OwnerMessage::Answer { answer })) => match answer {
            OwnerAnswer::Recorded => OrderReply::Recorded,
            OwnerAnswer::NoSuchRun => OrderReply::NoSuchRun,
            OwnerAnswer::Later => OrderReply::Later,
        },
        Ok(other) => {
            tracing::warn!(%owner, ?other, "a command was answered with what is no answer");
            OrderReply::Later
        }
        Err(error) => {
            tracing::debug!(%owner, %error, "a command could not be handed on; it will be given out again");
            OrderReply::Later
        }
    }
}

/// Sees to a run that it is time to look at, here or by telling the orchestrator that has it.
pub(super) async fn due(context: &Arc<OrchestratorContext>, run: RunId) {
    if context.is_set_aside(run) {
        return;
    }
    let Some(owner) = elsewhere(context, run) else { return wake(context, run) };
    if let Err(error) = send(context, &owner, OwnerMessage::Due { run }).await {
        // It keeps an alarm of its own.
        tracing::debug!(%run, %owner, %error, "an owner could not be told that it is time to look at its run");
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
    let mut messages = context.bus.control().serve(context.bus.who(), ORCHESTRATOR).await?;
    let hands = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(received) = messages.next().await {
        match &received.message {
            ControlMessage::Owners(OwnerMessage::Due { run }) => {
                if context.registry.has(*run) {
                    context.registry.tell(*run, RunMessage::Wake(Input::Timer));
                }
            }
            ControlMessage::Owners(OwnerMessage::Order { command, signed }) => {
                let order = Given { command: (**command).clone(), signed: signed.clone() };
                take(&context, &hands, received, order);
            }
            ControlMessage::Shutdown => return Ok(()),
            // Answers come to whoever waits for them. Runs are stopped by a durable command; the others are for agents.
            ControlMessage::Owners(OwnerMessage::Answer { .. })
            | ControlMessage::CancelRun { .. }
            | ControlMessage::CancelTask { .. }
            | ControlMessage::ParkRun { .. }
            | ControlMessage::ParkTask { .. }
            | ControlMessage::Inform { .. } => {}
        }
    }
    Err(BusError::Other { what: "control".into(), reason: "the bus gave no more messages".into() })
}

fn take(context: &Arc<OrchestratorContext>, hands: &Arc<Semaphore>, received: ReceivedControl, order: Given) {
    let hand = Arc::clone(hands).try_acquire_owned().ok();
    let inside = Arc::clone(context);
    context.in_hand.spawn(async move {
        let answer = match hand {
            Some(_hand) => obey(&inside, &order).await,
            None => OwnerAnswer::Later,
        };
        let answer = ControlMessage::Owners(OwnerMessage::Answer { answer });
        if let Err(error) = received.answer(&answer).await {
            tracing::debug!(%error, "an answer is lost; the command will be given out again");
        }
    });
}

async fn obey(context: &Arc<OrchestratorContext>, order: &Given) -> OwnerAnswer {
    match intake::see_to(context, order, 0).await {
        Ok(OrderReply::Recorded) => OwnerAnswer::Recorded,
        Ok(OrderReply::NoSuchRun) => OwnerAnswer::NoSuchRun,
        Ok(OrderReply::Elsewhere(_) | OrderReply::Crowded | OrderReply::Later) => OwnerAnswer::Later,
        Err(error) => {
            tracing::warn!(%error, "an order of another orchestrator could not be seen to");
            OwnerAnswer::Later
        }
    }
}
