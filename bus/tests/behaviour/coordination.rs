use std::time::{Duration, SystemTime, UNIX_EPOCH};

use muster_bus::{ControlTarget, RegistryChange};
use muster_shared::flow::Usage;
use muster_shared::ids::{Generation, Role, RunId};
use muster_shared::time::Millis;
use muster_shared::wire::{Body, ControlMessage, Live, LiveKind, Profile};

use crate::fixture::{Fixture, SOON, agent, leaf, next, run, until};

crate::on_both!(
    agents_come_change_and_leave,
    a_silent_agent_is_forgotten,
    a_lease_has_one_holder,
    a_lease_expires_and_can_be_renewed,
    a_timer_fires_once,
    a_timer_is_replaced_and_cleared,
    control_reaches_its_target,
    live_messages_are_watched,
    the_tap_sees_heartbeats,
);

fn profile(name: &str) -> Profile {
    Profile {
        agent: agent(name),
        role: "worker".into(),
        pid: 1,
        host: "here".into(),
        version: "0".into(),
        event_version: 1,
        slots: 8,
        busy: 0,
        model: "offline".into(),
        tools: Vec::new(),
        started_at: 1,
        resident_bytes: 0,
    }
}

fn now() -> Millis {
    Millis(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap())
}

async fn agents_come_change_and_leave(f: Fixture) {
    let registry = f.bus.registry();
    let announced = registry.announce(profile("worker-1")).await.unwrap();
    assert_eq!(registry.list().await.unwrap(), [profile("worker-1")]);
    let mut changes = registry.watch().await.unwrap();
    assert_eq!(next(&mut changes).await, RegistryChange::Joined(profile("worker-1")));
    announced.set_busy(3);
    let changed = Profile { busy: 3, ..profile("worker-1") };
    assert_eq!(next(&mut changes).await, RegistryChange::Changed(changed));
    announced.leave().await.unwrap();
    assert_eq!(next(&mut changes).await, RegistryChange::Left(agent("worker-1")));
    assert!(registry.list().await.unwrap().is_empty());
}

async fn a_silent_agent_is_forgotten(f: Fixture) {
    let registry = f.bus.registry();
    let mut changes = registry.watch().await.unwrap();
    let announced = registry.announce(profile("worker-1")).await.unwrap();
    assert_eq!(next(&mut changes).await, RegistryChange::Joined(profile("worker-1")));
    // Heartbeats keep it beyond its time.
    tokio::time::sleep(Duration::from_millis(1800)).await;
    assert_eq!(registry.list().await.unwrap().len(), 1);
    drop(announced);
    assert_eq!(next(&mut changes).await, RegistryChange::Left(agent("worker-1")));
    assert!(registry.list().await.unwrap().is_empty());
}

async fn a_lease_has_one_holder(f: Fixture) {
    let (run, ours, theirs) = (run(), f.bus.leases(), f.bus.as_agent(&agent("other")).leases());
    let lease = ours.acquire(run).await.unwrap().unwrap();
    assert_eq!(theirs.acquire(run).await.unwrap(), None);
    assert_eq!(theirs.holder(run).await.unwrap(), Some(agent("tester")));
    assert_eq!(theirs.list().await.unwrap(), [(run, agent("tester"))]);
    ours.release(lease.clone()).await.unwrap();
    assert_eq!(ours.holder(run).await.unwrap(), None);
    assert!(theirs.acquire(run).await.unwrap().is_some());
    assert_eq!(ours.renew(&lease).await.unwrap(), None);
    ours.release(lease).await.unwrap();
    assert_eq!(ours.holder(run).await.unwrap(), Some(agent("other")));
}

async fn a_lease_expires_and_can_be_renewed(f: Fixture) {
    let (run, leases) = (run(), f.bus.leases());
    let mut lease = leases.acquire(run).await.unwrap().unwrap();
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        lease = leases.renew(&lease).await.unwrap().expect("a renewed lease lasts");
    }
    until("the lease's end", || async { leases.holder(run).await.unwrap().is_none() }).await;
    assert!(leases.acquire(run).await.unwrap().is_some());
    assert_eq!(leases.renew(&lease).await.unwrap(), None);
}

async fn a_timer_fires_once(f: Fixture) {
    let (timers, one, late) = (f.bus.timers(), run(), run());
    let queue = timers.join().await.unwrap();
    let at = now().after(Duration::from_millis(700));
    timers.set(one, at).await.unwrap();
    timers.set(late, Millis(1)).await.unwrap();
    let fired = queue.take(SOON).await.unwrap().unwrap();
    assert_eq!(fired.run, late, "a time that has passed fires at once");
    fired.done().await.unwrap();
    let fired = queue.take(SOON).await.unwrap().unwrap();
    assert_eq!(fired.run, one);
    assert!(now() >= at);
    fired.done().await.unwrap();
    assert!(queue.take(Duration::from_secs(3)).await.unwrap().is_none());
}

async fn a_timer_is_replaced_and_cleared(f: Fixture) {
    let timers = f.bus.timers();
    let (replaced, cleared): (RunId, RunId) = (run(), run());
    let queue = timers.join().await.unwrap();
    timers.set(replaced, now().after(Duration::from_secs(1))).await.unwrap();
    timers.set(cleared, now().after(Duration::from_secs(1))).await.unwrap();
    timers.set(replaced, now().after(Duration::from_millis(1500))).await.unwrap();
    timers.clear(cleared).await.unwrap();
    let fired = queue.take(SOON).await.unwrap().unwrap();
    assert_eq!(fired.run, replaced);
    fired.done().await.unwrap();
    assert!(queue.take(Duration::from_millis(500)).await.unwrap().is_none());
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
    assert!(f.bus.live().publish(&live));
    assert_eq!(next(&mut watched).await, live);
    let taken = (0..10_000).filter(|_| f.bus.live().publish(&live)).count();
    assert!(taken > 0 && taken < 10_000, "the buffer is bounded: {taken}");
}

async fn the_tap_sees_heartbeats(f: Fixture) {
    let mut tapped = f.bus.tap().watch(None).await.unwrap();
    let _announced = f.bus.registry().announce(profile("worker-1")).await.unwrap();
    let seen = next(&mut tapped).await;
    assert_eq!(seen.subject, "hb.worker.worker-1");
    assert!(matches!(seen.content.unwrap().body, Body::Heartbeat(_)));
}
