//! Who may give which order, and whether an order that was signed is taken: pure, but for the ids that were seen.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use muster_shared::ids::Seq;
use muster_shared::run::{Request, RequestAction, SignedOrder, SignerKind};
use muster_shared::time::Millis;
use muster_shared::wire::Command;
use uuid::Uuid;

use crate::backend::Message;
use crate::bus::Core;
use crate::credentials::{HolderKind, Identity};
use crate::error::BusError;
use crate::signatures::{SignatureError, signature_in};

/// Most ids that are kept in mind: what is forgotten is taken twice at worst, which the record makes harmless.
const MOST_SEEN: usize = 16 * 1024;

/// Why a signed order without an id is refused.
const NO_ID: &str = "field id: a signed order has an id of its own";

/// As what somebody may give an order at all.
///
/// # Errors
/// Says why he may give none.
pub fn signer_kind(kind: &HolderKind) -> Result<SignerKind, String> {
    match kind {
        HolderKind::Operator => Ok(SignerKind::Operator),
        HolderKind::Person => Ok(SignerKind::Person),
        HolderKind::Orchestrator => Ok(SignerKind::Orchestrator),
        HolderKind::Observer
        | HolderKind::Agent(_)
        | HolderKind::Program(_)
        | HolderKind::Guard(_)
        | HolderKind::ToolServer(_)
        | HolderKind::Host
        | HolderKind::Guest
        | HolderKind::Presence => {
            Err(format!("it is signed by {kind}, who gives no orders: a person or the fleet's operator does"))
        }
    }
}

/// Whether somebody may give this command: people say what is to be done; orchestrators, what one run has to do with another.
/// An operator may give any: whoever has the fleet's keys can make himself an orchestrator, and sends dead letters again.
#[must_use]
pub const fn may_give(kind: SignerKind, command: &Command) -> bool {
    match (kind, command) {
        (SignerKind::Operator, _) => true,
        (SignerKind::Person, Command::Submit { .. } | Command::Fork { .. } | Command::Request(_)) => true,
        (SignerKind::Person, Command::Attend { .. } | Command::ChildEnded { .. }) => false,
        // A goal that an orchestrator was asked for by request is put into the queue by it.
        (
            SignerKind::Orchestrator,
            Command::Submit { .. } | Command::Attend { .. } | Command::ChildEnded { .. },
        ) => true,
        (SignerKind::Orchestrator, Command::Request(Request { action, .. })) => may_ask_a_child(action),
        (SignerKind::Orchestrator, Command::Fork { .. }) => false,
    }
}

/// What a run asks of those within it.
const fn may_ask_a_child(action: &RequestAction) -> bool {
    matches!(action, RequestAction::Cancel | RequestAction::Pause | RequestAction::Resume { .. })
}

/// When an order was given, as it says and as the broker does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderTimes {
    pub(crate) sent: Millis,
    pub(crate) stored: Millis,
}

/// Refuses what was signed long before it came, and what says that it was signed long after: either would be good for longer
/// than an order is.
pub(crate) fn check_age(times: OrderTimes, most: Duration) -> Result<(), String> {
    if times.sent == Millis(0) {
        return Err("field sent: a signed order says when it was given, in UTC milliseconds".to_owned());
    }
    let (age, ahead) = (times.stored.since(times.sent), times.sent.since(times.stored));
    if age > most {
        return Err(format!(
            "field sent: it was signed {} s before it came, {} s is the most: give it anew, and set the \
             sender's clock by NTP",
            age.as_secs(),
            most.as_secs()
        ));
    }
    if ahead > most {
        return Err(format!(
            "field sent: by what it says it was signed {} s after it came, {} s is the most: set the \
             sender's clock by NTP, and give it anew",
            ahead.as_secs(),
            most.as_secs()
        ));
    }
    Ok(())
}

/// Refuses to give an order that would be refused for its time. `skew` is the server's clock minus ours, in milliseconds.
pub(crate) fn check_clock(skew: i64, most: Duration) -> Result<(), BusError> {
    let by = Duration::from_millis(skew.unsigned_abs());
    if by <= most {
        return Ok(());
    }
    Err(BusError::Clock {
        by: by.as_secs(),
        way: if skew > 0 { "behind" } else { "ahead of" },
        most: most.as_secs(),
    })
}

impl Core {
    /// Whoever gives an order by a clock that is wrong would never hear that nothing comes of it. Orchestrators are told by
    /// those who look after them, and ask the server often enough.
    pub(crate) async fn check_clock(&self) -> Result<(), BusError> {
        if !self.signatures.gives_orders() {
            return Ok(());
        }
        match self.backend.clock_skew().await {
            Some(skew) => check_clock(skew, crate::settings::SIGNATURE_MAX_AGE),
            None => Ok(()),
        }
    }
}

/// Why a signature that is wrong is refused, and what to do.
pub(crate) fn refusal(error: &SignatureError) -> String {
    let help = match error {
        SignatureError::Missing => {
            "whoever gives an order in this fleet signs it: give it with `muster`, or sign it as docs/gateway.md says"
        }
        SignatureError::Stranger { .. } => {
            "use credentials of this fleet, as new as its keys (`muster keys issue`)"
        }
        SignatureError::Expired { .. } | SignatureError::Revoked { .. } => {
            "ask whoever runs the fleet for new ones (`muster keys issue`), and give it again"
        }
        SignatureError::Malformed { .. }
        | SignatureError::Forged
        | SignatureError::Kind { .. }
        | SignatureError::Wrong { .. } => {
            "it was changed on its way, or somebody forged it: find out who sent it"
        }
    };
    format!("{error}: {help}")
}

/// The proof of an order, for the record. What holds a secret is not kept there in any form: the order stands then without
/// what was signed.
pub(crate) fn proof(core: &Core, who: &Identity, kind: SignerKind, message: &Message) -> SignedOrder {
    let payload = match core.redactor.hits(&message.payload) {
        true => String::new(),
        false => STANDARD_NO_PAD.encode(&message.payload),
    };
    SignedOrder {
        by: who.name.to_string(),
        kind,
        subject: message.subject.clone(),
        payload,
        signature: signature_in(message).ok().flatten().map(|made| made.kept()).unwrap_or_default(),
    }
}

/// What was seen lately, with what is known of it. Bounded: the oldest is forgotten.
#[derive(Debug)]
struct Lately<K, V> {
    known: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Lately<K, V> {
    fn default() -> Self {
        Self { known: HashMap::new(), order: VecDeque::new() }
    }
}

impl<K: Clone + Eq + Hash, V> Lately<K, V> {
    /// Keeps what was not seen yet.
    fn keep(&mut self, key: K, value: V) {
        if self.order.len() >= MOST_SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.known.insert(key, value);
    }
}

/// The ids of orders that were taken, and where in the queue each of them stood.
#[derive(Debug, Default)]
pub(crate) struct SeenOrders {
    places: Lately<Uuid, Seq>,
}

impl SeenOrders {
    /// Takes note of an order. The queue may give the very same message out again; another one of the same id is a replay.
    pub(crate) fn note(&mut self, id: Uuid, at: Seq) -> Result<(), String> {
        if id.is_nil() {
            return Err(NO_ID.to_owned());
        }
        match self.places.known.get(&id) {
            Some(known) if *known == at => Ok(()),
            Some(_) => Err(format!(
                "it is a replay: the order {id} was taken before, and an order counts once; nothing was done"
            )),
            None => {
                self.places.keep(id, at);
                Ok(())
            }
        }
    }
}

/// Requests that were taken: by whom each id was used, and what was signed.
#[derive(Debug, Default)]
pub(crate) struct SeenRequests {
    signers: Lately<Uuid, String>,
    signatures: Lately<String, ()>,
}

impl SeenRequests {
    /// Takes note of a request. What was signed counts once, and an id is that of whoever used it first: what he asks under it
    /// again, he signs again.
    pub(crate) fn note(&mut self, id: Uuid, order: &SignedOrder) -> Result<(), String> {
        if id.is_nil() {
            return Err(NO_ID.to_owned());
        }
        match self.signers.known.get(&id) {
            Some(by) if *by != order.by => {
                return Err(format!(
                    "it is a replay: the request {id} was signed by somebody else before; give this one an id of its own"
                ));
            }
            Some(_) => {}
            None => self.signers.keep(id, order.by.clone()),
        }
        if self.signatures.known.contains_key(&order.signature) {
            return Err(format!(
                "it is a replay: the request {id} was taken before, and what was signed counts once; to hear again what \
                 became of it, sign it anew, with the same id or run in its content"
            ));
        }
        self.signatures.keep(order.signature.clone(), ());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::Goal;
    use muster_shared::ids::{QuestionId, RunId};
    use muster_shared::run::{ChildEnd, Origin};

    use super::*;

    fn run() -> RunId {
        RunId::from_uuid(Uuid::from_u128(1))
    }

    fn commands() -> Vec<(&'static str, Command)> {
        let goal = || Box::new(Goal::new("Why?"));
        let ask = |action| Command::Request(Request::new(run(), action));
        let end: ChildEnd = serde_json::from_value(serde_json::json!({ "status": "completed" })).unwrap();
        vec![
            ("submit", Command::Submit { run: run(), goal: goal() }),
            ("attend", Command::Attend { run: run(), goal: goal(), id: None }),
            ("ended", Command::ChildEnded { run: run(), child: run(), end: Box::new(end), id: None }),
            ("fork", Command::Fork { run: run(), from: Origin::new(run(), Seq(1)), model: None }),
            ("cancel", ask(RequestAction::Cancel)),
            ("pause", ask(RequestAction::Pause)),
            ("approve", ask(RequestAction::Approve { plan: None, question: None, arguments: None })),
            ("reject", ask(RequestAction::Reject { question: None })),
            ("answer", ask(RequestAction::Answer { question: QuestionId(1), text: "yes".into() })),
        ]
    }

    #[test]
    fn who_may_give_which_order() {
        let may = |kind| {
            let given = commands().into_iter().filter(|(_, command)| may_give(kind, command));
            given.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
        };
        let of_people = "submit fork cancel pause approve reject answer";
        assert_eq!(may(SignerKind::Person), of_people);
        assert_eq!(may(SignerKind::Operator).split(' ').count(), commands().len());
        assert_eq!(may(SignerKind::Orchestrator), "submit attend ended cancel pause");
        let kinds = [
            "operator",
            "person",
            "orchestrator",
            "observer",
            "agent:worker",
            "program:x",
            "guard:g",
            "presence",
        ];
        let kinds = kinds.into_iter().filter(|kind| signer_kind(&kind.parse().unwrap()).is_ok());
        assert_eq!(kinds.collect::<Vec<_>>(), ["operator", "person", "orchestrator"]);
    }

    #[test]
    fn an_order_is_not_good_for_long() {
        let at = |sent, stored| OrderTimes { sent: Millis(sent), stored: Millis(stored) };
        let most = Duration::from_secs(300);
        assert!(check_age(at(1_000, 301_000), most).is_ok());
        assert!(check_age(at(601_000, 301_000), most).is_ok(), "its clock is ahead");
        let ahead = check_age(at(601_001, 301_000), most).unwrap_err();
        assert!(ahead.contains("300 s after it came"), "{ahead}");
        assert!(check_age(at(u64::MAX, 301_000), most).is_err());
        assert!(check_age(at(1_000, 301_001), most).unwrap_err().contains("300 s is the most"));
        assert!(check_age(at(0, 1), most).unwrap_err().contains("field sent"));
    }

    #[test]
    fn an_order_counts_once_and_may_be_given_out_again() {
        let mut seen = SeenOrders::default();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert!(seen.note(one, Seq(1)).is_ok());
        assert!(seen.note(one, Seq(1)).is_ok(), "the queue gives it out again");
        assert!(seen.note(one, Seq(2)).unwrap_err().contains("replay"));
        assert!(seen.note(other, Seq(2)).is_ok());
        assert!(seen.note(Uuid::nil(), Seq(3)).unwrap_err().contains("field id"));
        for n in 0..MOST_SEEN {
            assert!(seen.note(Uuid::from_u128(100 + n as u128), Seq(n as u64)).is_ok());
        }
        assert_eq!((seen.places.known.len(), seen.places.order.len()), (MOST_SEEN, MOST_SEEN));
    }

    #[test]
    fn a_request_counts_once_and_its_id_is_one_persons() {
        let order = |by: &str, signature: &str| SignedOrder {
            by: by.to_owned(),
            kind: SignerKind::Person,
            subject: "ask.submit".to_owned(),
            payload: String::new(),
            signature: signature.to_owned(),
        };
        let mut seen = SeenRequests::default();
        let id = Uuid::from_u128(1);
        assert!(seen.note(id, &order("ann", "a")).is_ok());
        assert!(seen.note(id, &order("ann", "a")).unwrap_err().contains("was taken before"));
        assert!(seen.note(id, &order("ben", "b")).unwrap_err().contains("somebody else"));
        assert!(seen.note(id, &order("ann", "c")).is_ok(), "she signed it again");
        assert!(seen.note(Uuid::nil(), &order("ann", "d")).unwrap_err().contains("field id"));
    }

    #[test]
    fn no_order_is_given_that_would_be_refused_for_its_time() {
        let most = Duration::from_secs(300);
        assert!(check_clock(300_000, most).is_ok() && check_clock(-300_000, most).is_ok());
        let behind = check_clock(3_600_000, most).unwrap_err().to_string();
        assert!(behind.contains("this machine's clock is 3600 s behind the server's"), "{behind}");
        let ahead = check_clock(-3_600_000, most).unwrap_err().to_string();
        assert!(ahead.contains("3600 s ahead of the server's") && ahead.contains("NTP"), "{ahead}");
    }
}
