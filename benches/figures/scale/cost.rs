//! What one W costs on a fleet.

use std::time::{Duration, Instant};

use muster_bus::Bus;
use muster_shared::flow::{Goal, RunLimits};
use muster_support::census::{Census, Observer};
use muster_support::fleet::Fleet;
use muster_support::process::consumption;

use super::table::ms;
use crate::print::median;
use crate::runs::{connect, run_with};

/// Runs before any count, at least.
const WARM_UP: usize = 3;
/// Agents that a run makes warm: a first task costs an agent more than later ones.
const WARMED: usize = 4;
/// Runs that are measured, one after the other.
const ROUNDS: u32 = 10;

/// What one run costs.
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    pub(crate) server: Duration,
    pub(crate) orchestrators: Duration,
    pub(crate) agents: Duration,
    pub(crate) messages: u64,
    pub(crate) record_bytes: u64,
}

/// The headings of its columns.
pub(crate) const HEADINGS: [&str; 7] =
    ["wall", "CPU", "of server", "of orchestr.", "of agents", "messages", "record bytes"];

impl Cost {
    /// Its columns.
    pub(crate) fn cells(&self) -> [String; 7] {
        let Self { wall, server, orchestrators, agents, messages, record_bytes } = self;
        let cpu = ms(*server + *orchestrators + *agents);
        let (messages, bytes) = (messages.to_string(), record_bytes.to_string());
        [ms(*wall), cpu, ms(*server), ms(*orchestrators), ms(*agents), messages, bytes]
    }
}

/// What such a run costs on this fleet.
pub(crate) async fn of_run(fleet: &Fleet, goal: &str, limits: &RunLimits) -> Cost {
    let bus: Bus = connect(&fleet.url()).await;
    let processes = fleet.pids();
    let used = |kind: fn(&str) -> bool| {
        let pids: Vec<u32> = processes.iter().filter(|(name, _)| kind(name)).map(|(_, pid)| *pid).collect();
        consumption(&pids).cpu
    };
    let server = |name: &str| name == "nats-server";
    let orchestrator = |name: &str| name.starts_with("orchestrator");
    let agent = |name: &str| name != "nats-server" && !name.starts_with("orchestrator");
    for _ in 0..WARM_UP.max(processes.len() / WARMED) {
        run_with(&bus, goal, limits.clone()).await;
    }
    let before = (used(server), used(orchestrator), used(agent));
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        run_with(&bus, goal, limits.clone()).await;
        times.push(began.elapsed());
    }
    let after = (used(server), used(orchestrator), used(agent));
    let mut observer = Observer::connect(&fleet.url()).await.unwrap();
    let goal = Goal { limits: Some(limits.clone()), ..Goal::new(goal) };
    let census: Census = observer.count(goal).await.unwrap();
    Cost {
        wall: median(&mut times),
        server: (after.0 - before.0) / ROUNDS,
        orchestrators: (after.1 - before.1) / ROUNDS,
        agents: (after.2 - before.2) / ROUNDS,
        messages: census.of_work(),
        record_bytes: census.record.payload,
    }
}

/// What W costs on this fleet.
pub(crate) async fn of_w(fleet: &Fleet) -> Cost {
    let limits = RunLimits { max_width: 8, ..RunLimits::default() };
    of_run(fleet, "Work out the eight sums.", &limits).await
}
