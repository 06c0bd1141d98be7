//! Control: messages that interrupt at once. May be lost; a durable command or the record says the same for good.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::AgentId;
use muster_shared::sync::lock;
use muster_shared::time::Millis;
use muster_shared::wire::{Body, ControlMessage, Encoding, Envelope, OwnerMessage};
use uuid::Uuid;

use crate::backend::{INBOX, Incoming, Message};
use crate::bus::{Core, now};
use crate::credentials::HolderKind;
use crate::error::BusError;
use crate::orders::refusal;
use crate::seal::{About, open_inline};
use crate::signatures::{Purpose, Signatures};
use crate::subject::{Subject, is_token};

/// How old what is obeyed at once may be, and how far ahead of the clock here, where it is signed.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Most ids that are kept in mind.
const MOST_SEEN: usize = 4096;

/// Messages that interrupt.
#[derive(Clone)]
pub struct Control {
    pub(crate) core: Arc<Core>,
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
    /// Sends a message to whoever listens now.
    ///
    /// # Errors
    /// When the role is no name, or the bus fails.
    pub async fn send(&self, to: &ControlTarget, message: &ControlMessage) -> Result<(), BusError> {
        let sealed = self.seal(to, message).await?;
        self.core.backend.publish(sealed).await
    }

    /// Sends a message to one process and waits for its answer, by NATS request and reply.
    ///
    /// # Errors
    /// When nobody listens, nobody answers within `patience`, the answer cannot be read, or the bus fails.
    pub async fn request(
        &self,
        to: &AgentId,
        message: &ControlMessage,
        patience: Duration,
    ) -> Result<ControlMessage, BusError> {
        let sealed = self.seal(&ControlTarget::Agent(to.clone()), message).await?;
        let answer = self.core.backend.request(sealed, patience).await?;
        match open_inline(&answer).map(|envelope| envelope.body) {
            Ok(Body::Control(answer)) => Ok(answer),
            Ok(other) => Err(BusError::Codec {
                reason: format!("an answer of kind {:?} is no control message", other.kind()),
            }),
            Err(reason) => Err(BusError::Codec { reason }),
        }
    }

    async fn seal(&self, to: &ControlTarget, message: &ControlMessage) -> Result<Message, BusError> {
        let (subject, receiver) = match to {
            ControlTarget::All => (Subject::ControlAll, None),
            ControlTarget::Role(role) => (Subject::ControlRole(checked(role)?), None),
            ControlTarget::Agent(agent) => (Subject::ControlAgent(agent.clone()), Some(agent.clone())),
        };
        let about = About { receiver, ..about(message) };
        let body = Body::Control(message.clone());
        // Small and rare: programs that read JSON only must be able to obey too.
        let sealed = self.core.seal(subject.to_string(), body, about, Encoding::Json).await?;
        Ok(self.core.signatures.sign_message(Purpose::Control, sealed))
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
        Ok(self.serve(agent, role).await?.map(|received| received.message).boxed())
    }

    /// The same for an agent that this process speaks for: on the connection that there is.
    ///
    /// # Errors
    /// When the role is no name, or the bus fails.
    pub async fn overhear(
        &self,
        agent: &AgentId,
        role: &str,
    ) -> Result<BoxStream<'static, ControlMessage>, BusError> {
        let mut all = futures::stream::SelectAll::new();
        for subject in subjects(agent, role)? {
            all.push(self.core.backend.subscribe(&subject).await?);
        }
        let obeyed = Obeyed::new(self.core.signatures.clone());
        let read = move |message: Message| {
            let control = obeyed.open(&message).map(|(_, control)| control);
            std::future::ready(control)
        };
        Ok(all.filter_map(read).boxed())
    }

    /// The same for whoever answers those messages that are requests.
    ///
    /// # Errors
    /// When the role is no name, or the bus fails.
    pub async fn serve(
        &self,
        agent: &AgentId,
        role: &str,
    ) -> Result<BoxStream<'static, ReceivedControl>, BusError> {
        let messages = self.core.backend.subscribe_apart(&subjects(agent, role)?).await?;
        let core = Arc::clone(&self.core);
        let obeyed = Obeyed::new(core.signatures.clone());
        let read = move |incoming| {
            let received = ReceivedControl::read(&core, &obeyed, incoming);
            async move { received }
        };
        Ok(messages.filter_map(read).boxed())
    }
}

/// A control message that came in.
pub struct ReceivedControl {
    core: Arc<Core>,
    /// What is said.
    pub message: ControlMessage,
    /// The message's own id, for the answer.
    id: Uuid,
    reply: Option<String>,
}

impl ReceivedControl {
    /// What cannot be read, or was forged, is not worth keeping: the sender's durable command says the same.
    fn read(core: &Arc<Core>, obeyed: &Obeyed, incoming: Incoming) -> Option<Self> {
        let Incoming { message, reply } = incoming;
        let (id, control) = obeyed.open(&message)?;
        let reply = reply.filter(|reply| reply.starts_with(INBOX));
        Some(Self { core: Arc::clone(core), message: control, id, reply })
    }

    /// Answers it, if its sender waits for an answer.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn answer(&self, answer: &ControlMessage) -> Result<(), BusError> {
        let Some(reply) = &self.reply else { return Ok(()) };
        let about = About { correlation: Some(self.id), ..about(answer) };
        let body = Body::Control(answer.clone());
        let sealed = self.core.seal(reply.clone(), body, about, Encoding::Json).await?;
        self.core.backend.publish(sealed).await
    }
}

impl std::fmt::Debug for ReceivedControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReceivedControl").field("message", &self.message).finish_non_exhaustive()
    }
}

/// What one listener obeys: what an orchestrator or an operator signed just now, and once.
struct Obeyed {
    signatures: Signatures,
    seen: Mutex<SeenIds>,
}

impl Obeyed {
    fn new(signatures: Signatures) -> Self {
        Self { signatures, seen: Mutex::default() }
    }

    /// The control message in it, with its id, if it is to be obeyed.
    fn open(&self, message: &Message) -> Option<(Uuid, ControlMessage)> {
        let opened = open_inline(message).and_then(|envelope| {
            self.check(message, &envelope)?;
            match envelope.body {
                Body::Control(control) => Ok((envelope.id, control)),
                other => Err(format!("a body of kind {:?} is no control message", other.kind())),
            }
        });
        opened
            .inspect_err(
                |reason| tracing::warn!(subject = %message.subject, reason, "a control message is not obeyed"),
            )
            .ok()
    }

    fn check(&self, message: &Message, envelope: &Envelope) -> Result<(), String> {
        let now = now();
        let who = self.signatures.sender_of(Purpose::Control, message, now);
        let Some(who) = who.map_err(|error| refusal(&error))? else { return Ok(()) };
        // A person sends requests to orchestrators, which store them, not to agents.
        if !matches!(who.kind, HolderKind::Operator | HolderKind::Orchestrator) {
            return Err(format!("{} ({}) has nothing to say here", who.name, who.kind));
        }
        check_now(envelope.sent, now)?;
        let is_new = lock(&self.seen).note(envelope.id);
        if is_new { Ok(()) } else { Err("it was obeyed before".to_owned()) }
    }
}

fn check_now(sent: Millis, now: Millis) -> Result<(), String> {
    if sent.since(now) <= GOOD_FOR && now.since(sent) <= GOOD_FOR {
        return Ok(());
    }
    Err(format!(
        "by its sender's clock it is not of this minute ({sent}, it is {now} here): set both clocks by NTP"
    ))
}

/// Ids that were seen. Bounded: by the time one is forgotten, what bears it is too old.
#[derive(Debug, Default)]
struct SeenIds {
    ids: HashSet<Uuid>,
    order: VecDeque<Uuid>,
}

impl SeenIds {
    /// Whether it is seen for the first time.
    fn note(&mut self, id: Uuid) -> bool {
        if id.is_nil() || !self.ids.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > MOST_SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

fn about(message: &ControlMessage) -> About {
    match message {
        ControlMessage::CancelRun { run, .. } | ControlMessage::ParkRun { run, .. } => About::run(*run),
        ControlMessage::CancelTask { run, task, .. }
        | ControlMessage::ParkTask { run, task, .. }
        | ControlMessage::Inform { run, task, .. } => About::task(*run, task),
        ControlMessage::Owners(OwnerMessage::Order { command, signed: _ }) => About::run(command.run()),
        ControlMessage::Owners(OwnerMessage::Due { run }) => About::run(*run),
        ControlMessage::Owners(OwnerMessage::Answer { .. }) | ControlMessage::Shutdown => About::default(),
    }
}

/// Where an agent is told something.
fn subjects(agent: &AgentId, role: &str) -> Result<[String; 3], BusError> {
    Ok([
        Subject::ControlAll.to_string(),
        Subject::ControlRole(checked(role)?).to_string(),
        Subject::ControlAgent(agent.clone()).to_string(),
    ])
}

fn checked(role: &str) -> Result<String, BusError> {
    if is_token(role) {
        Ok(role.to_owned())
    } else {
        let name = role.chars().take(80).collect();
        Err(BusError::BadName { name, rule: "a role is letters, digits, - and _" })
    }
}

#[cfg(test)]
mod tests;
