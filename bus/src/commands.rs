//! Commands for orchestrators: they are kept until one is done with them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_shared::flow::Goal;
use muster_shared::ids::{AgentId, Seq};
use muster_shared::run::{SignedOrder, SignerKind};
use muster_shared::time::Millis;
use muster_shared::wire::ask::Ask;
use muster_shared::wire::{Body, Command, Encoding, Envelope};
use uuid::Uuid;

use crate::backend::{Ack, Delivery, Headers, Message, Pull, QueueSpec, WriteOptions};
use crate::bus::{Core, now};
use crate::error::{AppendError, BusError};
use crate::orders::{OrderTimes, SeenOrders, check_age, may_give, proof, refusal, signer_kind};
use crate::queue::{reject, take};
use crate::seal::{About, open_inline};
use crate::signatures::{Purpose, Signature, SignatureError, Signatures, said_by};
use crate::subject::Subject;
use crate::topology::COMMANDS;

/// The header in which an orchestrator gives the request that it makes a command of. It is signed by itself.
const ASKED_BY: &str = "Muster-Asked-By";

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
        let run = command.run();
        let subject = Subject::Command(run, command.name().to_owned()).to_string();
        let body = Body::Command(command.clone());
        let expires = command.lifetime().map(|lifetime| now().after(lifetime));
        let message = self.core.seal(subject, body, About { expires, ..About::run(run) }, encoding).await?;
        let mut message = self.core.signatures.sign_message(Purpose::Order, message);
        if let Some(asked) = asked.filter(|asked| !asked.payload.is_empty()) {
            let wrong = |error: serde_json::Error| BusError::Codec { reason: error.to_string() };
            message.headers.add(ASKED_BY, &serde_json::to_string(asked).map_err(wrong)?);
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
            check_time(delivery.stored.at, envelope.sent, self.core.settings.clock_ahead)?;
            let (id, sender) = (envelope.id, envelope.sender.clone());
            // Both by the sender's clock: how long it is good for does not depend on whose clock is right.
            let lifetime = envelope.expires.map(|expires| expires.since(envelope.sent));
            let sent = envelope.sent;
            let command = command_in(&delivery.stored.message.subject, envelope)?;
            let signed = self.signed(&delivery, &command, (id, sent))?;
            let (core, delivered) = (Arc::clone(&self.core), delivery.delivered);
            Ok(TakenCommand { core, delivery, command, sender, delivered, id, lifetime, signed })
        })
        .await
    }

    /// Who signed a command, if he may give it and gives it for the first time; nothing where nothing is signed.
    fn signed(
        &self,
        Delivery { stored, .. }: &Delivery,
        command: &Command,
        (id, sent): (Uuid, Millis),
    ) -> Result<Option<SignedOrder>, String> {
        let who = self.core.signatures.sender_of(Purpose::Order, &stored.message, stored.at);
        let Some(who) = who.map_err(|error| refusal(&error))? else { return Ok(None) };
        let kind = signer_kind(&who.kind)?;
        if !may_give(kind, command) {
            let (name, kind) = (command.name(), kind.name());
            return Err(format!("{} ({kind}) may not give the order {name}: nothing was done", who.name));
        }
        check_age(OrderTimes { sent, stored: stored.at }, self.core.settings.orders_within)?;
        // A note that was half made is none: nothing in it can fail.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).note(id, stored.seq)?;
        match self.asked_by(&stored.message, command, stored.at)? {
            Some(asked) if kind == SignerKind::Orchestrator => Ok(Some(asked)),
            Some(_) | None => Ok(Some(proof(&self.core, &who, kind, &stored.message))),
        }
    }

    /// The request that a goal was made of, if it is one, and it is this goal that was asked for.
    fn asked_by(
        &self,
        message: &Message,
        command: &Command,
        at: Millis,
    ) -> Result<Option<SignedOrder>, String> {
        let Some(text) = message.headers.get(ASKED_BY) else { return Ok(None) };
        let wrong = |why: String| format!("the request that it is said to be made of: {why}");
        let asked: SignedOrder = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let goal = asked_goal(&self.core.signatures, &asked, at).map_err(wrong)?;
        match command {
            Command::Submit { goal: wanted, .. } if goal.is_none_or(|goal| goal == *wanted) => {
                Ok(Some(asked))
            }
            Command::Submit { .. }
            | Command::Attend { .. }
            | Command::ChildEnded { .. }
            | Command::Fork { .. }
            | Command::Request(_) => Err(wrong("something else was asked for".to_owned())),
        }
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
    signed: Option<SignedOrder>,
}

impl TakenCommand {
    /// The command with an id that tells it from others like it, the same whenever it is given out, and with who asks.
    #[must_use]
    pub fn identified(&self) -> Command {
        match self.command.clone().sent(self.id, &self.sender) {
            Command::Request(request) => Command::Request(request.signed(self.signed.clone())),
            command @ (Command::Submit { .. }
            | Command::Attend { .. }
            | Command::ChildEnded { .. }
            | Command::Fork { .. }) => command,
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

impl std::fmt::Debug for TakenCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("TakenCommand");
        text.field("command", &self.command).field("sender", &self.sender).finish_non_exhaustive()
    }
}

/// The goal in a signed request; nothing where it is too large to stand in it.
fn asked_goal(signatures: &Signatures, asked: &SignedOrder, at: Millis) -> Result<Option<Box<Goal>>, String> {
    let SignedOrder { subject, payload, signature, .. } = asked;
    let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|error| error.to_string())?;
    let made: Signature = signature.parse().map_err(|error: SignatureError| refusal(&error))?;
    let who = signatures.verify(Purpose::Order, Some(&made), &said_by(subject, &payload), at);
    let Some(who) = who.map_err(|error| refusal(&error))? else {
        return Err("nothing is signed here".to_owned());
    };
    if (who.name.as_str(), signer_kind(&who.kind)) != (asked.by.as_str(), Ok(asked.kind)) {
        return Err("it is signed by somebody else than it says".to_owned());
    }
    let message = Message { subject: subject.clone(), headers: Headers::default(), payload: payload.into() };
    match open_inline(&message)?.body {
        Body::Ask(Ask::Submit { goal, .. }) => Ok(Some(goal)),
        Body::Stored(_) => Ok(None),
        other => Err(format!("it is of kind {:?}", other.kind())),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use muster_shared::ids::RunId;
    use muster_shared::run::{Request, RequestAction};
    use muster_shared::wire::encode;

    use super::*;
    use crate::bus::Bus;
    use crate::credentials::{FleetKeys, Scope};

    const SOON: Duration = Duration::from_millis(300);

    struct Fleet {
        folder: tempfile::TempDir,
        bus: Bus,
    }

    impl Fleet {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            Self { folder, bus: Bus::in_memory(&"cli-1".parse().unwrap()) }
        }

        fn signatures(&self, scope: Scope, name: &str) -> Signatures {
            let keys = FleetKeys::open_or_make(&self.folder.path().join("keys")).unwrap();
            let path = self.folder.path().join(format!("{name}.creds"));
            let holder = scope.holder("worker".parse().unwrap(), name.parse().unwrap());
            keys.issue_to(&path, &holder, None).unwrap();
            Signatures::of(Some(&path)).unwrap()
        }

        fn of(&self, scope: Scope, name: &str) -> Bus {
            self.bus.signed_by(self.signatures(scope, name))
        }

        async fn queue(&self) -> CommandQueue {
            self.of(Scope::Orchestrator, "o-1").commands().join().await.unwrap()
        }

        /// Why the last message went to the dead letters.
        async fn last_dead(&self) -> String {
            self.bus.dead().list(50).await.unwrap().pop().unwrap().reason
        }
    }

    fn run() -> RunId {
        RunId::from_uuid(Uuid::from_u128(7))
    }

    fn cancel() -> Command {
        Command::Request(Request { by: "eve".to_owned(), ..Request::new(run(), RequestAction::Cancel) })
    }

    fn request(taken: &TakenCommand) -> Request {
        match taken.identified() {
            Command::Request(request) => request,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn who_gives_an_order_is_who_signed_it() {
        let fleet = Fleet::new();
        let queue = fleet.queue().await;
        for (scope, name, by) in [(Scope::Person, "ann", "ann"), (Scope::Operator, "operator", "eve")] {
            fleet.of(scope, name).commands().send(&cancel(), Encoding::default()).await.unwrap();
            let taken = queue.take(SOON).await.unwrap().unwrap();
            let request = request(&taken);
            assert_eq!((request.by.as_str(), request.voice()), (by, name));
            assert_eq!(request.signed.as_deref(), taken.signed());
            taken.done().await.unwrap();
        }
        assert!(fleet.bus.dead().list(5).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_is_not_signed_by_one_who_may_is_a_dead_letter() {
        let fleet = Fleet::new();
        let queue = fleet.queue().await;
        let stranger = Fleet::new();
        let cases = [
            (fleet.bus.clone(), "it is not signed"),
            (fleet.of(Scope::Agent, "worker-1"), "who gives no orders"),
            (fleet.of(Scope::Program, "program-1"), "who gives no orders"),
            (fleet.of(Scope::Observer, "observer-1"), "who gives no orders"),
            (fleet.bus.signed_by(stranger.signatures(Scope::Operator, "operator")), "no key of this fleet"),
        ];
        for (bus, words) in cases {
            bus.commands().send(&cancel(), Encoding::Json).await.unwrap();
            assert!(queue.take(SOON).await.unwrap().is_none(), "{words}");
            let reason = fleet.last_dead().await;
            assert!(reason.contains(words), "{reason}");
        }
        let answer =
            RequestAction::Answer { question: muster_shared::ids::QuestionId(1), text: "yes".into() };
        let answer = Command::Request(Request::new(run(), answer));
        fleet.of(Scope::Orchestrator, "o-2").commands().send(&answer, Encoding::Json).await.unwrap();
        assert!(queue.take(SOON).await.unwrap().is_none());
        assert!(fleet.last_dead().await.contains("o-2 (orchestrator) may not give the order answer"));
    }

    /// The message of an order, and the same said with changes of its envelope.
    async fn message(bus: &Bus, change: impl Fn(&mut Envelope)) -> Message {
        let subject = Subject::Command(run(), "cancel".to_owned()).to_string();
        let body = Body::Command(cancel());
        let sealed = bus.core.seal(subject, body, About::run(run()), Encoding::Json).await.unwrap();
        let mut envelope = open_inline(&sealed).unwrap();
        change(&mut envelope);
        let payload = encode(&envelope, Encoding::Json).unwrap().into();
        bus.core.signatures.sign_message(Purpose::Order, Message { payload, ..sealed })
    }

    #[tokio::test]
    async fn an_order_is_good_once_and_not_for_long() {
        let fleet = Fleet::new();
        let queue = fleet.queue().await;
        let ann = fleet.of(Scope::Person, "ann");
        let send = |message: Message| {
            fleet.bus.core.backend.append(COMMANDS, vec![message], WriteOptions::default())
        };
        let order = message(&ann, |_| {}).await;
        send(order.clone()).await.unwrap();
        let taken = queue.take(SOON).await.unwrap().unwrap();
        taken.hand_back(Duration::ZERO).await.unwrap();
        let taken = queue.take(SOON).await.unwrap().expect("given out again, it is the same order");
        taken.done().await.unwrap();

        // The same again, moved to another run, changed, of long ago, and without an id.
        let moved =
            Message { subject: order.subject.replace(&run().to_string(), &"1".repeat(32)), ..order.clone() };
        let payload = String::from_utf8(order.payload.to_vec()).unwrap().replace("cancel", "resume");
        let changed = Message {
            payload: payload.into(),
            subject: order.subject.replace("cancel", "resume"),
            ..order.clone()
        };
        let old = message(&ann, |envelope| envelope.sent = Millis(envelope.sent.0 - 301_000)).await;
        let nameless = message(&ann, |envelope| envelope.id = Uuid::nil()).await;
        for (message, words) in [
            (order, "it is a replay"),
            (moved, "not the one its subject names"),
            (changed, "the signature is not that of ann"),
            (old, "301 s before it came, 300 s is the most (bus.orders_within)"),
            (nameless, "field id"),
        ] {
            send(message).await.unwrap();
            assert!(queue.take(SOON).await.unwrap().is_none(), "{words}");
            let reason = fleet.last_dead().await;
            assert!(reason.contains(words), "{words}: {reason}");
        }
    }

    #[tokio::test]
    async fn a_dead_letter_is_sent_again_in_the_name_of_whoever_does() {
        let fleet = Fleet::new();
        let queue = fleet.queue().await;
        fleet.bus.commands().send(&cancel(), Encoding::Json).await.unwrap();
        assert!(queue.take(SOON).await.unwrap().is_none());
        let operator = fleet.of(Scope::Operator, "operator");
        let letter = operator.dead().list(5).await.unwrap().pop().unwrap();
        operator.dead().resend(&letter).await.unwrap();
        let taken = queue.take(SOON).await.unwrap().unwrap();
        assert_eq!(request(&taken).voice(), "operator");
    }

    #[tokio::test]
    async fn a_goal_that_was_asked_for_by_request_is_of_whoever_asked() {
        let fleet = Fleet::new();
        let queue = fleet.queue().await;
        let (ann, orchestrator) = (fleet.of(Scope::Person, "ann"), fleet.of(Scope::Orchestrator, "o-2"));
        let goal = |text: &str| Box::new(Goal::new(text));
        let ask = Ask::Submit { goal: goal("Why?"), id: None, run: None };
        let sealed = ann.core.seal("ask.submit".into(), Body::Ask(ask), About::default(), Encoding::Json);
        let sealed = ann.core.signatures.sign_message(Purpose::Order, sealed.await.unwrap());
        let who = ann.core.signatures.sender_of(Purpose::Order, &sealed, now()).unwrap().unwrap();
        let asked = proof(&ann.core, &who, SignerKind::Person, &sealed);
        let send = |text: &str, asked: SignedOrder, run: u128| {
            let command = Command::Submit { run: RunId::from_uuid(Uuid::from_u128(run)), goal: goal(text) };
            let orchestrator = orchestrator.clone();
            async move { orchestrator.commands().send_for(&command, Encoding::Json, Some(&asked)).await.unwrap() }
        };
        send("Why?", asked.clone(), 1).await;
        let taken = queue.take(SOON).await.unwrap().unwrap();
        assert_eq!(taken.signed(), Some(&asked));
        taken.done().await.unwrap();
        let somebody = SignedOrder { by: "ben".to_owned(), ..asked.clone() };
        for (text, asked, words) in
            [("How?", asked, "something else was asked"), ("Why?", somebody, "somebody else")]
        {
            send(text, asked, 2 + text.len() as u128 + words.len() as u128).await;
            assert!(queue.take(SOON).await.unwrap().is_none(), "{words}");
            assert!(fleet.last_dead().await.contains(words), "{}", fleet.last_dead().await);
        }
    }
}
