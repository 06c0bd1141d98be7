//! What grows with the number of runs that have ended long ago.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use muster_shared::run::Entry;
use muster_support::fleet::{Fleet, Folder, wait_until};
use muster_support::model_server::ModelServer;
use muster_support::past::fill;
use muster_support::process::consumption;
use muster_support::takeover::{self, Victim};
use muster_support::workload::{Speech, script};
use tokio::runtime::Runtime;

use super::cost::of_w;
use super::sizes;
use super::table::{Table, mib, ms};
use crate::print::median;
use crate::runs;

/// Runs in the store.
const PAST: [usize; 3] = [0, 1_000, 10_000];
/// How often a command is given; the median counts.
const ROUNDS: usize = 5;
/// Orchestrators killed.
const KILLS: usize = 5;

pub(crate) fn measure(wanted: &[usize]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let model = ModelServer::start(script(Duration::ZERO, Speech::Native)).unwrap();
    let entries = finished(&runtime);
    let headings = [
        "old runs",
        "on disk",
        "fleet up",
        "run offline",
        "muster ps",
        "muster runs",
        "orch. start",
        "CPU of it",
        "orch. memory",
        "server mem.",
        "W: wall",
        "W: CPU",
        "W: of orch.",
        "W: of server",
        "takeover p50",
        "max",
    ];
    let title = format!("beside old runs of {} entries each, default sync", entries.len());
    let table = Table::begin(&title, &headings);
    for past in sizes(wanted, &PAST) {
        let folder = with_past(&runtime, &entries, past);
        let copy = runs::folder();
        copy_all(&store(&folder), &store(&copy));
        let disk = disk(&folder);
        let began = Instant::now();
        let fleet = runs::fleet_in(folder, &model, &["--set", "server.sync_always=false"]);
        let up = began.elapsed();
        let start = start_orchestrator(&runtime, &fleet);
        let timed = |arguments: &[&str]| {
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                let began = Instant::now();
                fleet.folder().output(arguments).unwrap();
                times.push(began.elapsed());
            }
            ms(median(&mut times))
        };
        let asked = timed(&["run", "What is 6 * 7?", "--model", "offline", "--quiet"]);
        let (listed, runs) = (timed(&["ps"]), timed(&["runs"]));
        let cost = runtime.block_on(of_w(&fleet));
        let memory = |name: &str| mib(consumption(&[fleet.pid(name).unwrap()]).pss);
        let (orchestrator, server) = (memory("orchestrator-1"), memory("nats-server"));
        drop(fleet);
        let takeover = takeover::measure(copy, Victim::Orchestrator, KILLS).unwrap();
        table.line([
            past.to_string(),
            mib(disk),
            ms(up),
            asked,
            listed,
            runs,
            ms(start.took),
            ms(start.cpu),
            orchestrator,
            server,
            ms(cost.wall),
            ms(cost.server + cost.orchestrators + cost.agents),
            ms(cost.orchestrators),
            ms(cost.server),
            ms(takeover.percentile(50)),
            ms(takeover.percentile(100)),
        ]);
    }
}

/// The record of a run of two tasks.
fn finished(runtime: &Runtime) -> Vec<Entry> {
    let model = ModelServer::start(muster_support::workload::of_leaves(2)).unwrap();
    let fleet = runs::fleet(&model, &[]);
    runtime.block_on(async {
        let bus = runs::connect(&fleet.url()).await;
        // The first one brings everything up.
        runs::run(&bus, "Work out two sums.").await;
        runs::run(&bus, "Work out two sums.").await
    })
}

/// A folder whose store holds so many finished runs.
fn with_past(runtime: &Runtime, entries: &[Entry], past: usize) -> Folder {
    let folder = runs::folder();
    if past > 0 {
        let began = Instant::now();
        runtime.block_on(fill(&store(&folder), entries, past)).unwrap();
        // The keys that were made with them are not known to this user yet.
        folder.output(&["trust", "--yes"]).unwrap();
        eprintln!("{past} runs written in {} s", began.elapsed().as_secs());
    }
    folder
}

/// Where the server of a fleet keeps what it stores.
fn store(folder: &Folder) -> PathBuf {
    folder.path().join(".muster/nats")
}

/// Copies a folder with all that is in it, if it is there.
fn copy_all(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).into_iter().flatten().flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_all(&from, &to);
        } else {
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

/// Bytes of all files in the store.
fn disk(folder: &Folder) -> u64 {
    let mut left = vec![folder.path().join(".muster")];
    let mut bytes = 0;
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() { left.push(entry.path()) } else { bytes += meta.len() }
        }
    }
    bytes
}

/// The start of one more orchestrator.
struct Start {
    /// Until it is in the registry.
    took: Duration,
    /// CPU time that it used in its first seconds.
    cpu: Duration,
}

fn start_orchestrator(runtime: &Runtime, fleet: &Fleet) -> Start {
    let bus = runtime.block_on(runs::connect(&fleet.url()));
    let pids = || runtime.block_on(async { bus.registry().list().await.unwrap() });
    let mut command = fleet.folder().command(&["orchestrator"]);
    command.env("MUSTER_BUS_URL", fleet.url()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let mut child: Child = command.spawn().unwrap();
    let there = || pids().iter().any(|profile| profile.pid == child.id());
    wait_until("the orchestrator is there", Duration::from_secs(60), there).unwrap();
    let took = began.elapsed();
    // What it has still to read, it reads now.
    std::thread::sleep(Duration::from_secs(3));
    let cpu = consumption(&[child.id()]).cpu;
    child.kill().unwrap();
    child.wait().unwrap();
    Start { took, cpu }
}
