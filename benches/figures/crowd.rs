//! A thousand runs at once in one orchestrator.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use muster_support::figures::{Aim, Figure, Measured};
use muster_support::model_server::ModelServer;
use muster_support::process::consumption;
use muster_support::workload::{Speech, script};

use crate::print::median;
use crate::runs::{connect, fleet, together};

/// Runs at once.
const RUNS: usize = 1_000;
/// How long the model takes for each answer, so that all of them are going on together.
const DELAY: Duration = Duration::from_millis(200);
/// How often the orchestrator's memory is looked at.
const LOOK: Duration = Duration::from_millis(250);

pub(crate) fn measure() -> Vec<Figure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = ModelServer::start(script(DELAY, Speech::Native)).unwrap();
    let mut settings = vec!["--set", "server.sync_always=false", "--set", "orchestrator.max_runs=1000"];
    settings.extend(["--set", "orchestrator.max_waiting=2000", "--set", "agent.slots.worker=64"]);
    let fleet = fleet(&server, &settings);
    let orchestrator = fleet.pid("orchestrator").or_else(|| fleet.pid("orchestrator-1")).unwrap();
    let (mut times, most) = runtime.block_on(async {
        let bus = connect(&fleet.url()).await;
        let most = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&most);
        let watched = tokio::spawn(async move {
            loop {
                seen.fetch_max(consumption(&[orchestrator]).rss, Ordering::Relaxed);
                tokio::time::sleep(LOOK).await;
            }
        });
        let times = together(&bus, RUNS).await;
        watched.abort();
        (times, most.load(Ordering::Relaxed))
    });
    let middle = median(&mut times);
    let slowest = times.iter().max().copied().unwrap_or_default();
    vec![
        Figure::new("1,000 runs at once: the orchestrator's memory, at most", Measured::memory(most))
            .aiming(Aim::AtMost(500.0)),
        Figure::new("1,000 runs at once: the slowest", Measured::time(slowest))
            .against("median", Measured::time(middle))
            .aiming(Aim::TimesBare(2.0)),
    ]
}
