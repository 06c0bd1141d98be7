//! W on two fleets in turn, so that a machine that is disturbed disturbs both: what one costs more than the other.

use std::time::Duration;

use muster_bus::Bus;
use muster_support::figures::{Figure, Measured};
use muster_support::fleet::{Fleet, Folder};
use muster_support::model_server::ModelServer;
use muster_support::process::consumption;
use muster_support::workload::{Speech, script};
use tokio::runtime::Runtime;

use crate::print::median;
use crate::runs::{connect, fleet_in, folder};
use crate::workload::{WARM_UP, run};

/// Blocks of runs of each fleet.
const BLOCKS: usize = 8;
/// Runs of a block, one after the other.
const ROUNDS: u32 = 15;

/// Another build, which `MUSTER_BESIDE` names, and this one.
pub(crate) fn measure() -> Vec<Figure> {
    let Ok(other) = std::env::var("MUSTER_BESIDE") else { return Vec::new() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = ModelServer::start(script(Duration::ZERO, Speech::Native)).unwrap();
    let here = fleet_in(folder(), &server, &[]);
    let there = fleet_in(Folder::new(&other).unwrap(), &server, &[]);
    let [here, there] = in_turn(&runtime, [(&here, &here.pids()), (&there, &there.pids())]);
    figures("W: CPU per run, this build", "the other build", &here, &there)
}

/// The CPU time of a run by process: medians of the blocks.
pub(crate) type Shares = Vec<(String, Duration)>;

/// The whole against the other's, then each process against the same one of the other.
pub(crate) fn figures(what: &str, against: &str, here: &Shares, there: &Shares) -> Vec<Figure> {
    let whole = |shares: &Shares| Measured::time(shares.iter().map(|(_, time)| *time).sum());
    let mut figures = vec![Figure::new(what, whole(here)).against(against, whole(there))];
    figures.extend(here.iter().map(|(name, time)| {
        let figure = Figure::new(format!("  of which {name}, beside"), Measured::time(*time));
        let same = there.iter().find(|(other, _)| other == name);
        same.map_or(figure.clone(), |(_, time)| figure.against("the same", Measured::time(*time)))
    }));
    figures
}

/// W on both, with the processes that count for each.
pub(crate) fn in_turn(runtime: &Runtime, fleets: [(&Fleet, &[(String, u32)]); 2]) -> [Shares; 2] {
    let mut times = fleets.map(|(_, pids)| vec![Vec::new(); pids.len()]);
    runtime.block_on(async {
        let [(one, _), (other, _)] = fleets;
        let buses: [Bus; 2] = [connect(&one.url()).await, connect(&other.url()).await];
        for bus in &buses {
            for _ in 0..WARM_UP {
                run(bus).await;
            }
        }
        for _ in 0..BLOCKS {
            for (at, (_, pids)) in fleets.iter().enumerate() {
                let used = || pids.iter().map(|(_, pid)| consumption(&[*pid]).cpu).collect::<Vec<Duration>>();
                let before = used();
                for _ in 0..ROUNDS {
                    run(&buses[at]).await;
                }
                let took = used().into_iter().zip(before).map(|(after, before)| (after - before) / ROUNDS);
                times[at].iter_mut().zip(took).for_each(|(times, took)| times.push(took));
            }
        }
    });
    let shares = |(pids, times): (&[(String, u32)], &mut Vec<Vec<Duration>>)| {
        pids.iter().zip(times).map(|((name, _), times)| (name.clone(), median(times))).collect()
    };
    let [one, other] = &mut times;
    [shares((fleets[0].1, one)), shares((fleets[1].1, other))]
}
