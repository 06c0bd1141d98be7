//! Whole runs on a real server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_bus::server::{LocalServer, ServerSettings};
use muster_bus::{Bus, BusSettings, RecordFilter};
use muster_shared::flow::{Goal, TaskDraft};
use muster_shared::ids::{AgentId, Seq};
use muster_shared::run::RunStatus;
use muster_shared::secret::Redactor;
use support::{Fleet, Orchestrator, good, leaf};

fn tasks() -> Vec<TaskDraft> {
    vec![leaf("apples", &[]), leaf("pears", &[]), leaf("the sum", &["1", "2"])]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_complete_on_a_real_server_and_outlive_their_orchestrator() {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        ServerSettings { store_dir: folder.path().join("nats"), port: 0, ..ServerSettings::default() };
    let server = LocalServer::start(&settings).await.unwrap();
    let settings =
        BusSettings { url: Some(server.url()), lease_ttl: Duration::from_secs(1), ..BusSettings::default() };
    let bus = Bus::connect(&settings, &AgentId::new("test", 0), Arc::new(Redactor::default())).await.unwrap();
    bus.provision().await.unwrap();
    let pause = Duration::from_millis(100);
    let fleet = Fleet::start(bus, 4, Arc::new(move |offer| Some((pause, good(offer, &tasks()))))).await;

    let first = Orchestrator::start(&fleet.bus, 1);
    let begin = Instant::now();
    let run = fleet.submit(Goal::new("What is so?")).await;
    let state = fleet.finished(run).await;
    assert_eq!(state.status, RunStatus::Completed, "{:?}", state.reason);
    let entries = fleet.bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap().len();
    println!("a run of 5 phases at 100 ms each on NATS: {:?}, {entries} entries", begin.elapsed());

    let run = fleet.submit(Goal::new("What is so?")).await;
    fleet.wait(run, |state| state.plan.is_some()).await;
    first.kill();
    assert!(!fleet.fold(run).await.unwrap().status.is_ended());
    let _second = Orchestrator::start(&fleet.bus, 2);
    let state = fleet.finished(run).await;
    assert_eq!(state.status, RunStatus::Completed, "{:?}", state.reason);
    drop(fleet);
    server.stop().await.unwrap();
}
