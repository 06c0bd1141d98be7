//! The yardstick workload W against the scripted model server.

use std::time::{Duration, Instant};

use muster_bus::Bus;
use muster_shared::flow::RunLimits;
use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use muster_support::bare::broker;
use muster_support::figures::{Aim, Figure, Measured};
use muster_support::fleet::Fleet;
use muster_support::model_server::ModelServer;
use muster_support::process::consumption;
use muster_support::workload::{CALLS_IN_A_ROW, Speech, script};
use tokio::runtime::Runtime;

use crate::bare::{self, Bare};
use crate::print::median;
use crate::runs::{self, connect, run_with};

/// How long the slow model takes for each answer.
const DELAY: Duration = Duration::from_millis(50);
/// Blocks of runs, each followed by its bare counterpart: a machine that is disturbed disturbs both.
const BLOCKS: usize = 3;
/// Runs of a block, one after the other.
const ROUNDS: usize = 10;
/// Runs before any count.
pub(crate) const WARM_UP: usize = 5;
/// Runs at once.
const CROWD: usize = 32;
/// Rounds of so many runs at once of the bare loop.
const BARE_ROUNDS: usize = 8;
/// Bare round trips to the broker.
const BARE_TRIPS: usize = 200;

pub(crate) fn measure() -> Vec<Figure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let at_once = ModelServer::start(script(Duration::ZERO, Speech::Native)).unwrap();
    let slow = ModelServer::start(script(DELAY, Speech::Native)).unwrap();
    let mut figures = Vec::new();
    for sync_always in [true, false] {
        figures.extend(fast_model(&runtime, &at_once, sync_always));
    }
    figures.extend(slow_model(&runtime, &slow));
    figures
}

fn fleet(server: &ModelServer, sync_always: bool) -> Fleet {
    runs::fleet(server, &["--set", &format!("server.sync_always={sync_always}")])
}

/// What a block of runs took.
struct Block {
    /// CPU time of a run.
    cpu: Duration,
    /// The same by process.
    shares: Vec<Duration>,
    /// Runs a second, many at once.
    rate: f64,
    bare: Bare,
}

fn fast_model(runtime: &Runtime, server: &ModelServer, sync_always: bool) -> Vec<Figure> {
    let fleet = fleet(server, sync_always);
    let (names, pids): (Vec<String>, Vec<u32>) = fleet.pids().into_iter().unzip();
    let blocks: Vec<Block> = runtime.block_on(async {
        let bus = connect(&fleet.url()).await;
        for _ in 0..WARM_UP {
            run(&bus).await;
        }
        let mut blocks = Vec::new();
        for _ in 0..BLOCKS {
            blocks.push(block(&bus, server, &pids).await);
        }
        blocks
    });
    let memory = consumption(&pids).pss;
    let name = if sync_always { "sync always" } else { "default sync" };
    let time = |of: &dyn Fn(&Block) -> Duration| median(&mut blocks.iter().map(of).collect::<Vec<_>>());
    let rate = |of: fn(&Block) -> f64| {
        let mut rates: Vec<f64> = blocks.iter().map(of).collect();
        rates.sort_by(f64::total_cmp);
        Measured::rate(rates[rates.len() / 2])
    };
    let (cpu_aim, rate_aim) = if sync_always { (40.0, 25.0) } else { (30.0, 40.0) };
    let mut figures = vec![
        Figure::new(
            format!("W: CPU per run, all processes, {name}"),
            Measured::time(time(&|block| block.cpu)),
        )
        .against("bare loop, nothing kept", Measured::time(time(&|block| block.bare.cpu)))
        .aiming(Aim::AtMost(cpu_aim)),
    ];
    figures.extend(names.iter().enumerate().map(|(at, process)| {
        Figure::new(format!("  of which {process}, {name}"), Measured::time(time(&|block| block.shares[at])))
    }));
    figures.push(
        Figure::new(format!("W: {CROWD} runs at once, {name}"), rate(|block| block.rate))
            .against("bare loop", rate(|block| block.bare.rate))
            .aiming(Aim::AtLeast(rate_aim)),
    );
    if sync_always {
        figures.push(
            Figure::new("W: memory of the whole fleet (PSS) after that", Measured::memory(memory))
                .aiming(Aim::AtMost(90.0)),
        );
    }
    figures
}

async fn block(bus: &Bus, server: &ModelServer, pids: &[u32]) -> Block {
    let used = || pids.iter().map(|pid| consumption(&[*pid]).cpu).collect::<Vec<Duration>>();
    let before = used();
    for _ in 0..ROUNDS {
        run(bus).await;
    }
    let rounds = u32::try_from(ROUNDS).unwrap();
    let shares: Vec<Duration> =
        used().iter().zip(&before).map(|(after, before)| (*after - *before) / rounds).collect();
    let began = Instant::now();
    futures::future::join_all((0..CROWD).map(|_| run(bus))).await;
    let each = began.elapsed() / u32::try_from(CROWD).unwrap();
    let bare = bare::measure(server, CROWD, BARE_ROUNDS);
    Block { cpu: shares.iter().sum(), shares, rate: 1.0 / each.as_secs_f64(), bare }
}

fn slow_model(runtime: &Runtime, server: &ModelServer) -> Vec<Figure> {
    let fleet = fleet(server, true);
    let ideal = DELAY * u32::try_from(CALLS_IN_A_ROW).unwrap();
    let (mut whole, mut steps) = (Vec::new(), Vec::new());
    let (mut bare, mut trips, mut writes) = runtime.block_on(async {
        let bus = connect(&fleet.url()).await;
        for round in 0..WARM_UP + 2 * ROUNDS {
            let began = Instant::now();
            let entries = run(&bus).await;
            if round >= WARM_UP {
                whole.push(began.elapsed());
                steps.extend(own_times(&entries));
            }
        }
        let bare = bare::one_by_one(server, ROUNDS).await;
        let trips = broker::task_round_trips(&fleet.url(), BARE_TRIPS).await.unwrap();
        (bare, trips, broker::durable_publishes(&fleet.url(), BARE_TRIPS).await.unwrap())
    });
    let over = |times: &mut [Duration]| Measured::time(median(times).saturating_sub(ideal));
    vec![
        Figure::new("W at 50 ms a call: over the ideal of 350 ms", over(&mut whole))
            .against("bare JetStream task round trip", Measured::time(median(&mut trips)))
            .aiming(Aim::AtMost(25.0)),
        Figure::new("W at 50 ms a call: a run", Measured::time(median(&mut whole)))
            .against("bare loop", Measured::time(median(&mut bare))),
        Figure::new(
            "own time per ReAct step, journaled, median (W at 50 ms)",
            Measured::time(median(&mut steps)),
        )
        .against("bare durable write", Measured::time(median(&mut writes)))
        .aiming(Aim::AtMost(1.5)),
    ]
}

/// The own time per step of each leaf: from its `started` to its outcome, less what the model took, by steps. By the
/// broker's stamps, so that journaling is in it.
fn own_times(entries: &[Entry]) -> Vec<Duration> {
    let mut times = Vec::new();
    for entry in entries {
        let RecordEvent::Agent(key, AgentEvent::Outcome(outcome)) = &entry.event else { continue };
        let started = entries.iter().find_map(|other| match &other.event {
            RecordEvent::Agent(found, AgentEvent::Started(_)) if found == key => Some(other.at),
            _ => None,
        });
        let steps = u32::try_from(outcome.steps.len()).unwrap_or(1).max(1);
        if let (Some(started), true) = (started, steps > 1) {
            times.push(entry.at.since(started).saturating_sub(DELAY * steps) / steps);
        }
    }
    times
}

/// One run of W; gives its record.
pub(crate) async fn run(bus: &Bus) -> Vec<Entry> {
    let limits = RunLimits { max_width: 8, ..RunLimits::default() };
    run_with(bus, "Work out the eight sums.", limits).await
}
