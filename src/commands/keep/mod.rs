//! What is done to whole runs: exported, imported, kept, deleted, archived; and `muster gc`.

mod archive;
mod export;
mod gc;
mod gone;
mod import;
mod remove;

use muster_bus::{Bus, KeepNote};
use muster_shared::ids::RunId;
use serde_json::json;

pub(super) use self::gc::gc;
pub(crate) use self::gone::{Gone, removed, tell_removed};
pub(super) use self::gone::{is_there, shown, summaries};
pub(super) use self::remove::agreed;
use super::select;
use crate::app::App;
use crate::args::{KeepArgs, RunsAction};
use crate::exit::{Exit, Failure};
use crate::output;

/// Does what is asked for a run.
pub(super) async fn perform(app: &App, action: &RunsAction) -> Result<Exit, Failure> {
    select::reading(app, async |bus| match action {
        RunsAction::Export(args) => Box::pin(export::export(bus, args)).await,
        RunsAction::Import(args) => Box::pin(import::import(bus, args)).await,
        RunsAction::Keep(args) => Box::pin(keep(bus, args)).await,
        RunsAction::Delete(args) => Box::pin(remove::delete(bus, args)).await,
        RunsAction::Archive(args) => Box::pin(archive::archive(bus, args)).await,
    })
    .await
}

/// Marks a run, or takes the mark away.
async fn keep(bus: &Bus, args: &KeepArgs) -> Result<Exit, Failure> {
    let run = select::run(bus, &args.run).await?;
    let kept = !args.off;
    let mark = |before: KeepNote| KeepNote { kept, ..before };
    bus.kept().change(run, mark).await?;
    let short = run.short();
    let in_words = || {
        if kept {
            format!("run {short} is kept: nothing of it is removed by age")
        } else {
            format!("run {short} is kept as long as the settings keep.* say")
        }
    };
    output::json_or_line(args.json, || json!({ "run": run, "kept": kept }), in_words)
}

/// What is said of a run that an earlier step of the same command found.
fn named(run: RunId) -> String {
    format!("run {}", run.short())
}
