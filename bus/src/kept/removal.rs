//! Removing a run: noted first, then carried out piece by piece. Whoever is killed in between leaves a run that is told to be
//! removed, and whoever comes next goes on.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use muster_shared::ids::RunId;

use super::imported::record_object;
use super::{KeepNote, Kept, RemovalNote};
use crate::bus::now;
use crate::error::BusError;
use crate::files::Files;
use crate::places::Places;
use crate::record::{Record, RecordFilter, RecordLine};
use crate::store::{ListedObject, Store, hash};
use crate::topology::TASKS;

/// A body that was written so short a time ago may be about to be named by another run.
const NEW_BODY: Duration = Duration::from_secs(60);

/// Why a run cannot be removed.
const KEEPS_ALL: &str =
    "removing a run from a record that was set up without bus.removable, and so keeps all for good,";

/// What objects belong to one run alone are called, up to the run.
const OF_RUNS: [&str; 3] = ["file/", "result/", "snap/"];

/// How a run is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// By what: a setting and its value, or a command.
    pub rule: String,
    /// What is kept in its place; nothing where nothing is.
    pub summary: Option<Bytes>,
}

fn summary_object(run: RunId) -> String {
    format!("kept/{run}/summary")
}

impl Kept {
    /// The summary of a run whose record was removed; nothing where there is none, or another than was written.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn summary(&self, run: RunId) -> Result<Option<Bytes>, BusError> {
        let note = self.note(run).await?;
        let Some(named) = note.removed.and_then(|removed| removed.summary) else { return Ok(None) };
        let found = Store::new(&self.core).get(&summary_object(run)).await?;
        Ok(found.filter(|bytes| hash(bytes) == named))
    }

    /// Removes a run. Whether it has ended is for the caller to know.
    ///
    /// # Errors
    /// [`BusError::Unsupported`] where the record was set up to keep all for good; else when the bus fails, or
    /// this process may not do that.
    pub async fn remove(&self, run: RunId, removal: Removal) -> Result<RemovalNote, BusError> {
        self.check_removable(run).await?;
        let Removal { rule, summary } = removal;
        let filters = RecordFilter::Run(run).subjects();
        let here = self.core.scan_record(Some(run), &filters, &Places::default()).await?;
        let lines = if here.is_empty() { Record::new(&self.core).lines(run).await? } else { Vec::new() };
        let objects = self.objects_of(run).await?;
        let named = summary.as_deref().map(hash);
        let store = Store::new(&self.core);
        match summary {
            Some(summary) => store.put_named(&summary_object(run), summary).await?,
            None => store.delete(&summary_object(run)).await?,
        }
        let bytes_here: usize = here.iter().map(|stored| stored.message.payload.len()).sum();
        let note = RemovalNote {
            at: now(),
            rule,
            entries: (here.len() + lines.len()) as u64,
            places: here.first().zip(here.last()).map(|(first, last)| (first.seq, last.seq)),
            bytes: bytes_here as u64 + objects.iter().map(|object| object.bytes).sum::<u64>(),
            objects: objects.len() as u64,
            summary: named,
            done: false,
        };
        let begun = |before: KeepNote| {
            // What was removed of the streams stays noted: their gaps are told from losses by it.
            let (entries, places) = match before.removed {
                Some(removed) if note.places.is_none() => (removed.entries, removed.places),
                Some(_) | None => (note.entries, note.places),
            };
            KeepNote {
                kept: before.kept,
                imported: before.imported,
                removed: Some(RemovalNote { entries, places, ..note.clone() }),
            }
        };
        self.change(run, begun).await?;
        self.go_on_removing(run).await
    }

    /// Carries out what is noted to be removed of a run, from wherever it stopped.
    ///
    /// # Errors
    /// When the bus fails, or this process may not do that.
    pub async fn go_on_removing(&self, run: RunId) -> Result<RemovalNote, BusError> {
        self.check_removable(run).await?;
        // Bodies are named by the entries, which go last.
        self.remove_bodies(run).await?;
        let store = Store::new(&self.core);
        Files::new(&self.core).forget_list(run).await?;
        for object in self.objects_of(run).await? {
            store.delete(&object.name).await?;
        }
        self.core.backend.purge(TASKS, &format!("task.*.{run}.*")).await?;
        if Record::new(&self.core).counted_here(run).await? > 0 {
            let part = self.core.part_of(run).await?;
            // Without its decisions nothing is a run: they go last.
            for filter in [format!("evt.{run}.>"), format!("run.{run}.>")] {
                self.core.backend.purge(part.stream(), &part.subject(filter)).await?;
            }
        }
        let done = |before: KeepNote| {
            let removed = before.removed.map(|removed| RemovalNote { done: true, ..removed });
            KeepNote { kept: before.kept, imported: None, removed }
        };
        let gone = BusError::Conflict { what: format!("what is noted of run {}", run.short()) };
        self.change(run, done).await?.removed.ok_or(gone)
    }

    /// What came from elsewhere is no part of the record's streams, and can be removed from any fleet.
    async fn check_removable(&self, run: RunId) -> Result<(), BusError> {
        if Record::new(&self.core).counted_here(run).await? == 0 {
            return Ok(());
        }
        let part = self.core.part_of(run).await?;
        if self.core.backend.state(part.stream(), None).await?.keeps_all {
            return Err(BusError::Unsupported { what: KEEPS_ALL.to_owned() });
        }
        Ok(())
    }

    /// The objects that belong to a run alone.
    async fn objects_of(&self, run: RunId) -> Result<Vec<ListedObject>, BusError> {
        let listed = Store::new(&self.core).list("").await?;
        let record = record_object(run);
        let is_its =
            |name: &str| name == record || OF_RUNS.iter().any(|of| name.starts_with(&format!("{of}{run}/")));
        Ok(listed.into_iter().filter(|object| is_its(&object.name)).collect())
    }

    /// Removes the bodies that lie apart from the entries of a run, but for those that another run names as well.
    async fn remove_bodies(&self, run: RunId) -> Result<(), BusError> {
        let record = Record::new(&self.core);
        let mut bodies = bodies_of(&record.lines(run).await?);
        if bodies.is_empty() {
            return Ok(());
        }
        let mut others: BTreeSet<RunId> = record.runs().await?.into_iter().collect();
        let notes = self.all().await?;
        others.extend(notes.iter().filter(|(_, note)| note.imported.is_some()).map(|(other, _)| *other));
        others.remove(&run);
        for other in others {
            for named in bodies_of(&record.lines(other).await?) {
                bodies.remove(&named);
            }
        }
        let store = Store::new(&self.core);
        for object in store.list("").await?.into_iter().filter(|object| bodies.contains(&object.name)) {
            if now().since(object.at) > NEW_BODY {
                store.delete(&object.name).await?;
            }
        }
        Ok(())
    }
}

fn bodies_of(lines: &[RecordLine]) -> BTreeSet<String> {
    lines.iter().filter_map(RecordLine::body_apart).collect()
}
