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
use super::intake;
use super::office::Office;
use super::registry::Registry;
use super::run_actor::Mail;
use super::turn::Answer;

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
pub(super) async fn hand_on(office: &Office, owner: &AgentId, command: &Command, sender: &AgentId) -> Answer {
    let (id, (tell, told)) = (Uuid::new_v4(), oneshot::channel());
    office.handed.waiting.insert(id, tell);
    let from = office.bus.who().clone();
    let command = Box::new(command.clone());
    let sent = send(office, owner, OwnerMessage::Order { id, from, command, sender: sender.clone() }).await;
    let answer = match sent {
        Ok(()) => tokio::time::timeout(PATIENCE, told).await.ok().and_then(Result::ok),
        Err(error) => {
            tracing::warn!(%owner, %error, "a command could not be handed on; it will be given out again");
            None
        }
    };
    office.handed.waiting.remove(&id);
    match answer {
        Some(OwnerAnswer::Recorded) => Answer::Recorded,
        Some(OwnerAnswer::NoSuchRun) => Answer::NoSuchRun,
        Some(OwnerAnswer::Later) | None => Answer::Later,
    }
}

/// Sees to a timer that fired, here or by telling the orchestrator that has the run.
pub(super) async fn due(office: &Arc<Office>, run: RunId) {
    if office.is_set_aside(run) {
        return;
    }
    let Some(owner) = elsewhere(office, run) else { return wake(office, run) };
    if let Err(error) = send(office, &owner, OwnerMessage::Due { run }).await {
        // It keeps an alarm of its own.
        tracing::debug!(%run, %owner, %error, "an owner could not be told of a timer");
    }
}

/// Which other orchestrator says that it has the run.
pub(super) fn elsewhere(office: &Office, run: RunId) -> Option<AgentId> {
    if office.registry.has(run) {
        return None;
    }
    office.ownership.sessions().owner(run).filter(|owner| *owner != office.bus.who()).cloned()
}

fn wake(office: &Arc<Office>, run: RunId) {
    drop(Registry::open(office, run));
    office.registry.tell(run, Mail::Wake(Input::Timer));
}

async fn send(office: &Office, owner: &AgentId, message: OwnerMessage) -> Result<(), BusError> {
    let to = ControlTarget::Agent(owner.clone());
    office.bus.control().send(&to, &ControlMessage::Owners(message)).await
}

/// Hears what others ask, until it is told to leave.
///
/// # Errors
/// When nothing can be heard, or cannot be heard any more.
pub(super) async fn hear(office: Arc<Office>) -> Result<(), BusError> {
    let mut messages = office.bus.control().listen(office.bus.who(), ORCHESTRATOR).await?;
    let hands = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(message) = messages.next().await {
        match message {
            ControlMessage::Owners(message) => take(&office, &hands, message),
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

fn take(office: &Arc<Office>, hands: &Arc<Semaphore>, message: OwnerMessage) {
    match message {
        OwnerMessage::Due { run } => {
            if office.registry.has(run) {
                office.registry.tell(run, Mail::Wake(Input::Timer));
            }
        }
        OwnerMessage::Answer { id, answer } => {
            if let Some((_, tell)) = office.handed.waiting.remove(&id) {
                // Whoever asked may have stopped waiting.
                let _gone = tell.send(answer);
            }
        }
        OwnerMessage::Order { id, from, command, sender } => {
            let hand = Arc::clone(hands).try_acquire_owned().ok();
            let inside = Arc::clone(office);
            office.in_hand.spawn(async move {
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

async fn obey(office: &Arc<Office>, command: &Command, sender: &AgentId) -> OwnerAnswer {
    match intake::see_to(office, command, sender, 0).await {
        Ok(Answer::Recorded) => OwnerAnswer::Recorded,
        Ok(Answer::NoSuchRun) => OwnerAnswer::NoSuchRun,
        Ok(Answer::Elsewhere(_) | Answer::Crowded | Answer::Later) => OwnerAnswer::Later,
        Err(error) => {
            tracing::warn!(%error, "an order of another orchestrator could not be seen to");
            OwnerAnswer::Later
        }
    }
}
