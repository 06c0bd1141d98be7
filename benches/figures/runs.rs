//! Fleets to be measured, and runs on them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use muster_bus::{Bus, RecordFilter};
use muster_shared::flow::{Goal, RunLimits};
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::event::{RunAborted, RunFailed};
use muster_shared::run::{Entry, RecordEvent, RunEvent};
use muster_shared::secret::Redactor;
use muster_shared::wire::{Command, Encoding};
use muster_support::fleet::{Fleet, Folder};
use muster_support::model_server::ModelServer;
use uuid::Uuid;

/// The longest that a run may take.
const LIMIT: Duration = Duration::from_secs(300);

/// A folder for the program that is measured: the one built with this bench, or the one that `MUSTER_BENCHED` names, so
/// that two builds can be measured by the same hands.
pub(crate) fn folder() -> Folder {
    let other = std::env::var("MUSTER_BENCHED").ok();
    Folder::new(other.as_deref().unwrap_or(env!("CARGO_BIN_EXE_muster"))).unwrap()
}

/// A fleet that asks this model.
pub(crate) fn fleet(server: &ModelServer, arguments: &[&str]) -> Fleet {
    fleet_in(folder(), server, arguments)
}

/// The same in a folder that is there. `MUSTER_BENCHED_WITH` has more settings for it, such as `server.memory_mib=512
/// bus.heartbeat=30s`.
pub(crate) fn fleet_in(folder: Folder, server: &ModelServer, arguments: &[&str]) -> Fleet {
    let folder = folder
        .with("OPENAI_API_KEY", "key-of-the-scripted-server")
        .with("OPENAI_BASE_URL", server.openai_url());
    let more = std::env::var("MUSTER_BENCHED_WITH").unwrap_or_default();
    let more: Vec<&str> = more.split_whitespace().flat_map(|setting| ["--set", setting]).collect();
    folder.up(&[&["--set", "agent.model=openai/scripted"], arguments, &more].concat()).unwrap()
}

pub(crate) async fn connect(url: &str) -> Bus {
    let who: AgentId = "bench".parse().unwrap();
    let settings = muster_support::way::settings(url);
    Bus::connect(&settings, &who, Arc::new(Redactor::default())).await.unwrap()
}

/// A run from the goal to the report; gives its record.
pub(crate) async fn run(bus: &Bus, goal: &str) -> Vec<Entry> {
    run_within(bus, Goal::new(goal)).await
}

/// The same with limits of its own.
pub(crate) async fn run_with(bus: &Bus, goal: &str, limits: RunLimits) -> Vec<Entry> {
    run_within(bus, Goal { limits: Some(limits), ..Goal::new(goal) }).await
}

async fn run_within(bus: &Bus, goal: Goal) -> Vec<Entry> {
    let id = RunId::from_uuid(Uuid::now_v7());
    let mut followed = bus.record().follow(&RecordFilter::Run(id), Seq(0)).await.unwrap();
    bus.commands()
        .send(&Command::Submit { run: id, goal: Box::new(goal) }, Encoding::MessagePack)
        .await
        .unwrap();
    let mut entries = Vec::new();
    loop {
        let entry = tokio::time::timeout(LIMIT, followed.next()).await.unwrap().unwrap().unwrap();
        let ended = matches!(&entry.event, RecordEvent::Decided(decided) if decided.events.iter().any(ends));
        entries.push(entry);
        if ended {
            return entries;
        }
    }
}

/// So many runs at once, each from its goal to its report. One reader follows all of them: a stream takes only so many.
pub(crate) async fn together(bus: &Bus, count: usize) -> Vec<Duration> {
    let from = bus.record().newest().await.unwrap();
    let mut followed = bus.record().follow(&RecordFilter::AllDecisions, from).await.unwrap();
    let mut open = HashMap::new();
    for n in 0..count {
        let (id, goal) =
            (RunId::from_uuid(Uuid::now_v7()), Box::new(Goal::new(format!("Work out sum {n}."))));
        open.insert(id, Instant::now());
        bus.commands().send(&Command::Submit { run: id, goal }, Encoding::MessagePack).await.unwrap();
    }
    let mut times = Vec::new();
    while !open.is_empty() {
        let entry = tokio::time::timeout(LIMIT, followed.next()).await.unwrap().unwrap().unwrap();
        if matches!(&entry.event, RecordEvent::Decided(decided) if decided.events.iter().any(ends)) {
            times.extend(open.remove(&entry.run).map(|began| began.elapsed()));
        }
    }
    times
}

fn ends(event: &RunEvent) -> bool {
    match event {
        RunEvent::RunFailed(RunFailed { reason }) | RunEvent::RunAborted(RunAborted { reason, .. }) => {
            panic!("a run failed: {reason}")
        }
        event => matches!(event, RunEvent::RunCompleted(_)),
    }
}
