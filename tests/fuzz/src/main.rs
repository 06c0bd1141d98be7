//! Runs the fuzzers, each in a process of its own, side by side.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use muster_fuzz::{Figures, Finding, Kind, Plan, Target, fuzz, keep, minimise, targets, try_one};
use nix::sys::resource::{Resource, setrlimit};
use serde_json::{Value, json};

/// How much address space one target may use, in bytes: reading 64 KiB takes no memory without bounds.
const MEMORY: u64 = 2 << 30;

/// Fuzzes every door, prints a line for each, and keeps what it finds under tests/fuzz/found.
#[derive(Debug, Parser)]
#[command(name = "muster-fuzz")]
struct Args {
    /// Only these targets; all when none is named.
    targets: Vec<String>,
    /// Seconds for each target.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The seed; another each time when absent.
    #[arg(long)]
    seed: Option<u64>,
    /// Targets that run at the same time; as many as there are processors when absent.
    #[arg(long)]
    threads: Option<usize>,
    /// Print the names of the targets.
    #[arg(long)]
    list: bool,
    /// Try the input in this file on the one target.
    #[arg(long)]
    input: Option<PathBuf>,
    /// Run the one target in this process, and print what came of it as JSON.
    #[arg(long, hide = true)]
    alone: bool,
    /// Write each input to this file before it is tried.
    #[arg(long, hide = true)]
    tried: Option<PathBuf>,
}

fn main() -> ExitCode {
    match perform(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Whoever does not want to read it loses nothing.
            let _unread = writeln!(io::stderr(), "{error}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing was found.
fn perform(args: &Args) -> io::Result<bool> {
    let mut chosen = Vec::new();
    for name in &args.targets {
        let known = targets::ALL.iter().copied().find(|target| target.name == name);
        chosen.push(known.ok_or_else(|| io::Error::other(format!("there is no target {name}: see --list")))?);
    }
    if chosen.is_empty() {
        chosen = targets::ALL.to_vec();
    }
    if args.list {
        let mut out = io::stdout().lock();
        return chosen.iter().try_for_each(|target| writeln!(out, "{}", target.name)).map(|()| true);
    }
    let seed = args.seed.unwrap_or_else(by_the_clock);
    match (&args.input, chosen.as_slice()) {
        (Some(path), [target]) => try_file(target, path),
        (Some(_), _) => Err(io::Error::other("name the one target that the input is for")),
        (None, [target]) if args.alone => alone(target, args, seed),
        (None, _) => side_by_side(&chosen, args, seed),
    }
}

fn by_the_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::from(since.subsec_nanos()))
}

fn limit_memory() -> io::Result<()> {
    setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY).map_err(io::Error::from)
}

fn try_file(target: &'static Target, path: &Path) -> io::Result<bool> {
    limit_memory()?;
    let found = try_one(target, std::fs::read(path)?)?;
    let mut out = io::stdout().lock();
    match &found {
        Some(finding) => writeln!(out, "{:?}: {}", finding.kind, finding.what)?,
        None => writeln!(out, "nothing is wrong")?,
    }
    Ok(found.is_none())
}

/// Runs a target here. What is found is made small here too, unless it never comes back.
fn alone(target: &'static Target, args: &Args, seed: u64) -> io::Result<bool> {
    limit_memory()?;
    let time = Some(Duration::from_secs(args.seconds));
    let mut figures = fuzz(target, Plan { seed, executions: None, time, tried: args.tried.clone() })?;
    for finding in
        figures.findings.iter_mut().filter(|finding| matches!(finding.kind, Kind::Broken | Kind::Panicked))
    {
        let sort = finding.sort();
        let same = |tried: &[u8]| {
            try_one(target, tried.to_vec()).is_ok_and(|found| found.is_some_and(|found| found.sort() == sort))
        };
        finding.input = minimise(&finding.input, same);
    }
    let found: Vec<Value> = figures
        .findings
        .iter()
        .map(|Finding { kind, what, input }| json!({ "kind": format!("{kind:?}"), "what": what, "input": hex::encode(input) }))
        .collect();
    let Figures { executions, read, refusals, slowest, .. } = &figures;
    let told = json!({
        "executions": executions, "read": read, "refusals": refusals, "slowest_ms": slowest.as_millis(), "found": found,
    });
    writeln!(io::stdout(), "{told}")?;
    // A thread that hangs ends with the process.
    std::process::exit(i32::from(!figures.findings.is_empty()));
}

/// What a process said of its target.
#[derive(Debug, Default)]
struct Told {
    executions: u64,
    read: u64,
    refusals: u64,
    slowest_ms: u64,
    found: Vec<Found>,
}

#[derive(Debug)]
struct Found {
    what: String,
    input: Vec<u8>,
}

fn side_by_side(chosen: &[&'static Target], args: &Args, seed: u64) -> io::Result<bool> {
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let mut out = io::stdout();
    writeln!(out, "seed {seed}, {} s for each of {} targets", args.seconds, chosen.len())?;
    writeln!(
        out,
        "{:<18} {:>12} {:>10} {:>7} {:>9} {:>9}  findings",
        "target", "executions", "per s", "read", "refusals", "slowest"
    )?;
    let (next, clean) = (AtomicUsize::new(0), Mutex::new(Ok(true)));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(target) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let told = in_process(target, args.seconds, seed)
                        .and_then(|told| report(target, &told, args.seconds));
                    let mut clean = clean.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    *clean = match (told, std::mem::replace(&mut *clean, Ok(true))) {
                        (Ok(now), Ok(before)) => Ok(now && before),
                        (Err(error), _) | (_, Err(error)) => Err(error),
                    };
                }
            });
        }
    });
    clean.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs a target in a process of its own. One that dies is run again by the same seed, with each input kept beforehand.
fn in_process(target: &'static Target, seconds: u64, seed: u64) -> io::Result<Told> {
    let (status, told) = run_process(target, seconds, seed, None)?;
    if let Some(told) = told {
        return Ok(told);
    }
    if status.code() == Some(2) {
        return Err(io::Error::other(format!(
            "{} cannot be run: see `muster-fuzz {0} --alone`",
            target.name
        )));
    }
    let kept = tempfile::NamedTempFile::new()?;
    let (again, _) = run_process(target, seconds * 4, seed, Some(kept.path()))?;
    let input = std::fs::read(kept.path())?;
    let dies = |tried: &[u8]| {
        let written =
            tempfile::NamedTempFile::new().and_then(|file| std::fs::write(file.path(), tried).map(|()| file));
        written
            .and_then(|file| process(target).arg("--input").arg(file.path()).status())
            .is_ok_and(|status| status.code().is_none())
    };
    let what = if dies(&input) {
        format!("the process died: {again}")
    } else {
        format!("the process died ({status}), and not again")
    };
    let input = if what.ends_with("again") { input } else { minimise(&input, dies) };
    Ok(Told { found: vec![Found { what, input }], ..Told::default() })
}

fn process(target: &Target) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "muster-fuzz".into()));
    command.arg(target.name).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn run_process(
    target: &Target,
    seconds: u64,
    seed: u64,
    tried: Option<&Path>,
) -> io::Result<(ExitStatus, Option<Told>)> {
    let mut command = process(target);
    command.args(["--alone", "--seconds", &seconds.to_string(), "--seed", &seed.to_string()]);
    if let Some(tried) = tried {
        command.arg("--tried").arg(tried);
    }
    let output = command.stdout(Stdio::piped()).output()?;
    let said: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    Ok((output.status, said.map(|said| told(&said))))
}

fn told(said: &Value) -> Told {
    let number = |name: &str| said[name].as_u64().unwrap_or(0);
    let found = said["found"].as_array().into_iter().flatten().map(|found| Found {
        what: format!(
            "{}: {}",
            found["kind"].as_str().unwrap_or_default(),
            found["what"].as_str().unwrap_or_default()
        ),
        input: hex::decode(found["input"].as_str().unwrap_or_default()).unwrap_or_default(),
    });
    Told {
        executions: number("executions"),
        read: number("read"),
        refusals: number("refusals"),
        slowest_ms: number("slowest_ms"),
        found: found.collect(),
    }
}

/// Prints what came of a target; whether nothing was found.
fn report(target: &Target, told: &Told, seconds: u64) -> io::Result<bool> {
    let Told { executions, read, refusals, slowest_ms, found } = told;
    let share = (read * 100).checked_div(*executions).unwrap_or(0);
    let rate = executions.checked_div(seconds).unwrap_or(*executions);
    let mut lines = format!(
        "{:<18} {executions:>12} {rate:>10} {share:>5} % {refusals:>9} {slowest_ms:>6} ms  {}\n",
        target.name,
        found.len()
    );
    for Found { what, input } in found {
        let path = keep(target.name, input)?;
        let what: String = what.chars().take(600).collect();
        lines.push_str(&format!("    {what:?}\n    {}\n", path.display()));
    }
    io::stdout().write_all(lines.as_bytes())?;
    Ok(found.is_empty())
}
