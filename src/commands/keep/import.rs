//! `muster runs import`: a run comes from a file.

use std::path::Path;

use muster_bus::{Bus, BusError, ImportedRecord, KeptMessage, Outside};
use serde_json::json;

use super::named;
use crate::app::now;
use crate::args::ImportArgs;
use crate::audit::signed::{AuditKeys, KeysOrigin};
use crate::audit::{Apart, Audit, AuditedRecord, Found, has_ended};
use crate::exit::{Exit, Failure, usage};
use crate::keeping::file::{ExportedRun, MOST_BYTES};
use crate::output;
use crate::render::figures;

/// Reads a run from a file.
pub(super) async fn import(bus: &Bus, args: &ImportArgs) -> Result<Exit, Failure> {
    let exported = read(&args.file)?;
    check(&exported, &args.file)?;
    let ExportedRun { run, entries, files, objects, documents, keys, .. } = exported;
    check_new(bus, run).await?;
    let record = ImportedRecord { run, keys, lines: entries };
    let counts = (files.len() as u64, objects.len() as u64);
    let outside = Outside { files, objects: objects.into_iter().collect() };
    let imported = bus.kept().import(&record, outside, now()).await.map_err(|error| match error {
        BusError::TooLarge { .. } => {
            Failure::from(error).help("an archive whose log is larger cannot be imported")
        }
        error => error.into(),
    })?;
    let (files, objects) = counts;
    if args.json {
        output::json(&json!({
            "run": run, "entries": imported.entries, "files": files, "objects": objects, "documents": documents,
            "documents_included": false,
        }))?;
    } else {
        if documents.is_some() {
            output::note("its documents did not come with it: a fork needs them, see `muster fork --docs`");
        }
        output::line!(
            "imported {} with {} entries and {}; `muster show {}` shows it, `muster audit` says whether it is as it was written",
            named(run),
            figures::count(imported.entries),
            figures::plural(files, "file"),
            run.short()
        )?;
    }
    Ok(Exit::Completed)
}

/// Reads a file, and looks at all of it.
pub(super) fn read(path: &Path) -> Result<ExportedRun, Failure> {
    let cannot = |error: std::io::Error| usage!("cannot read {}: {error}", path.display());
    let about = std::fs::metadata(path).map_err(cannot)?;
    if !about.is_file() {
        return Err(usage!("{} is no file", path.display()));
    }
    if about.len() > MOST_BYTES {
        return Err(usage!(
            "{} has {}, and {} is the most",
            path.display(),
            figures::bytes(about.len()),
            figures::bytes(MOST_BYTES)
        ));
    }
    let bytes = std::fs::read(path).map_err(cannot)?;
    ExportedRun::read(&bytes).map_err(|wrong| {
        usage!("{} is not an exported run: {wrong}", path.display())
            .help("`muster runs export RUN -o FILE` writes one")
    })
}

/// A record that does not fit its own chain, or has no end, is not taken.
fn check(exported: &ExportedRun, path: &Path) -> Result<(), Failure> {
    let refused = |why: String| usage!("{} is not taken: {why}", path.display());
    let messages: Vec<KeptMessage> =
        exported.entries.iter().map(|line| line.to_kept().map_err(refused)).collect::<Result<_, _>>()?;
    if has_ended(&messages) == Some(false) {
        return Err(refused("the run in it has not ended".to_owned()));
    }
    let keys = exported.keys.clone().map(|trust| AuditKeys { trust, origin: KeysOrigin::Claimed });
    let record = AuditedRecord { messages: &messages, keys: keys.as_ref(), missing: None };
    let audit = Audit::of(exported.run, &record, Apart::default());
    match &audit.found {
        Found::Fits(_) | Found::NoChain { .. } => Ok(()),
        Found::Misfit { .. } => {
            let said = crate::render::audit::lines(&audit).join("; ");
            Err(refused(figures::one_line(&said, 400))
                .help("somebody changed its record, or put it together anew"))
        }
    }
}

/// A run that is here already is not written over.
async fn check_new(bus: &Bus, run: muster_shared::ids::RunId) -> Result<(), Failure> {
    let here = bus.record().counted_here(run).await?;
    let note = bus.kept().note(run).await?;
    if note.removed.as_ref().is_some_and(|removed| !removed.done) {
        return Err(usage!("{} is being removed here, and that was cut short", named(run))
            .help("`muster gc` finishes it; import the run then"));
    }
    if here == 0 && note.imported.is_none() {
        return Ok(());
    }
    Err(usage!("{} is here already", named(run)).help(format!("`muster show {}` shows it", run.short())))
}
