//! Many runs at once, over one orchestrator and over four.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use muster_bus::RecordFilter;
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::RecordEvent;
use muster_support::model_server::ModelServer;
use muster_support::process::consumption;
use muster_support::workload::{Speech, script};

use super::sizes;
use super::table::{Table, mib, ms};
use crate::print::median;
use crate::runs::{connect, fleet, together};

/// Runs at once.
const RUNS: [usize; 1] = [1_000];
/// Orchestrators that share them.
const ORCHESTRATORS: [usize; 2] = [1, 4];
/// How long the model takes for each answer.
const DELAY: Duration = Duration::from_millis(200);

pub(crate) fn measure(wanted: &[usize]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let model = ModelServer::start(script(DELAY, Speech::Native)).unwrap();
    let headings = [
        "runs",
        "orchestrators",
        "all ended",
        "runs/s",
        "median",
        "slowest",
        "CPU per run",
        "server memory",
        "of an orchestr.",
        "runs of each",
    ];
    let table = Table::begin("runs of W at once, 200 ms a call, default sync", &headings);
    let all = sizes(wanted, &RUNS).into_iter();
    for (runs, orchestrators) in all.flat_map(|runs| ORCHESTRATORS.map(|orchestrators| (runs, orchestrators)))
    {
        let scale = format!("orchestrator={orchestrators}");
        let mut settings = vec!["--scale", &scale, "--set", "server.sync_always=false"];
        settings.extend(["--set", "orchestrator.max_runs=1000", "--set", "orchestrator.max_waiting=2000"]);
        settings.extend(["--set", "agent.slots.worker=64", "--scale", "worker=2"]);
        let fleet = fleet(&model, &settings);
        let processes = fleet.pids();
        let all: Vec<u32> = processes.iter().map(|(_, pid)| *pid).collect();
        let memory = |kind: &str| {
            let members = processes.iter().filter(|(name, _)| name.starts_with(kind));
            members.map(|(_, pid)| consumption(&[*pid]).pss).max().unwrap_or(0)
        };
        let (before, began) = (consumption(&all).cpu, Instant::now());
        let (mut times, took, shares) = runtime.block_on(async {
            let bus = connect(&fleet.url()).await;
            let times = together(&bus, runs).await;
            let took = began.elapsed();
            let entries = bus.record().read(&RecordFilter::AllDecisions, Seq(0)).await.unwrap();
            let mut authors: BTreeMap<RunId, AgentId> = BTreeMap::new();
            for entry in entries {
                if let RecordEvent::Decided(decided) = entry.event {
                    authors.insert(entry.run, decided.by);
                }
            }
            let mut shares: BTreeMap<AgentId, usize> = BTreeMap::new();
            authors.into_values().for_each(|by| *shares.entry(by).or_default() += 1);
            (times, took, shares)
        });
        let count = u32::try_from(runs).unwrap();
        let (cpu, slowest) = ((consumption(&all).cpu - before) / count, times.iter().max().copied());
        let shares: Vec<String> = shares.values().map(ToString::to_string).collect();
        table.line([
            runs.to_string(),
            orchestrators.to_string(),
            ms(took),
            format!("{:.1}", f64::from(count) / took.as_secs_f64()),
            ms(median(&mut times)),
            ms(slowest.unwrap_or_default()),
            ms(cpu),
            mib(memory("nats-server")),
            mib(memory("orchestrator")),
            shares.join(" "),
        ]);
    }
}
