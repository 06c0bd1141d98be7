//! What encryption costs: W on a fleet with TLS beside W on one without, by turns in one run.

use std::time::Duration;

use muster_bus::Bus;
use muster_support::figures::{Aim, Figure, Measured};
use muster_support::fleet::{Fleet, Folder};
use muster_support::model_server::ModelServer;
use muster_support::process::consumption;
use muster_support::workload::{Speech, script};

use crate::print::median;
use crate::runs;
use crate::workload::{WARM_UP, run};

/// Blocks of runs of each fleet, by turns: a machine that is disturbed disturbs both.
const BLOCKS: usize = 12;
/// Runs of a block, one after the other.
const ROUNDS: usize = 10;
/// Names the program of the fleet without TLS, such as one of before there were credentials; else that with it.
const BESIDE: &str = "MUSTER_BESIDE";

/// A fleet that is up, and what its runs took.
struct Side {
    fleet: Fleet,
    bus: Bus,
    pids: Vec<u32>,
    names: Vec<String>,
    /// CPU time of a run by process, of each block.
    blocks: Vec<Vec<Duration>>,
}

impl Side {
    async fn new(fleet: Fleet) -> Self {
        let (names, pids) = fleet.pids().into_iter().unzip();
        let bus = runs::connect(&fleet.url()).await;
        for _ in 0..WARM_UP {
            run(&bus).await;
        }
        Self { fleet, bus, pids, names, blocks: Vec::new() }
    }

    async fn block(&mut self) {
        let used = || self.pids.iter().map(|pid| consumption(&[*pid]).cpu).collect::<Vec<Duration>>();
        let before = used();
        for _ in 0..ROUNDS {
            run(&self.bus).await;
        }
        let rounds = u32::try_from(ROUNDS).unwrap();
        let shares = used().iter().zip(&before).map(|(after, before)| (*after - *before) / rounds).collect();
        self.blocks.push(shares);
    }

    fn whole(&self) -> Duration {
        median(&mut self.blocks.iter().map(|block| block.iter().sum()).collect::<Vec<Duration>>())
    }

    fn share(&self, at: usize) -> Duration {
        median(&mut self.blocks.iter().map(|block| block[at]).collect::<Vec<Duration>>())
    }

    fn of(&self, name: &str) -> Option<Duration> {
        self.names.iter().position(|known| known == name).map(|at| self.share(at))
    }
}

pub(crate) fn measure() -> Vec<Figure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = ModelServer::start(script(Duration::ZERO, Speech::Native)).unwrap();
    let beside = match std::env::var(BESIDE) {
        Ok(program) => Folder::new(&program).unwrap(),
        Err(_) => runs::folder(),
    };
    let (encrypted, plain) = runtime.block_on(async {
        let mut encrypted = Side::new(runs::fleet(&server, &["--tls"])).await;
        let mut plain = Side::new(runs::fleet_in(beside, &server, &[])).await;
        assert!(encrypted.fleet.url().starts_with("tls://") && plain.fleet.url().starts_with("nats://"));
        for block in 0..BLOCKS {
            // Whoever is second finds the machine as the first left it: each is so as often.
            let (first, second) =
                if block % 2 == 0 { (&mut encrypted, &mut plain) } else { (&mut plain, &mut encrypted) };
            first.block().await;
            second.block().await;
        }
        (encrypted, plain)
    });
    let whole = Figure::new("W with TLS: CPU per run, all processes", Measured::time(encrypted.whole()))
        .against("W without", Measured::time(plain.whole()))
        .aiming(Aim::TimesBare(1.1));
    let shares = encrypted.names.iter().enumerate().map(|(at, name)| {
        let figure = Figure::new(format!("  of which {name}"), Measured::time(encrypted.share(at)));
        match plain.of(name) {
            Some(other) => figure.against("without", Measured::time(other)),
            None => figure,
        }
    });
    std::iter::once(whole).chain(shares).collect()
}
