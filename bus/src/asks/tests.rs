//! Requests that count for nothing are kept, whoever hears the answer.

use std::time::Duration;

use muster_shared::time::Millis;
use muster_shared::wire::encode;

use super::*;
use crate::bus::Bus;
use crate::credentials::{FleetKeys, Scope};
use crate::signatures::Signatures;

/// A bus, and those who have credentials of its fleet.
struct Fleet {
    folder: tempfile::TempDir,
    bus: Bus,
}

impl Fleet {
    fn of(&self, scope: Scope, name: &str) -> Bus {
        let keys = FleetKeys::open_or_make(&self.folder.path().join("keys")).unwrap();
        let path = self.folder.path().join(format!("{name}.creds"));
        let holder = scope.holder("worker".parse().unwrap(), name.parse().unwrap());
        keys.issue_to(&path, &holder, None).unwrap();
        self.bus.signed_by(Signatures::of(Some(&path)).unwrap())
    }

    /// Why the dead letters are dead, and from where they came.
    async fn dead(&self) -> Vec<(String, String)> {
        let letters = self.bus.dead().list(50).await.unwrap();
        letters.into_iter().map(|letter| (letter.subject, letter.reason)).collect()
    }
}

/// A request as somebody asks it, with changes of its envelope.
async fn message(bus: &Bus, goal: &str, change: impl Fn(&mut Envelope)) -> Message {
    let ask = Ask::Submit { goal: Box::new(Goal::new(goal)), id: None, run: None };
    let sealed = bus.core.seal("ask.submit".into(), Body::Ask(ask), About::default(), Encoding::Json);
    let sealed = sealed.await.unwrap();
    let mut envelope = open_inline(&sealed).unwrap();
    change(&mut envelope);
    let payload = encode(&envelope, Encoding::Json).unwrap().into();
    bus.core.signatures.sign_message(Purpose::Order, Message { payload, ..sealed })
}

#[tokio::test]
async fn a_request_that_counts_for_nothing_is_a_dead_letter() {
    const HOUR: u64 = 3_600_000;
    let folder = tempfile::tempdir().unwrap();
    let fleet = Fleet { folder, bus: Bus::in_memory(&"cli-1".parse().unwrap()) };
    let (ann, ben) = (fleet.of(Scope::Person, "ann"), fleet.of(Scope::Person, "ben"));
    let mut requests = fleet.of(Scope::Orchestrator, "o-1").asks().serve().await.unwrap();
    let mut heard = async |message: Message| {
        let backend = std::sync::Arc::clone(&fleet.bus.core.backend);
        let asked = tokio::spawn(async move { backend.request(message, Duration::from_millis(300)).await });
        let what = requests.next().await.unwrap().what.map(|_| ());
        asked.abort();
        what
    };
    let good = message(&ann, "Why?", |_| {}).await;
    let id = open_inline(&good).unwrap().id;
    assert_eq!(heard(good.clone()).await, Ok(()));
    assert_eq!(heard(message(&ann, "Why?", |envelope| envelope.id = id).await).await, Ok(()), "signed anew");
    assert!(fleet.dead().await.is_empty());

    let cases = [
        (message(&fleet.bus, "Why?", |_| {}).await, "it is not signed"),
        (good, "it is a replay: the request"),
        (message(&ben, "How?", |envelope| envelope.id = id).await, "signed by somebody else before"),
        (message(&ann, "How?", |envelope| envelope.id = Uuid::nil()).await, "field id"),
        (
            message(&ann, "Old?", |envelope| envelope.sent = Millis(envelope.sent.0 - HOUR)).await,
            "before it came",
        ),
        (
            message(&ann, "New?", |envelope| envelope.sent = Millis(envelope.sent.0 + HOUR)).await,
            "after it came",
        ),
    ];
    for (kept, (message, words)) in cases.into_iter().enumerate() {
        let refused = heard(message).await.unwrap_err();
        assert!(refused.contains(words), "{refused}: {words}");
        let dead = fleet.dead().await;
        assert_eq!((dead.len(), dead[kept].clone()), (kept + 1, ("ask.submit".to_owned(), refused)));
    }
}
