//! `muster bench`: torments a fleet of its own, in a folder of its own, and measures what comes of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use muster_bus::server::find_binary;
use muster_support::chaos::{ChaosResult, Ordeal, Progress, Servers, Spread, Targets};
use muster_support::good_model::measure::{self, Measure, Measured};
use muster_support::good_model::weak::{Nature, WeakModel};
use muster_support::good_model::{GoodModel, Temper};
use muster_support::growth;
use muster_support::model_server::{ModelServer, Script};

use crate::app::App;
use crate::args::{Bench, BenchArgs, BenchServers};
use crate::eval::{Row, summaries};
use crate::exit::{Exit, Failure, failed};
use crate::fleet::process::own_program;
use crate::output;
use crate::render::{eval as eval_text, figures, ordeal};
use crate::signals::StopSignals;

/// Measures.
pub(super) async fn bench(app: &App, args: &BenchArgs) -> Result<Exit, Failure> {
    match &args.what {
        &Bench::Chaos { runs, shapes, first, keep, at_once, servers, seed, json } => {
            let first = first as usize;
            let servers = match servers {
                BenchServers::One => Servers::One,
                BenchServers::Three => Servers::Three,
            };
            let shapes = match servers {
                Servers::One => shapes as usize,
                Servers::Three => 1,
            };
            let ordeal =
                Ordeal { servers, shapes, first, keep, ..ordeal(app, runs, at_once, seed, Targets::All)? };
            let verdict = undergo(ordeal).await?;
            if json {
                output::json(&verdict)?;
            } else {
                output::text(&ordeal::report(&verdict))?;
            }
            Ok(if verdict.is_good() { Exit::Completed } else { Exit::Failed })
        }
        &Bench::Steps { steps, json } => many_steps(app, steps, json).await,
        &Bench::Recovery { kills, json } => recovery(app, kills, json).await,
        &Bench::Model { mistakes, seed, weak } => {
            let script = if weak {
                WeakModel::new(Nature { slips: mistakes, seed, ..Nature::default() }).script()
            } else {
                GoodModel::new(Temper { mistakes, seed }).script()
            };
            model(script).await
        }
        Bench::Eval { suite, mistakes, seed, repeat, compare, json } => {
            let temper = Temper { mistakes: *mistakes, seed: *seed };
            let mut arguments = vec!["--repeat".to_owned(), repeat.to_string()];
            arguments.extend(compare.iter().flat_map(|one| ["--compare".to_owned(), one.clone()]));
            let (program, server) = programs(app)?;
            let measure = Measure { program, server: Some(server), suite: found(suite), arguments, temper };
            eval(measure, *json).await
        }
    }
}

/// Serves the scripted model until somebody stops it.
async fn model(script: Script) -> Result<Exit, Failure> {
    let cannot = |error: std::io::Error| failed!("cannot serve the model: {error}");
    let mut stop = StopSignals::listen()?;
    let server = ModelServer::start(script.keeping(0)).map_err(cannot)?;
    output::line!("OPENAI_BASE_URL={} OPENAI_API_KEY=sk-any", server.openai_url())?;
    stop.wait().await;
    output::note!("answered {} requests", server.completed());
    Ok(Exit::Completed)
}

/// A suite's file is named from where we are; the fleet has a folder of its own.
fn found(suite: &str) -> String {
    let file = Path::new(suite);
    let is_file = file.is_file();
    std::path::absolute(file)
        .ok()
        .filter(|_| is_file)
        .map_or_else(|| suite.to_owned(), |file| file.display().to_string())
}

/// A suite asked of the scripted model that answers in good faith.
async fn eval(measure: Measure, json: bool) -> Result<Exit, Failure> {
    let failed = |error: String| failed!("the suite cannot be measured: {error}");
    let work = move || measure::measure(&measure);
    let measured = tokio::task::spawn_blocking(work).await.map_err(|error| failed(error.to_string()))?;
    let Measured { status, results, made, violations } =
        measured.map_err(|error| failed(error.to_string()))?;
    let made: BTreeMap<String, usize> =
        made.iter().map(|(kind, times)| (format!("{kind:?}"), *times)).collect();
    if json {
        output::json(&serde_json::json!({ "results": results, "mistakes": made, "violations": violations }))?;
    } else {
        let rows: Vec<Row> =
            serde_json::from_value(results["rows"].clone()).map_err(|error| failed(error.to_string()))?;
        output::line(&eval_text::results(&summaries(&rows), &rows))?;
        if !made.is_empty() {
            let told = figures::list(made.iter().map(|(kind, times)| format!("{kind} {times}")));
            output::line!("\nmistakes of the model: {told}")?;
        }
        violations.iter().for_each(|violation| output::note(violation));
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(Exit::Failed, Exit::of))
}

async fn recovery(app: &App, kills: u32, json: bool) -> Result<Exit, Failure> {
    let mut rows: Vec<(&str, Spread, ChaosResult)> = Vec::new();
    for (what, targets) in [
        ("kill -9 of an agent, until its task runs elsewhere", Targets::Agents),
        ("kill -9 of an orchestrator, until its runs are decided upon again", Targets::Orchestrators),
        ("kill -9 of nats-server, until the next entry of the record", Targets::Server),
    ] {
        let kills = kills as usize;
        let verdict = undergo(Ordeal { kills, ..ordeal(app, 1, 8, 1, targets)? }).await?;
        let spread = match targets {
            Targets::All | Targets::Agents => {
                rows.push((what, verdict.recovery.agent, verdict.clone()));
                let offers = "the same, until what was offered and not started then runs";
                rows.push((offers, verdict.recovery.offer, verdict));
                continue;
            }
            Targets::Orchestrators => verdict.recovery.orchestrator,
            Targets::Server => verdict.recovery.server,
        };
        rows.push((what, spread, verdict));
    }
    if json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(what, spread, verdict)| serde_json::json!({ "what": what, "spread": spread, "verdict": verdict }))
            .collect();
        output::json(&rows)?;
    } else {
        output::text(&ordeal::recovery_table(&rows))?;
    }
    let good = rows.iter().all(|(_, _, verdict)| verdict.is_good());
    Ok(if good { Exit::Completed } else { Exit::Failed })
}

/// Steps at each end of a long task that are compared.
const ENDS: usize = 100;

async fn many_steps(app: &App, steps: u32, json: bool) -> Result<Exit, Failure> {
    let (program, server) = programs(app)?;
    let steps = steps as usize;
    let work = move || growth::measure(&program, Some(&server), steps, ENDS);
    let failed = |error: String| failed!("the steps benchmark failed: {error}");
    let grown = tokio::task::spawn_blocking(work).await.map_err(|error| failed(error.to_string()))?;
    let grown = grown.map_err(|error| failed(error.to_string()))?;
    if json {
        output::json(&grown)?;
    } else {
        output::text(&ordeal::growth(&grown))?;
    }
    Ok(Exit::Completed)
}

/// This program, and the nats-server for the fleets that it torments.
fn programs(app: &App) -> Result<(String, String), Failure> {
    let program = own_program().map_err(|error| failed!("this program cannot be found on disk: {error}"))?;
    let server = crate::fleet::server_program::of(app)?.map_or_else(find_binary, Ok);
    let server = server.map_err(|error| {
        Failure::bus(error).help("install it with deploy/install-nats.sh, or set MUSTER_NATS_SERVER")
    })?;
    Ok((program.display().to_string(), server.display().to_string()))
}

fn ordeal(app: &App, runs: u32, at_once: u32, seed: u64, targets: Targets) -> Result<Ordeal, Failure> {
    let (program, server) = programs(app)?;
    Ok(Ordeal {
        program,
        server: Some(server),
        servers: Servers::One,
        targets,
        runs: runs as usize,
        kills: 0,
        shapes: 1,
        first: 0,
        keep: false,
        at_once: at_once as usize,
        seed,
    })
}

/// Undergoes it on a thread of its own; Ctrl-C ends it early, and the fleet with it.
async fn undergo(ordeal: Ordeal) -> Result<ChaosResult, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = StopSignals::listen()?.into_token();
    let watch = tokio::spawn({
        let stop = Arc::clone(&stop);
        async move {
            stopped.cancelled().await;
            output::note("stopping: the fleet ends, and what was seen so far is judged");
            stop.store(true, Ordering::Relaxed);
        }
    });
    let (runs, kills) = (ordeal.runs, ordeal.kills);
    let tell = move |Progress { ended, faults }| {
        output::note(&match kills {
            0 => format!("{ended} of {runs} runs ended, {faults} processes killed or frozen"),
            _ => format!("{ended} runs ended, {faults} of {kills} processes killed"),
        });
    };
    let verdict = tokio::task::spawn_blocking(move || ordeal.undergo(&stop, tell)).await;
    watch.abort();
    let failed = |error: String| failed!("the chaos test failed: {error}");
    verdict.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
}
