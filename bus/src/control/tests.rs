//! What is obeyed at once, and by whom it was signed.
use futures::FutureExt;

use super::*;
use crate::bus::Bus;
use crate::credentials::{FleetKeys, Scope};

const STOP: ControlMessage = ControlMessage::Shutdown;

fn keys(folder: &std::path::Path) -> FleetKeys {
    FleetKeys::open_or_make(&folder.join("keys")).unwrap()
}

fn signatures(folder: &std::path::Path, scope: Scope, name: &str) -> Signatures {
    let path = folder.join(format!("{name}.creds"));
    let holder = scope.holder("worker".parse().unwrap(), name.parse().unwrap());
    keys(folder).issue_to(&path, &holder, None).unwrap();
    Signatures::of(Some(&path)).unwrap()
}

#[tokio::test]
async fn what_an_orchestrator_signs_is_obeyed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let bus = Bus::in_memory(&"worker-1".parse().unwrap());
    let me = bus.signed_by(signatures(folder.path(), Scope::Agent, "worker-1"));
    let (agent, all) = ("worker-1".parse().unwrap(), ControlTarget::All);
    let mut heard = me.control().listen(&agent, "worker").await.unwrap();
    let mut heard_too = me.control().overhear(&agent, "worker").await.unwrap();
    let from = |scope, name| bus.signed_by(signatures(folder.path(), scope, name)).control();
    // Nobody, an agent, a stranger's orchestrator.
    bus.control().send(&all, &STOP).await.unwrap();
    from(Scope::Agent, "worker-2").send(&all, &STOP).await.unwrap();
    from(Scope::Program, "program-1").send(&all, &STOP).await.unwrap();
    let other = tempfile::tempdir().unwrap();
    let stranger = signatures(other.path(), Scope::Orchestrator, "o-1");
    bus.signed_by(stranger).control().send(&all, &STOP).await.unwrap();
    // The orchestrator, to all and to this one; what it said is said again, and elsewhere.
    let orchestrator = from(Scope::Orchestrator, "o-1");
    let sealed = orchestrator.seal(&all, &STOP).await.unwrap();
    let backend = &bus.core.backend;
    for _ in 0..2 {
        backend.publish(sealed.clone()).await.unwrap();
    }
    let moved = Message { subject: "ctl.role.worker".to_owned(), ..sealed };
    backend.publish(moved).await.unwrap();
    let due = ControlMessage::CancelRun { run: uuid_run(), reason: "last".to_owned() };
    orchestrator.send(&all, &due).await.unwrap();
    for listener in [&mut heard, &mut heard_too] {
        let mut all = Vec::new();
        while all.last() != Some(&due) {
            all.push(listener.next().await.unwrap());
        }
        assert_eq!(all, [STOP, due.clone()]);
        assert!(listener.next().now_or_never().is_none());
    }
}

fn uuid_run() -> muster_shared::ids::RunId {
    muster_shared::ids::RunId::from_uuid(Uuid::from_u128(7))
}

#[test]
fn what_is_obeyed_is_of_this_minute() {
    let now = Millis(1_000_000);
    assert!(check_now(Millis(940_000), now).is_ok() && check_now(Millis(1_060_000), now).is_ok());
    assert!(check_now(Millis(939_999), now).is_err() && check_now(Millis(1_060_001), now).is_err());
}

#[test]
fn ids_are_seen_once_and_not_kept_for_ever() {
    let mut seen = SeenIds::default();
    assert!(!seen.note(Uuid::nil()));
    assert!(seen.note(Uuid::from_u128(1)) && !seen.note(Uuid::from_u128(1)));
    for n in 2..10_000 {
        assert!(seen.note(Uuid::from_u128(n)));
    }
    assert_eq!((seen.ids.len(), seen.order.len()), (MOST_SEEN, MOST_SEEN));
}
