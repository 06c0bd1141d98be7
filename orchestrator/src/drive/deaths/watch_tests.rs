use muster_bus::Presence;
use muster_shared::wire::Profile;

use super::*;

const HEARTBEAT: Duration = Duration::from_secs(5);

fn agent() -> AgentId {
    AgentId::new("worker", 1)
}

fn instance(connection: u64) -> Instance {
    Instance { server: "S".into(), connection }
}

#[expect(clippy::large_enum_variant, reason = "a few of them, in a test")]
enum Told {
    Bus(Presence),
    Registry(RegistryChange),
}

use Told::{Bus, Registry};

fn came(connection: u64) -> Told {
    Bus(Presence::Came { agent: agent(), instance: instance(connection) })
}

fn went(connection: u64) -> Told {
    ended(connection, "Stale Connection")
}

fn ended(connection: u64, reason: &str) -> Told {
    Bus(Presence::Went { agent: agent(), instance: instance(connection), reason: reason.into() })
}

fn here(connections: &[u64]) -> Told {
    Bus(Presence::Here(connections.iter().map(|connection| (agent(), instance(*connection))).collect()))
}

fn joined() -> Told {
    Registry(RegistryChange::Joined(profile()))
}

fn left() -> Told {
    Registry(RegistryChange::Left(agent()))
}

fn by_gateway() -> Told {
    Registry(RegistryChange::Joined(Profile { by_gateway: true, ..profile() }))
}

fn tell(watch: &mut Watch, told: Told, known: bool, now: Instant) {
    match told {
        Bus(Presence::Came { agent, instance }) => watch.came(agent, instance),
        Bus(Presence::Went { agent, instance, reason }) => watch.went(agent, &instance, &reason, known, now),
        Bus(Presence::Here(here)) => watch.roll(here, if known { vec![agent()] } else { Vec::new() }, now),
        Registry(change) => watch.registry_changed(&change, now),
    }
}

fn profile() -> Profile {
    serde_json::from_value(serde_json::json!({ "agent": agent(), "role": "worker" })).unwrap()
}

/// Tells of things at times in milliseconds, and gives the time at which the agent is taken for lost.
fn lost_at(told: Vec<(u64, Told)>) -> Option<(u64, bool)> {
    let began = Instant::now();
    let mut watch = Watch::new(HEARTBEAT);
    let mut told = told.into_iter().peekable();
    for at in 0..20_000 {
        let now = began + Duration::from_millis(at);
        while let Some((_, what)) = told.next_if(|(when, _)| *when <= at) {
            tell(&mut watch, what, true, now);
        }
        if let Some(lost) = watch.due(now).pop() {
            assert_eq!(lost.agent, agent());
            return Some((at, lost.of_connection));
        }
    }
    assert_eq!(watch.next(), None, "nothing stays behind");
    None
}

#[test]
fn who_is_lost_and_when() {
    let (none, lost) = (|| here(&[]), |at| Some((at, true)));
    let closed = |connection| ended(connection, "Client Closed");
    type Case = (&'static str, Vec<(u64, Told)>, Option<(u64, bool)>);
    let cases: Vec<Case> = vec![
        ("a connection that ends for good", vec![(0, came(1)), (10, went(1))], lost(160)),
        ("one that was there before anybody watched", vec![(10, went(1))], lost(160)),
        ("a process that connects again", vec![(10, went(1)), (159, came(2))], None),
        ("too late", vec![(10, went(1)), (161, came(2))], lost(160)),
        (
            "the old connection ends after the new was made",
            vec![(0, came(1)), (5, came(2)), (10, went(1))],
            None,
        ),
        ("both end", vec![(0, came(1)), (5, came(2)), (10, went(1)), (20, went(2))], lost(170)),
        ("the registry forgets it", vec![(10, left())], Some((5_010, false))),
        ("it enters itself again", vec![(10, left()), (3_000, joined())], None),
        ("forgotten, but connected", vec![(0, came(1)), (10, left())], None),
        ("forgotten, then connected again", vec![(10, left()), (20, came(1))], None),
        (
            "an old entry of the registry does not make it live",
            vec![(10, went(1)), (20, joined())],
            lost(160),
        ),
        ("missed by one roll", vec![(10, none()), (20, here(&[1]))], None),
        ("missed by two rolls in a row", vec![(10, none()), (20, none())], lost(20)),
        ("named between two that miss it", vec![(1, none()), (2, here(&[1])), (3, none())], None),
        (
            "a gateway speaks for it, and it has no connection of its name",
            vec![(1, by_gateway()), (10, none()), (20, none())],
            None,
        ),
        (
            "a gateway speaks for it, and its connection ends",
            vec![(1, by_gateway()), (2, came(1)), (10, went(1))],
            lost(160),
        ),
        ("it comes between two rolls", vec![(10, none()), (15, came(1)), (20, none())], None),
        (
            "it gives a sign of life between two rolls",
            vec![(10, none()), (15, Registry(RegistryChange::Changed(profile()))), (20, none())],
            None,
        ),
        (
            "its server died with it, and nobody told",
            vec![(0, came(1)), (10, none()), (20, none())],
            lost(20),
        ),
        (
            "it moved when its server died; the new connection ends",
            vec![(0, came(1)), (1, came(2)), (10, here(&[2])), (20, here(&[2])), (30, went(2))],
            lost(180),
        ),
        ("it ended the connection itself", vec![(10, closed(1))], lost(50)),
        ("and connects again", vec![(10, closed(1)), (49, came(2))], None),
        ("its machine cut it off", vec![(10, ended(1, "Read Error"))], lost(50)),
        ("twice, one soon after the other", vec![(0, closed(1)), (10, came(2)), (20, closed(2))], lost(60)),
        ("forgotten by another orchestrator first", vec![(10, went(1)), (20, left())], lost(160)),
    ];
    for (case, told, wanted) in cases {
        assert_eq!(lost_at(told), wanted, "{case}");
    }
}

#[test]
fn a_loss_that_the_registry_hears_of_is_told_once() {
    let (mut watch, now) = (Watch::new(HEARTBEAT), Instant::now());
    tell(&mut watch, went(1), true, now);
    assert_eq!(watch.due(now + GRACE).len(), 1);
    tell(&mut watch, left(), true, now + GRACE);
    assert_eq!(watch.next(), None);
}

/// A server that stood still ends the connections of those who live all at once, and so does a network.
#[test]
fn when_several_connections_end_at_once_all_may_take_their_time() {
    let (mut watch, now) = (Watch::new(HEARTBEAT), Instant::now());
    let other = AgentId::new("worker", 2);
    let at = |millis| now + Duration::from_millis(millis);
    watch.went(agent(), &instance(1), "Client Closed", true, now);
    watch.went(other.clone(), &instance(2), "Client Closed", true, at(30));
    assert_eq!(watch.due(at(149)), []);
    watch.came(agent(), instance(3));
    assert_eq!(watch.due(at(179)), []);
    assert_eq!(watch.due(at(180)).len(), 1, "the other did not come back");
    watch.went(agent(), &instance(3), "Client Closed", true, at(1_000));
    assert_eq!(watch.due(at(1_040)).len(), 1, "long after that it is alone again");
}

#[test]
fn strangers_are_never_lost() {
    let mut watch = Watch::new(HEARTBEAT);
    tell(&mut watch, went(1), false, Instant::now());
    tell(&mut watch, here(&[]), false, Instant::now());
    tell(&mut watch, here(&[]), false, Instant::now());
    assert_eq!(watch.next(), None);
}

#[test]
fn who_lives_without_a_connection_of_its_name_is_lost_by_the_roll_once_at_most() {
    let (mut watch, now) = (Watch::new(HEARTBEAT), Instant::now());
    let missed_twice = |watch: &mut Watch| {
        tell(watch, here(&[]), true, now);
        tell(watch, here(&[]), true, now);
        watch.due(now).len()
    };
    assert_eq!(missed_twice(&mut watch), 1);
    tell(&mut watch, left(), true, now);
    tell(&mut watch, joined(), true, now);
    assert_eq!(missed_twice(&mut watch), 0, "it entered itself again");
    tell(&mut watch, here(&[1]), true, now);
    assert_eq!(missed_twice(&mut watch), 1, "now it had a connection");
}
