use std::time::{Duration, Instant};

use futures::StreamExt;
use muster_bus::{BusError, ControlTarget, LeaseChange, LeaseNote, RegistryChange};
use muster_shared::flow::Usage;
use muster_shared::ids::{Generation, Role, RunId, Seq};
use muster_shared::wire::{
    Body, ControlMessage, Live, LiveKind, OwnerAnswer, OwnerMessage, Profile, SetAside,
};

use crate::fixture::{Fixture, SOON, agent, leaf, next, run};

crate::on_both!(
    agents_come_change_and_leave,
    a_silent_agent_is_forgotten,
    a_lease_is_seen_renewed_and_removed,
    a_lease_given_up_stays_only_while_it_names_runs,
    control_reaches_its_target,
    a_request_is_answered_by_the_process_that_it_is_for,
    live_messages_are_watched,
    the_tap_sees_heartbeats,
);

fn profile(name: &str) -> Profile {
    let profile = serde_json::json!({ "agent": name, "role": "worker", "pid": 1, "host": "here", "slots": 8, "model": "offline" });
    serde_json::from_value(profile).unwrap()
}

async fn agents_come_change_and_leave(f: Fixture) {
    let registry = f.bus.registry();
    let announced = registry.announce(profile("worker-1")).await.unwrap();
    assert_eq!(registry.list().await.unwrap(), [profile("worker-1")]);
    let mut changes = registry.watch().await.unwrap();
    assert_eq!(next(&mut changes).await, RegistryChange::Joined(profile("worker-1")));
    announced.set_busy(3);
    let changed = Profile { busy: 3, ..profile("worker-1") };
    assert_eq!(next(&mut changes).await, RegistryChange::Changed(changed.clone()));
    let aside = SetAside { run: run(), reason: "it circles".into(), until: 9 };
    announced.set_aside(vec![aside.clone()], 4, Vec::new());
    let changed = Profile { set_aside: vec![aside], times_set_aside: 4, ..changed };
    assert_eq!(next(&mut changes).await, RegistryChange::Changed(changed));
    announced.leave().await.unwrap();
    assert_eq!(next(&mut changes).await, RegistryChange::Left(agent("worker-1")));
    assert!(registry.list().await.unwrap().is_empty());
}

async fn a_silent_agent_is_forgotten(f: Fixture) {
    let registry = f.bus.registry();
    let mut changes = registry.watch().await.unwrap();
    // This agent joins first. Only its heartbeats keep it registered after the silent agent expires.
    let living = f.bus.as_agent(&agent("worker-2")).registry();
    let _living = living.announce(profile("worker-2")).await.unwrap();
    assert_eq!(next(&mut changes).await, RegistryChange::Joined(profile("worker-2")));
    let announced = registry.announce(profile("worker-1")).await.unwrap();
    assert_eq!(next(&mut changes).await, RegistryChange::Joined(profile("worker-1")));
    drop(announced);
    assert_eq!(next(&mut changes).await, RegistryChange::Left(agent("worker-1")));
    assert_eq!(registry.list().await.unwrap(), [profile("worker-2")]);
}

fn note(runs: &[RunId]) -> LeaseNote {
    LeaseNote {
        room: 3,
        runs: runs.to_vec(),
        through: Seq(9).into(),
        domains: Vec::new(),
        left_alone: Vec::new(),
        given_up: false,
    }
}

async fn a_lease_is_seen_renewed_and_removed(f: Fixture) {
    let (ours, theirs) = (f.bus.leases(), f.bus.as_agent(&agent("other")).leases());
    let mut changes = theirs.watch().await.unwrap();
    let lease = ours.begin(note(&[])).await.unwrap();
    let LeaseChange::Held(began) = next(&mut changes).await else { panic!("it began") };
    assert_eq!((&began.holder, began.epoch), (&agent("tester"), lease.epoch()));
    let one = run();
    let renewed = ours.renew(&lease, note(&[one])).await.unwrap().unwrap();
    let LeaseChange::Held(seen) = next(&mut changes).await else { panic!("it was renewed") };
    assert_eq!((seen.epoch, &seen.note), (lease.epoch(), &note(&[one])));
    assert!(seen.revision > began.revision && seen.at >= began.at);
    assert_eq!(theirs.list().await.unwrap(), std::slice::from_ref(&seen));
    // A renewal whose answer was lost does not stand in the way of the next.
    let renewed_again = ours.renew(&lease, note(&[])).await.unwrap().unwrap();
    assert_eq!(renewed_again.epoch(), renewed.epoch());
    next(&mut changes).await;
    theirs.remove(&seen.key, seen.revision).await.unwrap();
    assert_eq!(theirs.list().await.unwrap().len(), 1, "it was renewed since, so it stays");
    let last = theirs.list().await.unwrap().remove(0);
    theirs.remove(&last.key, last.revision).await.unwrap();
    assert_eq!(next(&mut changes).await, LeaseChange::Gone { key: last.key });
    assert_eq!(ours.renew(&renewed_again, note(&[])).await.unwrap(), None, "it was lost");
}

async fn a_lease_given_up_stays_only_while_it_names_runs(f: Fixture) {
    let leases = f.bus.leases();
    let (idle, one) = (leases.begin(note(&[])).await.unwrap(), run());
    leases.give_up(&idle, note(&[])).await.unwrap();
    assert!(leases.list().await.unwrap().is_empty());
    let busy = leases.begin(note(&[])).await.unwrap();
    leases.give_up(&busy, note(&[one])).await.unwrap();
    let left = leases.list().await.unwrap().remove(0);
    assert!(left.note.given_up && left.note.runs == [one]);
}

async fn control_reaches_its_target(f: Fixture) {
    let control = f.bus.control();
    let mut mine = control.listen(&agent("worker-1"), "worker").await.unwrap();
    let mut other = control.listen(&agent("writer-1"), "writer").await.unwrap();
    let stop = |reason: &str| ControlMessage::CancelRun {
        run: RunId::from_uuid(uuid::Uuid::nil()),
        reason: reason.into(),
    };
    control.send(&ControlTarget::Agent(agent("worker-1")), &stop("one")).await.unwrap();
    control.send(&ControlTarget::Role("worker".into()), &stop("role")).await.unwrap();
    control.send(&ControlTarget::All, &ControlMessage::Shutdown).await.unwrap();
    // They come by three subjects, so in any order.
    let heard = [next(&mut mine).await, next(&mut mine).await, next(&mut mine).await];
    for expected in [stop("one"), stop("role"), ControlMessage::Shutdown] {
        assert!(heard.contains(&expected), "{expected:?} in {heard:?}");
    }
    assert_eq!(next(&mut other).await, ControlMessage::Shutdown);
    assert!(control.send(&ControlTarget::Role("a.b".into()), &ControlMessage::Shutdown).await.is_err());
}

async fn a_request_is_answered_by_the_process_that_it_is_for(f: Fixture) {
    let (one, two) = (agent("orchestrator-1"), agent("orchestrator-2"));
    let asks = f.bus.as_agent(&one).control();
    let due = ControlMessage::Owners(OwnerMessage::Due { run: run() });
    let begun = Instant::now();
    let nobody = asks.request(&two, &due, SOON).await;
    assert!(nobody.is_err() && begun.elapsed() < SOON, "nobody is not waited for: {nobody:?}");

    let mut others = f.bus.as_agent(&one).control().serve(&one, "orchestrator").await.unwrap();
    let mut requests = f.bus.as_agent(&two).control().serve(&two, "orchestrator").await.unwrap();
    let answering = tokio::spawn(async move {
        let unanswered = next(&mut requests).await;
        let request = next(&mut requests).await;
        let answer = ControlMessage::Owners(OwnerMessage::Answer { answer: OwnerAnswer::Recorded });
        request.answer(&answer).await.unwrap();
        // One that nobody waits for needs no answer.
        let said = next(&mut requests).await;
        said.answer(&answer).await.unwrap();
        [unanswered.message, request.message, said.message]
    });
    let late = asks.request(&two, &due, Duration::from_millis(100)).await;
    assert!(matches!(late, Err(BusError::TimedOut { .. })), "{late:?}");
    let answer = asks.request(&two, &due, SOON).await.unwrap();
    assert_eq!(answer, ControlMessage::Owners(OwnerMessage::Answer { answer: OwnerAnswer::Recorded }));
    asks.send(&ControlTarget::Agent(two.clone()), &due).await.unwrap();
    assert_eq!(answering.await.unwrap(), [due.clone(), due.clone(), due]);
    let heard = tokio::time::timeout(Duration::from_millis(50), others.next()).await;
    assert!(heard.is_err(), "nobody else hears of it: {heard:?}");
}

async fn live_messages_are_watched(f: Fixture) {
    let run = run();
    let mut watched = f.bus.live().watch(Some(run)).await.unwrap();
    let usage = Usage::default();
    let live = Live {
        run,
        role: Role::Worker,
        task: leaf("1"),
        generation: Generation(1),
        step: 1,
        kind: LiveKind::Status { text: "thinking".into(), usage },
    };
    assert!(f.bus.live().publish(live.clone()));
    assert_eq!(next(&mut watched).await, live);
    let taken = (0..10_000).filter(|_| f.bus.live().publish(live.clone())).count();
    assert!(taken > 0 && taken < 10_000, "the buffer is bounded: {taken}");
}

async fn the_tap_sees_heartbeats(f: Fixture) {
    let mut tapped = f.bus.tap().watch(None).await.unwrap();
    let _announced = f.bus.registry().announce(profile("worker-1")).await.unwrap();
    let seen = next(&mut tapped).await;
    assert_eq!(seen.subject, "hb.worker.worker-1");
    assert!(matches!(seen.content.unwrap().body, Body::Heartbeat(_)));
}
