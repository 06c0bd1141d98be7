//! Who may give orders, and how often one counts.
use muster_shared::flow::Goal;
use muster_shared::ids::RunId;
use muster_shared::run::{Request, RequestAction};
use muster_shared::wire::encode;

use super::*;
use crate::bus::Bus;
use crate::credentials::{FleetKeys, Scope};
use crate::dead::DeadLetter;

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
    let answer = RequestAction::Answer { question: muster_shared::ids::QuestionId(1), text: "yes".into() };
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
    let send =
        |message: Message| fleet.bus.core.backend.append(COMMANDS, vec![message], WriteOptions::default());
    let order = message(&ann, |_| {}).await;
    send(order.clone()).await.unwrap();
    let taken = queue.take(SOON).await.unwrap().unwrap();
    taken.hand_back(Duration::ZERO).await.unwrap();
    let taken = queue.take(SOON).await.unwrap().unwrap(); // Given out again, it is the same order.
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
    let early = message(&ann, |envelope| envelope.sent = Millis(envelope.sent.0 + 302_000)).await;
    let nameless = message(&ann, |envelope| envelope.id = Uuid::nil()).await;
    for (message, words) in [
        (order, "it is a replay"),
        (moved, "not the one its subject names"),
        (changed, "the signature is not that of ann"),
        (old, "301 s before it came, 300 s is the most"),
        (early, "s after it came, 300 s is the most"),
        (nameless, "field id"),
    ] {
        send(message).await.unwrap();
        assert!(queue.take(SOON).await.unwrap().is_none(), "{words}");
        let reason = fleet.last_dead().await;
        assert!(reason.contains(words), "{words}: {reason}");
    }
}

#[tokio::test]
async fn only_a_signed_command_in_a_letter_of_an_orchestrator_is_sent_again_in_its_authors_name() {
    let fleet = Fleet::new();
    let (queue, operator) = (fleet.queue().await, fleet.of(Scope::Operator, "operator"));
    let (ann, orchestrator) = (fleet.of(Scope::Person, "ann"), fleet.of(Scope::Orchestrator, "o-1"));
    let (other, orchestrator) = (orchestrator.clone(), orchestrator.as_agent(&"o-1".parse().unwrap()));
    let order = message(&ann, |envelope| envelope.sent = Millis(envelope.sent.0 - 301_000)).await;
    let unsigned = Message { headers: Headers::default(), ..order.clone() };
    let changed = Message {
        payload: String::from_utf8_lossy(&order.payload).replace("eve", "ann").into(),
        ..order.clone()
    };
    let moved =
        Message { subject: order.subject.replace(&run().to_string(), &"1".repeat(32)), ..order.clone() };
    let by_agent = message(&fleet.of(Scope::Agent, "worker-1"), |_| {}).await;
    let letter = async |writer: &Bus, message: &Message| {
        writer.dead().put(DeadLetter::of(message, "send it again with `muster dead retry`")).await.unwrap();
        operator.dead().list(1).await.unwrap().remove(0)
    };
    for (writer, message, words) in [
        (fleet.of(Scope::Agent, "worker-1"), &order, "only a letter of an orchestrator"),
        (ann.clone(), &order, "only a letter of an orchestrator"),
        (fleet.bus.clone(), &order, "only a letter of an orchestrator"),
        (other, &order, "cli-1 wrote it"),
        (orchestrator.clone(), &unsigned, "it is not signed"),
        (orchestrator.clone(), &changed, "the signature is not that of ann"),
        (orchestrator.clone(), &moved, "the signature is not that of ann"),
        (orchestrator.clone(), &by_agent, "who gives no orders"),
    ] {
        let letter = letter(&writer, message).await;
        let refused = operator.dead().resend(&letter).await.unwrap_err().to_string();
        assert!(refused.contains(words), "{words}: {refused}");
        assert!(queue.take(Duration::ZERO).await.unwrap().is_none(), "{words}");
    }
    // Too old to be accepted as it is: the operator confirms it, and ann stays its author.
    let good = letter(&orchestrator, &order).await;
    operator.dead().resend(&good).await.unwrap();
    let taken = queue.take(SOON).await.unwrap().unwrap();
    let (request, signed) = (request(&taken), open_inline(&order).unwrap());
    assert_eq!((request.by.as_str(), request.voice(), request.id), ("ann", "ann", signed.id));
    taken.done().await.unwrap();
    // Only an operator confirms: an orchestrator cannot bring an old order of ann's back.
    orchestrator.dead().resend(&good).await.unwrap();
    assert!(queue.take(SOON).await.unwrap().is_none());
    assert!(fleet.last_dead().await.contains("it is of kind Command"), "{}", fleet.last_dead().await);
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
