//! `muster runs archive`: a run goes into a file, and is removed once that file was read again.

use muster_bus::Bus;
use serde_json::json;

use super::{export, import, remove, select};
use crate::args::ArchiveArgs;
use crate::exit::{Exit, Failure, usage};
use crate::output;

/// Exports and then deletes: whoever is killed in between has the run, its file, or both.
pub(super) async fn archive(bus: &Bus, args: &ArchiveArgs) -> Result<Exit, Failure> {
    let state = select::wanted(bus, &args.run).await?;
    let run = state.id;
    remove::check_removable(bus, &state).await?;
    std::fs::create_dir_all(&args.folder)
        .map_err(|error| usage!("cannot make the folder {}: {error}", args.folder.display()))?;
    let path = args.folder.join(format!("{run}.muster"));
    let written = export::to_file(bus, run, &path).await?;
    // What cannot be read again is no archive.
    import::read(&path)?;
    if !args.json {
        written.tell(&path)?;
    }
    if !args.yes
        && !remove::agreed(&format!("Remove run {} from the fleet?", run.short()), remove::NOT_ASKED)?
    {
        return Err(remove::not_agreed());
    }
    let rule = format!("muster runs archive {}", args.folder.display());
    let removed = remove::remove(bus, run, rule, None).await?;
    output::json_or_line(
        args.json,
        || json!({ "run": run, "exported": written.to_json(&path), "removed": removed }),
        || remove::in_words(run, &removed),
    )
}
