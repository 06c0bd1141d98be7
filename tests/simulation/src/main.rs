//! Runs many seeds, or one with its whole history.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use muster_simulation::{Broken, Fault, Options, Summary, run, run_explained};

/// How often progress is shown.
const BEAT: Duration = Duration::from_secs(2);
/// How many of the last lines of a history are shown, unless all are asked for.
const LINES: usize = 300;

/// Simulates fleets under faults, one history for each seed, and checks the rules after every entry of the record.
#[derive(Debug, Parser)]
#[command(name = "muster-simulation")]
struct Args {
    /// Run this seed alone, and show its history if a rule is broken.
    #[arg(long)]
    seed: Option<u64>,
    /// Show the history of the seed in full, whether or not a rule is broken.
    #[arg(long, requires = "seed")]
    history: bool,
    /// How many seeds to run.
    #[arg(long, default_value_t = 2000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Random fleets on a network without faults: roles are missing, agents are broken, slow or lying.
    #[arg(long)]
    fleets: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.seed {
        Some(seed) => one(seed, args.history, args.options()),
        None => many(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) | Err(_) => ExitCode::FAILURE,
    }
}

impl Args {
    fn options(&self) -> Options {
        Options { fleets: self.fleets, ..Options::default() }
    }
}

/// Whether every rule held.
fn one(seed: u64, history: bool, options: Options) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    if history {
        return match run(seed, Options { traced: true, ..options }) {
            Ok(summary) => {
                writeln!(out, "seed {seed}: {} entries, every rule held", summary.entries).map(|()| true)
            }
            Err(broken) => explain(&mut out, &broken, usize::MAX, options).map(|()| false),
        };
    }
    match run_explained(seed, options) {
        Ok(summary) => {
            let Summary { entries, events, faults, .. } = summary;
            let faults = faults.total();
            writeln!(
                out,
                "seed {seed}: {entries} entries, {events} events, {faults} faults, every rule held"
            )?;
            Ok(true)
        }
        Err(broken) => explain(&mut out, &broken, LINES, options).map(|()| false),
    }
}

fn explain(out: &mut impl Write, broken: &Broken, lines: usize, options: Options) -> io::Result<()> {
    let left_out = broken.history.len().saturating_sub(lines);
    if left_out > 0 {
        writeln!(out, "({left_out} lines before these: see --history)")?;
    }
    for line in &broken.history[left_out..] {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "seed {} breaks:", broken.seed)?;
    for rule in &broken.rules {
        writeln!(out, "  {rule}")?;
    }
    let fleets = if options.fleets { "--fleets " } else { "" };
    writeln!(out, "again: cargo run -p muster-simulation -- {fleets}--seed {}", broken.seed)
}

/// What all seeds of a thread came to.
#[derive(Default)]
struct Total {
    entries: u64,
    events: u64,
    turns: u64,
    late_turns: u64,
    faults: muster_simulation::Faults,
    ended: [u64; 3],
    decided: BTreeMap<&'static str, u64>,
    broken: Vec<Broken>,
}

impl Total {
    fn take(&mut self, seed: u64, options: Options) {
        match run(seed, options) {
            Ok(summary) => self.add(&summary),
            Err(broken) => self.broken.push(*broken),
        }
    }

    fn add(&mut self, summary: &Summary) {
        self.entries += summary.entries;
        self.events += summary.events;
        self.turns += summary.turns;
        self.late_turns = self.late_turns.max(summary.late_turns);
        self.faults.add(&summary.faults);
        for (all, one) in self.ended.iter_mut().zip(summary.ended) {
            *all += one;
        }
        for (name, count) in &summary.decided {
            *self.decided.entry(name).or_default() += count;
        }
    }

    fn join(&mut self, other: Self) {
        let Self { entries, events, turns, late_turns, faults, ended, decided, broken } = other;
        self.add(&Summary { entries, events, turns, late_turns, faults, ended, decided });
        self.broken.extend(broken);
    }
}

fn many(args: &Args) -> io::Result<bool> {
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(args.from);
    let (end, over) = (args.from + args.seeds, AtomicBool::new(false));
    let mut total = Total::default();
    std::thread::scope(|scope| {
        let work = || {
            let mut mine = Total::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end || !mine.broken.is_empty() {
                    return mine;
                }
                mine.take(seed, args.options());
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        scope.spawn(|| progress(args, &next, &over));
        for worker in workers {
            total.join(worker.join().unwrap_or_default());
        }
        over.store(true, Ordering::Relaxed);
    });
    report(args, &total, begun.elapsed())
}

fn progress(args: &Args, next: &AtomicU64, over: &AtomicBool) {
    let mut said = Instant::now();
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        if said.elapsed() >= BEAT {
            said = Instant::now();
            let done = (next.load(Ordering::Relaxed) - args.from).min(args.seeds);
            // Whoever does not want to read it loses nothing.
            let _unread = writeln!(io::stderr(), "{done} of {} seeds", args.seeds);
        }
    }
}

fn report(args: &Args, total: &Total, took: Duration) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    let seconds = took.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = args.seeds as f64 / seconds.max(0.001);
    let [completed, failed, stopped] = total.ended;
    for fault in Fault::ALL {
        writeln!(out, "{:>10}  {}", total.faults.of(fault), fault.name())?;
    }
    let (seeds, entries, events, faults) = (args.seeds, total.entries, total.events, total.faults.total());
    writeln!(out, "{seeds} seeds, {entries} entries of the record, {events} events, {faults} faults")?;
    writeln!(out, "{} turns, at most {} of one run after the last fault", total.turns, total.late_turns)?;
    writeln!(out, "runs: {completed} completed, {failed} failed, {stopped} stopped")?;
    for (name, count) in &total.decided {
        writeln!(out, "{count:>10}  {name}")?;
    }
    writeln!(out, "{seconds:.1} s, {rate:.0} seeds/s")?;
    for broken in &total.broken {
        if let Err(broken) = run_explained(broken.seed, args.options()) {
            explain(&mut out, &broken, LINES, args.options())?;
        }
    }
    Ok(total.broken.is_empty())
}
