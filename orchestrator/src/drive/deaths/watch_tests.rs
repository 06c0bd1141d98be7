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

fn came(connection: u64) -> Presence {
    Presence::Came { agent: agent(), instance: instance(connection) }
}

fn went(connection: u64) -> Presence {
    ended(connection, "Stale Connection")
}

fn ended(connection: u64, reason: &str) -> Presence {
    Presence::Went { agent: agent(), instance: instance(connection), reason: reason.into() }
}

fn here(connections: &[u64]) -> Presence {
    Presence::Here(connections.iter().map(|connection| (agent(), instance(*connection))).collect())
}

fn tell(watch: &mut Watch, presence: Presence, known: bool, now: Instant) {
    match presence {
        Presence::Came { agent, instance } => watch.came(agent, instance),
        Presence::Went { agent, instance, reason } => watch.went(agent, &instance, &reason, known, now),
        Presence::Here(here) => watch.roll(here, if known { vec![agent()] } else { Vec::new() }, now),
    }
}

fn joined() -> RegistryChange {
    RegistryChange::Joined(profile())
}

fn by_gateway() -> RegistryChange {
    RegistryChange::Joined(Profile { by_gateway: true, ..profile() })
}

fn profile() -> Profile {
    serde_json::from_value(serde_json::json!({ "agent": agent(), "role": "worker" })).unwrap()
}

#[expect(clippy::large_enum_variant, reason = "a few of them, in a test")]
enum Told {
    Bus(Presence),
    Registry(RegistryChange),
}

use Told::{Bus as B, Registry as R};

/// Tells of things at times in milliseconds, and gives the time at which the agent is taken for lost.
fn lost_at(told: Vec<(u64, Told)>) -> Option<(u64, bool)> {
    let began = Instant::now();
    let mut watch = Watch::new(HEARTBEAT);
    let mut told = told.into_iter().peekable();
    for at in 0..20_000 {
        let now = began + Duration::from_millis(at);
        while let Some((_, what)) = told.next_if(|(when, _)| *when <= at) {
            match what {
                B(presence) => tell(&mut watch, presence, true, now),
                R(change) => watch.registry_changed(&change, now),
            }
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
    let left = || R(RegistryChange::Left(agent()));
    type Case = (&'static str, Vec<(u64, Told)>, Option<(u64, bool)>);
    let cases: Vec<Case> = vec![
        ("a connection that ends for good", vec![(0, B(came(1))), (10, B(went(1)))], Some((160, true))),
        ("one that was there before anybody watched", vec![(10, B(went(1)))], Some((160, true))),
        ("a process that connects again", vec![(10, B(went(1))), (159, B(came(2)))], None),
        ("too late", vec![(10, B(went(1))), (161, B(came(2)))], Some((160, true))),
        (
            "the old connection ends after the new was made",
            vec![(0, B(came(1))), (5, B(came(2))), (10, B(went(1)))],
            None,
        ),
        (
            "both end",
            vec![(0, B(came(1))), (5, B(came(2))), (10, B(went(1))), (20, B(went(2)))],
            Some((170, true)),
        ),
        ("the registry forgets it", vec![(10, left())], Some((5_010, false))),
        ("it enters itself again", vec![(10, left()), (3_000, R(joined()))], None),
        ("forgotten, but connected", vec![(0, B(came(1))), (10, left())], None),
        ("forgotten, then connected again", vec![(10, left()), (20, B(came(1)))], None),
        (
            "an old entry of the registry does not make it live",
            vec![(10, B(went(1))), (20, R(joined()))],
            Some((160, true)),
        ),
        ("missed by one roll", vec![(10, B(here(&[]))), (20, B(here(&[1])))], None),
        ("missed by two rolls in a row", vec![(10, B(here(&[]))), (20, B(here(&[])))], Some((20, true))),
        (
            "named between two that miss it",
            vec![(1, B(here(&[]))), (2, B(here(&[1]))), (3, B(here(&[])))],
            None,
        ),
        (
            "a gateway speaks for it, and it has no connection of its name",
            vec![(1, R(by_gateway())), (10, B(here(&[]))), (20, B(here(&[])))],
            None,
        ),
        (
            "a gateway speaks for it, and its connection ends",
            vec![(1, R(by_gateway())), (2, B(came(1))), (10, B(went(1)))],
            Some((160, true)),
        ),
        ("it comes between two rolls", vec![(10, B(here(&[]))), (15, B(came(1))), (20, B(here(&[])))], None),
        (
            "it gives a sign of life between two rolls",
            vec![(10, B(here(&[]))), (15, R(RegistryChange::Changed(profile()))), (20, B(here(&[])))],
            None,
        ),
        (
            "its server died with it, and nobody told",
            vec![(0, B(came(1))), (10, B(here(&[]))), (20, B(here(&[])))],
            Some((20, true)),
        ),
        (
            "it moved when its server died; the new connection ends",
            vec![
                (0, B(came(1))),
                (1, B(came(2))),
                (10, B(here(&[2]))),
                (20, B(here(&[2]))),
                (30, B(went(2))),
            ],
            Some((180, true)),
        ),
        ("it ended the connection itself", vec![(10, B(ended(1, "Client Closed")))], Some((50, true))),
        ("and connects again", vec![(10, B(ended(1, "Client Closed"))), (49, B(came(2)))], None),
        ("its machine cut it off", vec![(10, B(ended(1, "Read Error")))], Some((50, true))),
        (
            "twice, one soon after the other",
            vec![(0, B(ended(1, "Client Closed"))), (10, B(came(2))), (20, B(ended(2, "Client Closed")))],
            Some((60, true)),
        ),
        ("forgotten by another orchestrator first", vec![(10, B(went(1))), (20, left())], Some((160, true))),
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
    watch.registry_changed(&RegistryChange::Left(agent()), now + GRACE);
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
    watch.registry_changed(&RegistryChange::Left(agent()), now);
    watch.registry_changed(&joined(), now);
    assert_eq!(missed_twice(&mut watch), 0, "it entered itself again");
    tell(&mut watch, here(&[1]), true, now);
    assert_eq!(missed_twice(&mut watch), 1, "now it had a connection");
}
