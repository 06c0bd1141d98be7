//! Control: messages that interrupt at once. May be lost; a durable command or the record says the same for good.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::AgentId;
use muster_shared::wire::{Body, ControlMessage, Encoding, OwnerMessage};

use crate::backend::Message;
use crate::bus::Core;
use crate::error::BusError;
use crate::seal::{About, open_inline};
use crate::subject::{Subject, is_token};

/// Messages that interrupt.
#[derive(Clone)]
pub struct Control {
    core: Arc<Core>,
}

/// For whom a control message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlTarget {
    /// Everybody.
    All,
    /// All of a role (`orchestrator` included).
    Role(String),
    /// One process.
    Agent(AgentId),
}

impl Control {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// Sends a message to whoever listens now.
    ///
    /// # Errors
    /// When the role is no name, or the bus fails.
    pub async fn send(&self, to: &ControlTarget, message: &ControlMessage) -> Result<(), BusError> {
        let (subject, receiver) = match to {
            ControlTarget::All => (Subject::ControlAll, None),
            ControlTarget::Role(role) => (Subject::ControlRole(checked(role)?), None),
            ControlTarget::Agent(agent) => (Subject::ControlAgent(agent.clone()), Some(agent.clone())),
        };
        let about = match message {
            ControlMessage::CancelRun { run, .. } | ControlMessage::ParkRun { run, .. } => About::run(*run),
            ControlMessage::CancelTask { run, task, .. }
            | ControlMessage::ParkTask { run, task, .. }
            | ControlMessage::Inform { run, task, .. } => About::task(*run, task),
            ControlMessage::Owners(message) => about_owners(message),
            ControlMessage::Shutdown => About::default(),
        };
        let body = Body::Control(message.clone());
        let about = About { receiver, ..about };
        // Small and rare: programs that read JSON only must be able to obey too.
        let sealed = self.core.seal(subject.to_string(), body, about, Encoding::Json).await?;
        self.core.backend.publish(sealed).await
    }

    /// What is sent to an agent, to its role, or to all, from now on. On a connection of its own, so that it gets
    /// through while the other one is busy.
    ///
    /// # Errors
    /// When the role is no name, or the bus fails.
    pub async fn listen(
        &self,
        agent: &AgentId,
        role: &str,
    ) -> Result<BoxStream<'static, ControlMessage>, BusError> {
        let subjects = [
            Subject::ControlAll.to_string(),
            Subject::ControlRole(checked(role)?).to_string(),
            Subject::ControlAgent(agent.clone()).to_string(),
        ];
        let messages = self.core.backend.subscribe_apart(&subjects).await?;
        Ok(messages.filter_map(|message| async move { control_in(&message) }).boxed())
    }
}

fn about_owners(message: &OwnerMessage) -> About {
    match message {
        OwnerMessage::Order { command, .. } => About::run(command.run()),
        OwnerMessage::Due { run } => About::run(*run),
        OwnerMessage::Answer { id, .. } => About { correlation: Some(*id), ..About::default() },
    }
}

/// What cannot be read is not worth keeping: the sender's durable command says the same.
fn control_in(message: &Message) -> Option<ControlMessage> {
    match open_inline(message).map(|envelope| envelope.body) {
        Ok(Body::Control(control)) => Some(control),
        Ok(other) => {
            tracing::warn!(subject = %message.subject, kind = ?other.kind(), "not a control message");
            None
        }
        Err(reason) => {
            tracing::warn!(subject = %message.subject, reason, "a control message cannot be read");
            None
        }
    }
}

fn checked(role: &str) -> Result<String, BusError> {
    if is_token(role) {
        Ok(role.to_owned())
    } else {
        let name = role.chars().take(80).collect();
        Err(BusError::BadName { name, rule: "a role is letters, digits, - and _" })
    }
}
