//! Commands for orchestrators: they are kept until one is done with them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use muster_shared::ids::{AgentId, Seq};
use muster_shared::run::{SignedOrder, SignerKind};
use muster_shared::sync::lock;
use muster_shared::time::Millis;
use muster_shared::wire::ask::Ask;
use muster_shared::wire::{Body, Command, Encoding, Envelope};
use uuid::Uuid;

use crate::backend::{Ack, Delivery, Headers, Message, Pull, QueueSpec, WriteOptions};
use crate::bus::{Core, now};
use crate::credentials::Identity;
use crate::error::{AppendError, BusError};
use crate::orders::{OrderTimes, SeenOrders, check_age, may_give, proof, refusal, signer_kind};
use crate::queue::{reject, take};
use crate::seal::{About, open_inline};
use crate::signatures::{Purpose, Signature, Signatures, said_by};
use crate::subject::Subject;
use crate::topology::COMMANDS;

/// Most time that the `sent` of a command may be ahead of the clock of the broker; a later one makes a dead letter.
/// Order follows from positions alone. A clock that is an hour off has a wrong time zone.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// The header with the signed order behind a command that another process sends: the request that an orchestrator turns into a
/// command, or the command of a dead letter that an operator sends again.
pub(crate) const ASKED_BY: &str = "Muster-Asked-By";

/// How long a command may be held without a sign of progress before another orchestrator gets it.
const COMMAND_WAIT: Duration = Duration::from_secs(5);

/// The durable commands.
#[derive(Clone)]
pub struct Commands {
    pub(crate) core: Arc<Core>,
}

impl Commands {
    /// Sends a command; it is kept until an orchestrator is done with it. The same command sent again within ten
    /// minutes is stored once: a goal is told by its run, other commands by the id they carry, and without one they
    /// are all different.
    ///
    /// # Errors
    /// [`BusError::Clock`] when it would be refused for its time; when the command is too large, the queue is full, or the
    /// bus fails.
    pub async fn send(&self, command: &Command, encoding: Encoding) -> Result<Seq, BusError> {
        self.send_for(command, encoding, None).await
    }

    /// The same for somebody who asked for it by request, and signed that.
    ///
    /// # Errors
    /// See [`Self::send`].
    pub async fn send_for(
        &self,
        command: &Command,
        encoding: Encoding,
        asked: Option<&SignedOrder>,
    ) -> Result<Seq, BusError> {
        self.core.check_clock().await?;
        let run = command.run();
        let subject = Subject::Command(run, command.name().to_owned()).to_string();
        let body = Body::Command(command.clone());
        let expires = command.lifetime().map(|lifetime| now().after(lifetime));
        let message = self.core.seal(subject, body, About { expires, ..About::run(run) }, encoding).await?;
        let mut message = self.core.signatures.sign_message(Purpose::Order, message);
        if let Some(asked) = asked.filter(|asked| !asked.payload.is_empty()) {
            message.headers.add(ASKED_BY, &serde_json::to_string(asked)?);
        }
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
        Ok(CommandQueue { core: Arc::clone(&self.core), pull, seen: Arc::default() })
    }
}

/// By what an order is told from others.
struct OrderStamp {
    /// The message's own id.
    id: Uuid,
    /// When it was given, as it says.
    sent: Millis,
}

/// The queue of commands.
#[derive(Clone)]
pub struct CommandQueue {
    core: Arc<Core>,
    pull: Arc<dyn Pull>,
    seen: Arc<Mutex<SeenOrders>>,
}

impl CommandQueue {
    /// The next command; nothing when none came within `wait`.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn take(&self, wait: Duration) -> Result<Option<TakenCommand>, BusError> {
        take(&self.core, &*self.pull, wait, |delivery, envelope| {
            check_time(delivery.stored.at, envelope.sent, MAX_CLOCK_SKEW)?;
            let (id, sender) = (envelope.id, envelope.sender.clone());
            // Both by the sender's clock: how long it is good for does not depend on whose clock is right.
            let lifetime = envelope.expires.map(|expires| expires.since(envelope.sent));
            let sent = envelope.sent;
            let command = command_in(&delivery.stored.message.subject, envelope)?;
            let (signed, id) = self.signed(&delivery, &command, OrderStamp { id, sent })?;
            let (core, delivered) = (Arc::clone(&self.core), delivery.delivered);
            Ok(TakenCommand { core, delivery, command, sender, delivered, id, lifetime, signed })
        })
        .await
    }

    /// The signed order of a command and its id, if its author may give it and gives it for the first time. A fleet without keys has
    /// no signed orders.
    fn signed(
        &self,
        Delivery { stored, .. }: &Delivery,
        command: &Command,
        OrderStamp { id, sent }: OrderStamp,
    ) -> Result<(Option<SignedOrder>, Uuid), String> {
        let who = self.core.signatures.sender_of(Purpose::Order, &stored.message, stored.at);
        let Some(who) = who.map_err(|error| refusal(&error))? else { return Ok((None, id)) };
        let kind = signer_kind(&who.kind)?;
        check_right(&who, kind, command)?;
        check_age(OrderTimes { sent, stored: stored.at }, crate::settings::SIGNATURE_MAX_AGE)?;
        // A note that was half made is none: nothing in it can fail.
        lock(&self.seen).note(id, stored.seq)?;
        let behind = match kind {
            SignerKind::Person => None,
            SignerKind::Orchestrator => self.asked_by(&stored.message, command, stored.at)?,
            SignerKind::Operator => self.sent_again(&stored.message, command, stored.at)?,
        };
        // A request in the record keeps the id that its author signed: that makes the order count once.
        let (order, id) = behind.unwrap_or_else(|| (proof(&self.core, &who, kind, &stored.message), id));
        Ok((Some(order), id))
    }

    /// The order that an operator sends again, with its id: the same command, signed by its author, or a goal that a person asked
    /// for by request.
    fn sent_again(
        &self,
        message: &Message,
        command: &Command,
        at: Millis,
    ) -> Result<Option<(SignedOrder, Uuid)>, String> {
        let Some(order) = behind(message)? else { return Ok(None) };
        if !order.subject.starts_with("cmd.") {
            return self.asked_by(message, command, at);
        }
        let (who, signed) = opened(&self.core.signatures, &order, at).map_err(|why| of_author(&why))?;
        check_right(&who, order.kind, command).map_err(|why| of_author(&why))?;
        if order.subject != message.subject || signed.body != open_inline(message)?.body {
            return Err(of_author("another command was signed"));
        }
        Ok(Some((order, signed.id)))
    }

    /// The request that a goal was made of, if it is one, and it is this goal that was asked for.
    fn asked_by(
        &self,
        message: &Message,
        command: &Command,
        at: Millis,
    ) -> Result<Option<(SignedOrder, Uuid)>, String> {
        let Some(asked) = behind(message)? else { return Ok(None) };
        let (_, signed) = opened(&self.core.signatures, &asked, at).map_err(|why| of_author(&why))?;
        let goal = match signed.body {
            Body::Ask(Ask::Submit { goal, .. }) => Some(goal),
            Body::Stored(_) => None,
            other => return Err(of_author(&format!("it is of kind {:?}", other.kind()))),
        };
        if let Command::Submit { goal: wanted, .. } = command
            && goal.is_none_or(|goal| goal == *wanted)
        {
            Ok(Some((asked, signed.id)))
        } else {
            Err(of_author("something else was asked for"))
        }
    }
}

/// The signed order that a message carries for its author.
fn behind(message: &Message) -> Result<Option<SignedOrder>, String> {
    let order = message.headers.get(ASKED_BY).map(serde_json::from_str).transpose();
    order.map_err(|error| of_author(&error.to_string()))
}

fn of_author(why: &str) -> String {
    format!("the order that it is said to be made of: {why}")
}

/// Checks that the signer of a message may give the command in it.
///
/// # Errors
/// States the signer and the command, or that the message is no command.
pub(crate) fn check_signer(
    who: &Identity,
    kind: SignerKind,
    subject: &str,
    envelope: &Envelope,
) -> Result<(), String> {
    match &envelope.body {
        // A large goal is in the object store. Whoever gives orders may submit one.
        Body::Stored(_) => Ok(()),
        _ => check_right(who, kind, &command_in(subject, envelope.clone())?),
    }
}

fn check_right(who: &Identity, kind: SignerKind, command: &Command) -> Result<(), String> {
    if may_give(kind, command) {
        return Ok(());
    }
    let (name, kind) = (command.name(), kind.name());
    Err(format!("{} ({kind}) may not give the order {name}: nothing was done", who.name))
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
    signed: Option<SignedOrder>,
}

impl TakenCommand {
    /// The command with an id that tells it from others like it, the same whenever it is given out, and with who asks.
    #[must_use]
    pub fn identified(&self) -> Command {
        match self.command.clone().sent(self.id, &self.sender) {
            Command::Request(request) => Command::Request(request.signed(self.signed.clone())),
            command => command,
        }
    }

    /// Who signed it; nothing where nothing is signed.
    #[must_use]
    pub const fn signed(&self) -> Option<&SignedOrder> {
        self.signed.as_ref()
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

/// The content of a signed order, if it is signed by the author that it names.
fn opened(signatures: &Signatures, order: &SignedOrder, at: Millis) -> Result<(Identity, Envelope), String> {
    let SignedOrder { subject, payload, signature, .. } = order;
    let payload = STANDARD_NO_PAD.decode(payload).map_err(|error| error.to_string())?;
    let made = Signature::of_kept(signature).map_err(|error| refusal(&error))?;
    let who = signatures.verify(Purpose::Order, Some(&made), &said_by(subject, &payload), at);
    let Some(who) = who.map_err(|error| refusal(&error))? else {
        return Err("nothing is signed here".to_owned());
    };
    if (who.name.as_str(), signer_kind(&who.kind)) != (order.by.as_str(), Ok(order.kind)) {
        return Err("it is signed by somebody else than it says".to_owned());
    }
    let message = Message { subject: subject.clone(), headers: Headers::default(), payload: payload.into() };
    Ok((who, open_inline(&message)?))
}

/// Refuses what claims to come from the future. A sender that does not say when it was sent is believed.
fn check_time(stored: Millis, sent: Millis, most: Duration) -> Result<(), String> {
    let ahead = sent.since(stored);
    if ahead <= most {
        return Ok(());
    }
    Err(format!(
        "field sent: it is {} s ahead of the broker's clock, {} s is the most: set the sender's clock by NTP, or leave \
         the field out",
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

#[cfg(test)]
mod tests;
