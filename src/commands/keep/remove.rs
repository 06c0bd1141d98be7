//! `muster runs delete`, and what all that removes runs has in common.

use std::io::IsTerminal;

use bytes::Bytes;
use muster_bus::{Bus, BusError, Removal, RemovalNote};
use muster_shared::ids::RunId;
use muster_shared::run::RunState;
use serde_json::json;

use super::{export, named, select};
use crate::args::DeleteArgs;
use crate::exit::{Exit, Failure, usage};
use crate::output;
use crate::render::figures;

/// How nothing is asked.
pub(super) const NOT_ASKED: &str = "--yes does not ask";

/// Removes all of a run.
pub(super) async fn delete(bus: &Bus, args: &DeleteArgs) -> Result<Exit, Failure> {
    let run = select::any(bus, &args.run).await?;
    let note = bus.kept().note(run).await?;
    let question = match note.gone() {
        // Its summary goes as well.
        Some(removed) if removed.done => format!("Remove the summary of run {}?", run.short()),
        Some(_) => format!("Finish the removal of run {}?", run.short()),
        None => {
            let state = select::state(bus, run).await?;
            check_removable(bus, &state).await?;
            format!("Remove run {} ({}) for good?", run.short(), figures::one_line(&state.goal.text, 60))
        }
    };
    if !args.yes && !agreed(&question, NOT_ASKED)? {
        return Err(not_agreed());
    }
    let removed = remove(bus, run, "muster runs delete".to_owned(), None).await?;
    output::json_or_line(args.json, || json!({ "run": run, "removed": removed }), || in_words(run, &removed))
}

/// Removes a run, leaving a summary or none.
pub(super) async fn remove(
    bus: &Bus,
    run: RunId,
    rule: String,
    summary: Option<Bytes>,
) -> Result<RemovalNote, Failure> {
    bus.kept().remove(run, Removal { rule, summary }).await.map_err(cannot_remove)
}

/// Why nothing could be removed, and what to do.
pub(super) fn cannot_remove(error: BusError) -> Failure {
    match error {
        BusError::Unsupported { .. } => Failure::failed(error).help(
            "a fleet whose record is set up with bus.removable = true can remove runs: `muster runs export` and `import` take \
             those that you want there",
        ),
        error => error.into(),
    }
}

/// Neither a run that has not ended is removed, nor one that another waits for.
pub(super) async fn check_removable(bus: &Bus, state: &RunState) -> Result<(), Failure> {
    export::check_ended(state)?;
    let Some(parent) = &state.goal.parent else { return Ok(()) };
    let entries = select::entries(bus, parent.run).await?;
    if entries.is_empty() || select::fold(parent.run, &entries)?.status.is_ended() {
        return Ok(());
    }
    Err(usage!(
        "run {} belongs to {} of run {}, which has not ended",
        state.id.short(),
        parent.task,
        parent.run.short()
    )
    .help("remove it when that one has ended"))
}

/// Whether the person at the terminal says yes; where there is none, nobody does.
pub(in crate::commands) fn agreed(question: &str, help: &str) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    output::note!("{question} [y/N]");
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| usage!("the answer cannot be read: {error}").help(help))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

pub(super) fn not_agreed() -> Failure {
    usage!("nothing was removed: nobody said yes").help(NOT_ASKED)
}

pub(super) fn in_words(run: RunId, removed: &RemovalNote) -> String {
    format!(
        "removed {}: {} entries of its record, {} of the object store, {}",
        named(run),
        figures::count(removed.entries),
        figures::plural(removed.objects, "object"),
        figures::bytes(removed.bytes)
    )
}
