//! `muster runs export`: a run that has ended goes into a file.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use muster_agents::react::declaration::referred_to;
use muster_bus::{Bus, RecordLine};
use muster_shared::ids::RunId;
use muster_shared::run::RunState;
use serde_json::json;

use super::{named, select};
use crate::app::now;
use crate::args::ExportArgs;
use crate::commands::run::{check_output, write};
use crate::exit::{Exit, Failure, failed, usage};
use crate::keeping::file::{ExportedRun, MOST_BYTES, file_object};
use crate::output;
use crate::render::figures;

/// What was written, and what was left out.
pub(super) struct Written {
    run: RunId,
    bytes: u64,
    entries: u64,
    objects: u64,
    files: u64,
    /// Objects that the run names and that are not in the store any more, but for those without which it cannot be read.
    left_out: Vec<String>,
    documents: Option<String>,
    children: usize,
}

/// Writes a run to a file.
pub(super) async fn export(bus: &Bus, args: &ExportArgs) -> Result<Exit, Failure> {
    check_output(Some(&args.output))?;
    let run = select::run(bus, &args.run).await?;
    let written = to_file(bus, run, &args.output).await?;
    if args.json {
        output::json(&written.to_json(&args.output))?;
    } else {
        written.tell(&args.output)?;
    }
    Ok(Exit::Completed)
}

/// Reads a run as it stands and writes it, in one move.
pub(super) async fn to_file(bus: &Bus, run: RunId, path: &Path) -> Result<Written, Failure> {
    let (entries, missing) = select::whole(bus, run).await?;
    if let Some(missing) = missing {
        return Err(failed!("{} is damaged and not exported: {missing}", named(run))
            .help("`muster audit RUN --export FILE` writes what is left of its record"));
    }
    let state = select::fold(run, &entries)?;
    check_ended(&state)?;
    let lines = bus.record().lines(run).await?;
    let mut gathered = Gathered::default();
    for body in lines.iter().filter_map(RecordLine::body_apart) {
        gathered.needed(bus, &body).await?;
    }
    for declared in referred_to(&entries, None) {
        gathered.wished(bus, declared).await?;
    }
    for result in bus.store().list(&format!("result/{run}/")).await? {
        gathered.wished(bus, result.name).await?;
    }
    let files = bus.files().list(run).await?.files;
    for file in &files {
        gathered.needed(bus, &file_object(run, &file.hash)).await?;
    }
    let imported = bus.kept().imported(run).await?;
    let keys = match imported {
        Some(imported) => imported.keys,
        None => bus.signatures().fleet(),
    };
    let documents = state.goal.corpus.as_ref().map(|corpus| corpus.id.clone());
    let Gathered { objects, left_out, .. } = gathered;
    let counts = (lines.len() as u64, objects.len() as u64, files.len() as u64);
    let exported = ExportedRun {
        run,
        exported_at: now(),
        entries: lines,
        files,
        objects,
        documents: documents.clone(),
        keys,
    };
    let text = exported.write().map_err(|error| failed!("the run cannot be written as JSON: {error}"))?;
    check_size(text.len() as u64)?;
    write(path, &text, "the run")?;
    let (entries, objects, files) = counts;
    let (bytes, children) = (text.len() as u64, state.children.len());
    Ok(Written { run, bytes, entries, objects, files, left_out, documents, children })
}

/// An open run would come to nothing elsewhere: who has its tasks is here, and its secret is of use as long as it is open.
pub(super) fn check_ended(state: &RunState) -> Result<(), Failure> {
    if state.status.is_ended() {
        return Ok(());
    }
    let short = state.id.short();
    Err(usage!("run {short} has not ended").help(format!(
        "wait for its end (`muster trace {short} --follow`), or end it with `muster cancel {short}`"
    )))
}

fn check_size(bytes: u64) -> Result<(), Failure> {
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(failed!(
        "the file would have {}, and {} is the most",
        figures::bytes(bytes),
        figures::bytes(MOST_BYTES)
    )
    .help("`muster audit RUN --export FILE` writes the record alone"))
}

/// Objects as they are gathered.
#[derive(Default)]
struct Gathered {
    objects: BTreeMap<String, Bytes>,
    left_out: Vec<String>,
    bytes: u64,
}

impl Gathered {
    /// Without it the run cannot be read elsewhere.
    async fn needed(&mut self, bus: &Bus, name: &str) -> Result<(), Failure> {
        if self.fetched(bus, name).await? {
            return Ok(());
        }
        Err(failed!("object {name} of the run is not in the store any more: it is not exported"))
    }

    /// Without it, some of what can be shown is missing.
    async fn wished(&mut self, bus: &Bus, name: String) -> Result<(), Failure> {
        if !self.fetched(bus, &name).await? {
            self.left_out.push(name);
        }
        Ok(())
    }

    async fn fetched(&mut self, bus: &Bus, name: &str) -> Result<bool, Failure> {
        if self.objects.contains_key(name) {
            return Ok(true);
        }
        let Some(bytes) = bus.store().get(name).await? else { return Ok(false) };
        self.bytes += bytes.len() as u64;
        check_size(self.bytes)?;
        self.objects.insert(name.to_owned(), bytes);
        Ok(true)
    }
}

impl Written {
    /// What whoever reads it has to know.
    fn notes(&self) -> Vec<String> {
        let documents = self.documents.as_ref().map(|manifest| {
            format!("its documents are not in the file (manifest {})", figures::cut(manifest, 13))
        });
        let children = (self.children > 0).then(|| {
            let runs = figures::plural(self.children as u64, "run");
            format!(
                "{runs} within it, which have records of their own, are not in the file: export them as well"
            )
        });
        let left_out = (!self.left_out.is_empty()).then(|| {
            let objects = figures::plural(self.left_out.len() as u64, "object");
            format!("{objects} that it names are not in the store any more: declared tools, or results that were cut")
        });
        [documents, children, left_out].into_iter().flatten().collect()
    }

    /// Prints them, and what was written.
    pub(super) fn tell(&self, path: &Path) -> Result<(), Failure> {
        self.notes().iter().for_each(|note| output::note(note));
        output::line!(
            "wrote run {} to {}: {} entries, {} and {} of the object store, {}",
            self.run.short(),
            path.display(),
            figures::count(self.entries),
            figures::plural(self.files, "file"),
            figures::plural(self.objects, "object"),
            figures::bytes(self.bytes)
        )
    }

    pub(super) fn to_json(&self, path: &Path) -> serde_json::Value {
        json!({
            "run": self.run, "file": path, "bytes": self.bytes, "entries": self.entries, "files": self.files,
            "objects": self.objects, "left_out": self.left_out, "documents": self.documents,
            "documents_included": false, "runs_within": self.children,
        })
    }
}
