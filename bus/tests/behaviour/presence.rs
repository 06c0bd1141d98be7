//! Who comes and goes, as the server's system account tells it.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_bus::credentials::FleetKeys;
use muster_bus::server::LocalServer;
use muster_bus::{Bus, BusError, BusSettings, Presence};
use muster_shared::secret::Redactor;

use crate::fixture::{Fixture, SOON, agent, on_nats, server_settings, settings_of};

/// A bus that may listen to the server's system account.
async fn watcher(f: &Fixture) -> Bus {
    let server = f.server.as_ref().unwrap();
    let system_credentials = Some(server.keys().presence_file());
    let settings = BusSettings { system_credentials, ..settings_of(server) };
    Bus::connect(&settings, &agent("orchestrator-1"), Arc::new(Redactor::default())).await.unwrap()
}

async fn connect_as(f: &Fixture, name: &str) -> Bus {
    let settings = settings_of(f.server.as_ref().unwrap());
    Bus::connect(&settings, &agent(name), Arc::new(Redactor::default())).await.unwrap()
}

async fn next(told: &mut BoxStream<'static, Presence>) -> Presence {
    tokio::time::timeout(SOON, told.next()).await.unwrap().unwrap()
}

/// The next that is no roll: rolls come whenever they are asked for.
async fn change(told: &mut BoxStream<'static, Presence>) -> Presence {
    loop {
        match next(told).await {
            Presence::Here(_) => {}
            change @ (Presence::Came { .. } | Presence::Went { .. }) => return change,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_told_of_when_it_is_made_and_when_it_ends() {
    let f = on_nats().await;
    let watcher = watcher(&f).await;
    let mut told = watcher.presence().await.unwrap().unwrap();
    let one = connect_as(&f, "worker-1").await;
    let Presence::Came { agent: came, instance: first } = change(&mut told).await else { panic!("it came") };
    assert_eq!(came, agent("worker-1"));
    // A connection beside the main one is not told of: what comes next is the end of the main one.
    let control = one.control().listen(&agent("worker-1"), "worker").await.unwrap();
    drop(control);
    drop(one);
    let Presence::Went { agent: went, instance, reason } = change(&mut told).await else { panic!("it went") };
    assert_eq!((went, instance), (agent("worker-1"), first.clone()));
    assert!(!reason.is_empty());

    let _again = connect_as(&f, "worker-1").await;
    let back = change(&mut told).await;
    let Presence::Came { instance, .. } = back else { panic!("it came back: {back:?} after {first:?}") };
    assert_ne!(instance, first, "another connection of the same name is told apart");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_system_account_nothing_is_told_and_wrong_credentials_are_refused() {
    let f = on_nats().await;
    assert!(f.bus.presence().await.unwrap().is_none());
    let others = tempfile::tempdir().unwrap();
    let others = FleetKeys::open_or_make(&others.path().join("keys")).unwrap();
    others.write_own().unwrap();
    let settings = BusSettings {
        system_credentials: Some(others.presence_file()),
        ..settings_of(f.server.as_ref().unwrap())
    };
    let bus = Bus::connect(&settings, &agent("orchestrator-1"), Arc::new(Redactor::default())).await.unwrap();
    let refused = bus.presence().await.map(|_| ());
    assert!(matches!(refused, Err(BusError::Unauthorized { .. })), "{refused:?}");
    assert!(bus.server().await.is_ok(), "the connection for work is not affected");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_credentials_are_private_and_outlive_the_server() {
    let mut f = on_nats().await;
    let store = f.folder.as_ref().unwrap().path().join("nats");
    for file in ["nats-server.conf", "keys/account.nk", "keys/operator.creds", "keys/presence.creds"] {
        let mode = store.join(file).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let watcher = watcher(&f).await;
    let mut told = watcher.presence().await.unwrap().unwrap();
    let old = f.server.take().unwrap();
    let port = old.port();
    old.stop().await.unwrap();
    f.server =
        Some(LocalServer::start(&server_settings(f.folder.as_ref().unwrap().path(), port)).await.unwrap());
    // Whoever watched finds its way back: sooner or later it hears of somebody who came since.
    let came = async {
        loop {
            let _one = connect_as(&f, "worker-2").await;
            let heard = tokio::time::timeout(Duration::from_millis(300), told.next()).await;
            if matches!(heard, Ok(Some(Presence::Came { agent: came, .. })) if came == agent("worker-2")) {
                return;
            }
        }
    };
    tokio::time::timeout(SOON, came).await.unwrap();
}
