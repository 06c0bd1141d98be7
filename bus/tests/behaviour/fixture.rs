//! A bus to test, and things to put on it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_bus::server::{LocalServer, ServerSettings};
use muster_bus::{Bus, BusSettings};
use muster_shared::flow::{RunLimits, TaskOffered};
use muster_shared::ids::{AgentId, Attempt, Generation, Queue, Role, RunId, Seq, TaskId};
use muster_shared::run::{AgentEvent, AgentKey, Decided, Input, Released, Request, RequestAction, Started};
use muster_shared::secret::Redactor;
use muster_shared::wire::{Command, Encoding};
use tempfile::TempDir;
use uuid::Uuid;

/// Longest wait for anything that must happen.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A bus, and what must live as long as it does.
pub(crate) struct Fixture {
    pub(crate) bus: Bus,
    pub(crate) server: Option<LocalServer>,
    pub(crate) folder: Option<TempDir>,
}

pub(crate) fn settings() -> BusSettings {
    BusSettings {
        ack_wait: Duration::from_secs(2),
        lease_ttl: Duration::from_secs(1),
        heartbeat: Duration::from_millis(300),
        object_limit: 4 * 1024 * 1024,
        ..BusSettings::default()
    }
}

pub(crate) fn in_memory() -> Fixture {
    in_memory_of(1)
}

/// The same with the record in so many parts.
pub(crate) fn in_memory_of(partitions: u8) -> Fixture {
    let settings = BusSettings { partitions, ..settings() };
    let bus = Bus::in_memory_with(&agent("tester"), settings, Arc::new(Redactor::default()));
    Fixture { bus, server: None, folder: None }
}

pub(crate) fn server_settings(folder: &Path, port: u16) -> ServerSettings {
    ServerSettings { store_dir: folder.join("nats"), port, sync_always: false, ..ServerSettings::default() }
}

pub(crate) async fn on_nats() -> Fixture {
    on_nats_of(1).await
}

/// The same with the record in so many parts.
pub(crate) async fn on_nats_of(partitions: u8) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let server = LocalServer::start(&server_settings(folder.path(), 0)).await.unwrap();
    let bus = connect_for(&server, partitions).await;
    bus.provision().await.unwrap();
    Fixture { bus, server: Some(server), folder: Some(folder) }
}

/// The same with a record from which runs can be removed.
pub(crate) fn in_memory_removable() -> Fixture {
    let settings = BusSettings { removable: true, ..settings() };
    let bus = Bus::in_memory_with(&agent("tester"), settings, Arc::new(Redactor::default()));
    Fixture { bus, server: None, folder: None }
}

/// The same on a server.
pub(crate) async fn on_nats_removable() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let server = LocalServer::start(&server_settings(folder.path(), 0)).await.unwrap();
    let settings = BusSettings { removable: true, ..settings_of(&server) };
    let bus = Bus::connect(&settings, &agent("tester"), Arc::new(Redactor::default())).await.unwrap();
    bus.provision().await.unwrap();
    Fixture { bus, server: Some(server), folder: Some(folder) }
}

pub(crate) async fn connect(server: &LocalServer) -> Bus {
    connect_for(server, 1).await
}

/// A connection whose settings say so many parts.
pub(crate) async fn connect_for(server: &LocalServer, partitions: u8) -> Bus {
    let settings = BusSettings { partitions, ..settings_of(server) };
    Bus::connect(&settings, &agent("tester"), Arc::new(Redactor::default())).await.unwrap()
}

/// The settings of whoever runs the fleet of a server.
pub(crate) fn settings_of(server: &LocalServer) -> BusSettings {
    let BusSettings { url, credentials, .. } = BusSettings::of_server(server);
    BusSettings { url, credentials, ..settings() }
}

pub(crate) fn agent(name: &str) -> AgentId {
    name.parse().unwrap()
}

pub(crate) fn run() -> RunId {
    RunId::from_uuid(Uuid::now_v7())
}

pub(crate) fn cancel(run: RunId, reason: &str) -> Command {
    Command::Request(Request::new(run, RequestAction::Cancel).because(reason))
}

pub(crate) fn leaf(text: &str) -> TaskId {
    text.parse().unwrap()
}

pub(crate) fn worker() -> Queue {
    Queue::Role(Role::Worker)
}

pub(crate) fn key(name: &str, task: &str) -> AgentKey {
    AgentKey { role: Role::Worker, agent: agent(name), task: leaf(task), generation: Generation(1) }
}

pub(crate) fn started(attempt: u32) -> AgentEvent {
    AgentEvent::Started(Started {
        attempt: Attempt(attempt),
        ack: "ack".into(),
        pid: 1,
        host: "here".into(),
        after_step: 0,
    })
}

pub(crate) fn released(reason: impl Into<String>) -> AgentEvent {
    AgentEvent::Released(Released { reason: reason.into(), parked: false, ..Released::default() })
}

pub(crate) fn decided(offers: u32) -> Decided {
    let decided = serde_json::json!({
        "batch": Uuid::now_v7(), "by": agent("orchestrator-1"), "inputs": [Input::Capacity], "now": 1, "basis": 0,
        "after": 0, "offers": offers, "events": [],
    });
    serde_json::from_value(decided).unwrap()
}

pub(crate) fn offer(run: RunId, task: &str, queue: Queue) -> TaskOffered {
    let usual = serde_json::json!({
        "run": run, "task": leaf(task), "generation": 1, "queue": worker(),
        "work": { "plan": { "roles": ["worker"], "held_to": {} } }, "goal": "find out",
        "limits": RunLimits::default(), "deadline": u64::MAX / 2, "nonce": "nonce", "encoding": Encoding::MessagePack,
    });
    TaskOffered { queue, ..serde_json::from_value(usual).unwrap() }
}

impl Fixture {
    /// Offers tasks to the workers in one batch.
    pub(crate) async fn offer(&self, run: RunId, after: Seq, tasks: &[&str]) -> muster_bus::Appended {
        let offers: Vec<_> = tasks.iter().map(|task| offer(run, task, worker())).collect();
        let decision = decided(u32::try_from(offers.len()).unwrap());
        let record = self.bus.record();
        record.append_decision(run, after, &decision, &offers, Encoding::MessagePack).await.unwrap()
    }

    /// A plain client of the same server, if there is one.
    pub(crate) async fn foreigner(&self) -> Option<async_nats::Client> {
        let server = self.server.as_ref()?;
        let options = async_nats::ConnectOptions::with_credentials_file(server.keys().operator_file());
        Some(options.await.unwrap().connect(server.url()).await.unwrap())
    }
}

/// The next item, within the limit.
pub(crate) async fn next<T>(stream: &mut BoxStream<'static, T>) -> T {
    tokio::time::timeout(SOON, stream.next()).await.expect("nothing came in time").expect("the stream ended")
}

/// Waits until a condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let begun = tokio::time::Instant::now();
    while !condition().await {
        assert!(begun.elapsed() < SOON, "{what} did not come about");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
