//! Commands for orchestrators: they are kept until one is done with them.

use std::sync::Arc;
use std::time::Duration;

use muster_shared::ids::{AgentId, Seq};
use muster_shared::time::Millis;
use muster_shared::wire::{Body, Command, Encoding, Envelope};
use uuid::Uuid;

use crate::backend::{Ack, Delivery, Pull, QueueSpec, WriteOptions};
use crate::bus::{Core, now};
use crate::error::{AppendError, BusError};
use crate::queue::{reject, take};
use crate::seal::About;
use crate::subject::Subject;
use crate::topology::COMMANDS;

/// How long a command may be held without a sign of progress before another orchestrator gets it.
const COMMAND_WAIT: Duration = Duration::from_secs(5);

/// The durable commands.
#[derive(Clone)]
pub struct Commands {
    core: Arc<Core>,
}

impl Commands {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// Sends a command; it is kept until an orchestrator is done with it. The same command sent again within ten
    /// minutes is stored once: a goal is told by its run, other commands by the id they carry, and without one they
    /// are all different.
    ///
    /// # Errors
    /// When the command is too large, the queue is full, or the bus fails.
    pub async fn send(&self, command: &Command, encoding: Encoding) -> Result<Seq, BusError> {
        let run = command.run();
        let subject = Subject::Command(run, command.name().to_owned()).to_string();
        let body = Body::Command(command.clone());
        let expires = command.lifetime().map(|lifetime| now().after(lifetime));
        let message = self.core.seal(subject, body, About { expires, ..About::run(run) }, encoding).await?;
        let dedup = match (command, command.id()) {
            (Command::Submit { .. } | Command::Fork { .. }, _) => Some(format!("{run}.{}", command.name())),
            (_, Some(id)) => Some(format!("{run}.{}.{id}", command.name())),
            (_, None) => None,
        };
        let options = WriteOptions { dedup, ..WriteOptions::default() };
        match self.core.backend.append(COMMANDS, vec![message], options).await {
            Ok(appended) => Ok(appended.last),
            Err(AppendError::Ambiguous { limit }) => {
                Err(BusError::TimedOut { what: format!("the command {}", command.name()), limit })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Joins the queue of commands, which all orchestrators share.
    ///
    /// # Errors
    /// When the bus is not provisioned, or fails.
    pub async fn join(&self) -> Result<CommandQueue, BusError> {
        let spec = QueueSpec {
            stream: COMMANDS,
            name: "orchestrators".into(),
            filter: "cmd.>".into(),
            ack_wait: COMMAND_WAIT.min(self.core.settings.ack_wait),
            idle: None,
        };
        let pull = self.core.backend.join(&spec).await?;
        Ok(CommandQueue { core: Arc::clone(&self.core), pull })
    }
}

/// The queue of commands.
#[derive(Clone)]
pub struct CommandQueue {
    core: Arc<Core>,
    pull: Arc<dyn Pull>,
}

impl CommandQueue {
    /// The next command; nothing when none came within `wait`.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn take(&self, wait: Duration) -> Result<Option<TakenCommand>, BusError> {
        take(&self.core, &*self.pull, wait, |delivery, envelope| {
            check_time(delivery.stored.at, envelope.sent, self.core.settings.clock_ahead)?;
            let (id, sender) = (envelope.id, envelope.sender.clone());
            // Both by the sender's clock: how long it is good for does not depend on whose clock is right.
            let lifetime = envelope.expires.map(|expires| expires.since(envelope.sent));
            let command = command_in(&delivery.stored.message.subject, envelope)?;
            let (core, delivered) = (Arc::clone(&self.core), delivery.delivered);
            Ok(TakenCommand { core, delivery, command, sender, delivered, id, lifetime })
        })
        .await
    }
}

/// A command in this process's hands. Dropped without a word, it goes to another orchestrator after `ack_wait`.
pub struct TakenCommand {
    core: Arc<Core>,
    delivery: Delivery,
    /// What is asked.
    pub command: Command,
    /// Who asks.
    pub sender: AgentId,
    /// How often it was given out, from 1.
    pub delivered: u64,
    /// The message's own id.
    id: Uuid,
    lifetime: Option<Duration>,
}

impl TakenCommand {
    /// The command with an id that tells it from others like it, the same whenever it is given out, and with who asks.
    #[must_use]
    pub fn identified(&self) -> Command {
        self.command.clone().sent(self.id, &self.sender)
    }

    /// For how much longer it is of use, if it says when it is of none any more. `now` goes by the broker's stamps, as
    /// does the time at which it was stored.
    #[must_use]
    pub fn time_left(&self, now: Millis) -> Option<Duration> {
        Some(self.lifetime?.saturating_sub(now.since(self.delivery.stored.at)))
    }

    /// Says that the command is being worked on.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn progress(&self) -> Result<(), BusError> {
        self.core.backend.ack(&self.delivery.ack, Ack::Progress, false).await
    }

    /// Removes the command and waits until the broker did so.
    ///
    /// # Errors
    /// When the bus fails; the command may then be given out again.
    pub async fn done(self) -> Result<(), BusError> {
        self.core.backend.ack(&self.delivery.ack, Ack::Done, true).await
    }

    /// Gives the command back, to be given out again after `delay`.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn hand_back(self, delay: Duration) -> Result<(), BusError> {
        self.core.backend.ack(&self.delivery.ack, Ack::Nak(delay), false).await
    }

    /// Removes the command and keeps a dead letter with the reason.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn reject(self, reason: &str) -> Result<(), BusError> {
        reject(&self.core, &self.delivery, reason).await
    }
}

impl std::fmt::Debug for TakenCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("TakenCommand");
        text.field("command", &self.command).field("sender", &self.sender).finish_non_exhaustive()
    }
}

/// Refuses what claims to come from the future. A sender that does not say when it was sent is believed.
fn check_time(stored: Millis, sent: Millis, most: Duration) -> Result<(), String> {
    let ahead = sent.since(stored);
    if ahead <= most {
        return Ok(());
    }
    Err(format!(
        "field sent: it is {} s ahead of the broker's clock, {} s is the most: set the sender's clock by NTP, or leave \
         the field out (bus.clock_ahead)",
        ahead.as_secs(),
        most.as_secs()
    ))
}

/// The command in a message, if it is for the run that its subject names.
fn command_in(subject: &str, envelope: Envelope) -> Result<Command, String> {
    let Subject::Command(run, name) = Subject::parse(subject)? else {
        return Err(format!("{subject} is not the subject of a command"));
    };
    match envelope.body {
        Body::Command(command) if (command.run(), command.name()) == (run, name.as_str()) => Ok(command),
        Body::Command(_) => Err("the command is not the one its subject names".into()),
        other => Err(format!("a body of kind {:?} does not belong among commands", other.kind())),
    }
}
