//! The yardstick workload W against the scripted model server.

use std::time::{Duration, Instant};

use muster_bus::Bus;
use muster_shared::flow::RunLimits;
use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use muster_support::bare::model_loop;
use muster_support::fleet::Fleet;
use muster_support::model_server::ModelServer;
use muster_support::process::consumption;
use muster_support::workload::{CALLS_IN_A_ROW, Speech, script};

use crate::print::{Figure, median, mib, ms, ratio};
use crate::runs::{self, connect, run_with};

/// How long the slow model takes for each answer.
const DELAY: Duration = Duration::from_millis(50);
/// Runs one after the other.
const ROUNDS: usize = 30;
/// Runs before any count.
const WARM_UP: usize = 5;
/// Runs at once.
const CROWD: usize = 32;

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

fn fast_model(runtime: &tokio::runtime::Runtime, server: &ModelServer, sync_always: bool) -> Vec<Figure> {
    let fleet = fleet(server, sync_always);
    let processes = fleet.pids();
    let pids: Vec<u32> = processes.iter().map(|(_, pid)| *pid).collect();
    let name = if sync_always { "sync always" } else { "default sync" };
    runtime.block_on(async {
        let bus = connect(&fleet.url()).await;
        for _ in 0..WARM_UP {
            run(&bus).await;
        }
        let before = consumption(&pids);
        let each_before: Vec<Duration> = pids.iter().map(|pid| consumption(&[*pid]).cpu).collect();
        let mut entries = 0;
        for _ in 0..ROUNDS {
            entries = entries.max(run(&bus).await.len());
        }
        let rounds = u32::try_from(ROUNDS).unwrap();
        let cpu = (consumption(&pids).cpu - before.cpu) / rounds;
        let shares = processes.iter().zip(each_before).map(|((name, pid), before)| {
            Figure::plain(&format!("  of which {name}"), ms((consumption(&[*pid]).cpu - before) / rounds))
        });
        let shares: Vec<Figure> = shares.collect();
        let began = Instant::now();
        futures::future::join_all((0..CROWD).map(|_| run(&bus))).await;
        let crowd = u32::try_from(CROWD).unwrap();
        let each = began.elapsed() / crowd;
        let rate = 1.0 / each.as_secs_f64();
        let memory = consumption(&pids).pss;
        let bare = bare(server, runtime_of_one());

        let (cpu_aim, cpu_most) = if sync_always { ("<= 20 ms", 20) } else { ("<= 14 ms", 14) };
        let (rate_aim, rate_least) = if sync_always { (">= 25 /s", 25.0) } else { (">= 60 /s", 60.0) };
        let mut figures = vec![
            Figure::new(
                &format!("W: CPU per run, all processes, {name}"),
                ms(cpu),
                cpu_aim,
                cpu <= Duration::from_millis(cpu_most),
            )
            .against(format!("bare loop, nothing kept ({})", ms(bare.cpu)), ratio(cpu, bare.cpu)),
            Figure::new(
                &format!("W: {CROWD} runs at once, {name}"),
                format!("{rate:.1} runs/s"),
                rate_aim,
                rate >= rate_least,
            )
            .against(format!("bare loop ({:.1} runs/s)", bare.rate), rate / bare.rate),
        ];
        figures.splice(1..1, shares);
        if sync_always {
            figures.push(Figure::new(
                "W: memory of the whole fleet (PSS) after that",
                mib(memory),
                "<= 100 MiB",
                memory <= 100 * 1024 * 1024,
            ));
            figures.push(Figure::new(
                "W: record entries of a run, at most",
                entries.to_string(),
                "<= 90",
                entries <= 90,
            ));
        }
        figures
    })
}

fn slow_model(runtime: &tokio::runtime::Runtime, server: &ModelServer) -> Vec<Figure> {
    let fleet = fleet(server, true);
    let ideal = DELAY * u32::try_from(CALLS_IN_A_ROW).unwrap();
    let (mut whole, mut steps) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        let bus = connect(&fleet.url()).await;
        for round in 0..WARM_UP + ROUNDS / 2 {
            let began = Instant::now();
            let entries = run(&bus).await;
            if round >= WARM_UP {
                whole.push(began.elapsed());
                steps.extend(own_times(&entries));
            }
        }
    });
    let client = reqwest::Client::new();
    let endpoint = server.openai_url();
    let mut bare = Vec::new();
    runtime.block_on(async {
        for _ in 0..ROUNDS / 2 {
            let began = Instant::now();
            model_loop::run(&client, &endpoint).await.unwrap();
            bare.push(began.elapsed());
        }
    });
    let (whole, own) = (median(&mut whole), median(&mut steps));
    let over = whole.saturating_sub(ideal);
    let bare_over = median(&mut bare).saturating_sub(ideal);
    vec![
        Figure::new(
            "W at 50 ms a call: over the ideal of 350 ms",
            ms(over),
            "<= 20 ms",
            over <= Duration::from_millis(20),
        )
        .against(format!("bare loop, over the ideal ({})", ms(bare_over)), ratio(over, bare_over)),
        Figure::new(
            "own time per ReAct step, journaled, median (W at 50 ms)",
            ms(own),
            "<= 2 ms",
            own <= Duration::from_millis(2),
        ),
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
async fn run(bus: &Bus) -> Vec<Entry> {
    let limits = RunLimits { max_width: 8, ..RunLimits::default() };
    run_with(bus, "Work out the eight sums.", limits).await
}

struct Bare {
    cpu: Duration,
    rate: f64,
}

fn runtime_of_one() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The bare loop on a thread of its own, so that its CPU time can be told from the model server's.
fn bare(server: &ModelServer, runtime: tokio::runtime::Runtime) -> Bare {
    let endpoint = server.openai_url();
    let work = move || {
        let client = reqwest::Client::new();
        let runs = |count: usize| {
            runtime.block_on(async {
                futures::future::join_all((0..count).map(|_| model_loop::run(&client, &endpoint))).await
            })
        };
        runs(CROWD);
        let (began, before) = (Instant::now(), thread_cpu());
        for run in runs(CROWD) {
            run.unwrap();
        }
        let crowd = u32::try_from(CROWD).unwrap();
        let each = began.elapsed() / crowd;
        Bare { cpu: (thread_cpu() - before) / crowd, rate: 1.0 / each.as_secs_f64() }
    };
    std::thread::spawn(work).join().unwrap()
}

fn thread_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}
