//! `muster fork`: begins a run from where another one stood.

use muster_agents::host::BusBlobs;
use muster_bus::Bus;
use muster_corpus::{CorpusId, check_stored};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{Inherited, Origin, RunState, apply};
use muster_shared::wire::{Command, Encoding};
use serde_json::json;
use uuid::Uuid;

use super::run::documents;
use super::run::screen::Screen;
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
        let screen = Screen::new(app.paint_notes(), args.quiet || args.json);
        let run = send_and_begin(app, &bus, &args, &screen).await?;
        return tell(&args, run);
    }
    let wanted =
        Wanted { output: args.output.clone(), json: args.json, quiet: args.quiet, ..Wanted::default() };
    run::wait_for(app, &wanted, async |bus, screen, _| send_and_begin(app, bus, &args, screen).await).await
}

async fn send_and_begin(app: &App, bus: &Bus, args: &ForkArgs, screen: &Screen) -> Result<RunId, Failure> {
    let sent = match args.docs.is_empty() {
        true => None,
        false => Some(documents::send(app, bus, &args.docs, screen).await?.corpus.id),
    };
    begin(bus, args, sent).await
}

/// Asks for the new run, after a look at whether there can be one. `sent` is the id of documents that were given again.
pub(crate) async fn begin(bus: &Bus, args: &ForkArgs, sent: Option<String>) -> Result<RunId, Failure> {
    let from = Origin::new(select::run(bus, &args.run).await?, Seq(args.at));
    if let Some(state) = check(bus, from).await? {
        check_documents(bus, &state, sent).await?;
    }
    let run = RunId::from_uuid(Uuid::now_v7());
    let command = Command::Fork { run, from, model: args.model.clone() };
    bus.commands().send(&command, Encoding::default()).await?;
    Ok(run)
}

/// What cannot be forked is better said here than on the record of a run that fails at once.
async fn check(bus: &Bus, from: Origin) -> Result<Option<RunState>, Failure> {
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
        Some(Some(_)) | None => Ok(state),
        Some(None) => Err(usage!("run {short} had ended at entry {}", from.at)
            .help("fork it at an earlier entry; the first column of `muster trace` has their numbers")),
    }
}

/// Refuses a fork whose documents are not stored, or that was given others.
async fn check_documents(bus: &Bus, state: &RunState, sent: Option<String>) -> Result<(), Failure> {
    let (short, wanted) = (state.id.short(), state.goal.corpus.as_ref().map(|corpus| &corpus.id));
    if sent.as_ref().is_some_and(|sent| wanted != Some(sent)) {
        return Err(usage!("these are not the documents of run {short}")
            .help("give the files of that run, unchanged; `muster run --docs` starts a run with others"));
    }
    let Some(wanted) = wanted else { return Ok(()) };
    let stored = async { check_stored(&CorpusId::parse(wanted)?, &BusBlobs(bus.store())).await };
    stored.await.map_err(|error| {
        usage!("the documents of run {short} are not stored here: {error}")
            .help("give them again: `muster fork` with `--docs FOLDER`")
    })
}

fn tell(args: &ForkArgs, run: RunId) -> Result<Exit, Failure> {
    output::json_or_line(
        args.json,
        || json!({ "run": run, "status": "asked" }),
        || format!("asked for run {run}; `muster trace {} --follow` shows how it goes on", run.short()),
    )
}
