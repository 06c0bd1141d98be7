//! `muster fork`: begins a run from where another one stood.

use muster_bus::Bus;
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{Inherited, Origin, RunState, apply};
use muster_shared::wire::{Command, Encoding};
use serde_json::json;
use uuid::Uuid;

use super::run::{self, Wanted};
use super::select;
use crate::app::App;
use crate::args::ForkArgs;
use crate::exit::{Exit, Failure, failed, usage};
use crate::output;

/// Begins the new run and waits for its end, or only names it.
pub(super) async fn fork(app: &App, args: ForkArgs) -> Result<Exit, Failure> {
    let mut args = args;
    args.model = args.model.or(run::model_of_fork(app)?);
    if let Some(model) = &args.model {
        super::models::check(app, model)?;
    }
    if args.detach {
        let bus = app.connect("asker").await?;
        let run = begin(&bus, &args).await?;
        return tell(&args, run);
    }
    let wanted =
        Wanted { output: args.output.clone(), json: args.json, quiet: args.quiet, ..Wanted::default() };
    run::wait_for(app, &wanted, async |bus, _, _| begin(bus, &args).await).await
}

/// Asks for the new run, after a look at whether there can be one.
pub(crate) async fn begin(bus: &Bus, args: &ForkArgs) -> Result<RunId, Failure> {
    let from = Origin::new(select::run(bus, &args.run).await?, Seq(args.at));
    check(bus, from).await?;
    let run = RunId::from_uuid(Uuid::now_v7());
    let command = Command::Fork { run, from, model: args.model.clone() };
    bus.commands().send(&command, Encoding::default()).await?;
    Ok(run)
}

/// What cannot be forked is better said here than on the record of a run that fails at once.
async fn check(bus: &Bus, from: Origin) -> Result<(), Failure> {
    let entries = select::entries(bus, from.run).await?;
    let (first, last) = match (entries.first(), entries.last()) {
        (Some(first), Some(last)) => (first.seq, last.seq),
        _ => (Seq(0), Seq(0)),
    };
    let short = from.run.short();
    if !(first..=last).contains(&from.at) {
        return Err(usage!("run {short} has no entry {}", from.at).help(format!(
            "its entries are among {first} to {last}; the first column of `muster trace {short}` has their numbers"
        )));
    }
    let mut state: Option<RunState> = None;
    for entry in entries.iter().filter(|entry| entry.seq <= from.at) {
        apply(&mut state, entry)
            .map_err(|error| failed!("the record of run {} cannot be followed: {error}", from.run.short()))?;
    }
    match state.as_ref().map(Inherited::of) {
        Some(Some(_)) | None => Ok(()),
        Some(None) => Err(usage!("run {short} had ended at entry {}", from.at)
            .help("fork it at an earlier entry; the first column of `muster trace` has their numbers")),
    }
}

fn tell(args: &ForkArgs, run: RunId) -> Result<Exit, Failure> {
    output::json_or_line(
        args.json,
        || json!({ "run": run, "status": "asked" }),
        || format!("asked for run {run}; `muster trace {} --follow` shows how it goes on", run.short()),
    )
}
