//! The record of a run that came from elsewhere: an object with a line for each message.

use std::fmt::Write as _;

use bytes::Bytes;
use muster_shared::flow::Artifact;
use muster_shared::ids::RunId;
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};

use super::{ImportNote, Kept};
use crate::backend::Stored;
use crate::bus::Core;
use crate::credentials::signing::Trust;
use crate::error::BusError;
use crate::files::Files;
use crate::places::Places;
use crate::record::RecordLine;
use crate::store::{Store, hash};
use crate::subject::matches;

/// The record of a run as it was elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedRecord {
    /// The run.
    pub run: RunId,
    /// The public keys of the fleet that it comes from, as its file claims.
    pub keys: Option<Trust>,
    /// Its messages.
    pub lines: Vec<RecordLine>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    run: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Trust>,
}

/// What of a run is not in its record, and travels with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    /// The list of its files.
    pub files: Vec<Artifact>,
    /// Objects, by name.
    pub objects: Vec<(String, Bytes)>,
}

impl ImportedRecord {
    fn to_bytes(&self) -> Result<Bytes, BusError> {
        let head = Head { run: self.run, keys: self.keys.clone() };
        let mut text = serde_json::to_string(&head)?;
        for line in &self.lines {
            // Writing to a text does not fail.
            let _ = write!(text, "\n{}", serde_json::to_string(line)?);
        }
        Ok(text.into())
    }

    fn of_bytes(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let mut lines = text.lines();
        let head = lines.next().ok_or("it is empty")?;
        let Head { run, keys } = serde_json::from_str(head).map_err(|error| error.to_string())?;
        let lines = lines.map(serde_json::from_str).collect::<Result<_, _>>();
        Ok(Self { run, keys, lines: lines.map_err(|error: serde_json::Error| error.to_string())? })
    }
}

pub(super) fn record_object(run: RunId) -> String {
    format!("kept/{run}/record")
}

/// The record of a run that came from elsewhere; nothing where it did not.
async fn imported(core: &std::sync::Arc<Core>, run: RunId) -> Result<Option<ImportedRecord>, BusError> {
    let note = Kept::new(core).note(run).await?;
    let Some(came) = &note.imported else { return Ok(None) };
    let unreadable = |reason: String| BusError::Other {
        what: format!("the record of run {}, which was imported,", run.short()),
        reason,
    };
    let Some(bytes) = Store::new(core).get(&record_object(run)).await? else {
        if note.gone().is_some() {
            return Ok(None);
        }
        return Err(unreadable("it is not in the object store any more".to_owned()));
    };
    if hash(&bytes) != came.hash {
        return Err(unreadable("somebody changed it since it came".to_owned()));
    }
    ImportedRecord::of_bytes(&bytes).map(Some).map_err(unreadable)
}

impl Core {
    /// All messages of a run on the filters, of the streams of the record or, where they have none of it, as they came from
    /// elsewhere.
    pub(crate) async fn scan_run(
        self: &std::sync::Arc<Self>,
        run: RunId,
        filters: &[String],
        after: &Places,
    ) -> Result<Vec<Stored>, BusError> {
        let stored = self.scan_record(Some(run), filters, after).await?;
        if !stored.is_empty() {
            return Ok(stored);
        }
        let Some(imported) = imported(self, run).await? else { return Ok(stored) };
        let after = after.in_part(self.part_of(run).await?);
        let wanted = |line: &&RecordLine| {
            line.seq > after && filters.iter().any(|filter| matches(filter, &line.subject))
        };
        let read = |line: &RecordLine| {
            line.to_stored().map_err(|reason| BusError::Unreadable {
                seq: line.seq,
                subject: line.subject.clone(),
                reason,
            })
        };
        imported.lines.iter().filter(wanted).map(read).collect()
    }
}

impl Kept {
    /// The record of a run that came from elsewhere; nothing where it did not.
    ///
    /// # Errors
    /// When it cannot be read, or the bus fails.
    pub async fn imported(&self, run: RunId) -> Result<Option<ImportedRecord>, BusError> {
        imported(&self.core, run).await
    }

    /// Keeps the record of a run from elsewhere, with what belongs to it. The note comes last: whoever is killed before that
    /// leaves no run, and may do it again.
    ///
    /// # Errors
    /// [`BusError::TooLarge`] when the record has more bytes than `object_limit`; [`BusError::Conflict`] when there is such a
    /// run; else when the bus fails, or this process may not do that.
    pub async fn import(
        &self,
        record: &ImportedRecord,
        outside: Outside,
        at: Millis,
    ) -> Result<ImportNote, BusError> {
        let run = record.run;
        let store = Store::new(&self.core);
        let bytes = record.to_bytes()?;
        let note = ImportNote {
            at,
            entries: record.lines.len() as u64,
            bytes: bytes.len() as u64,
            hash: hash(&bytes),
        };
        let Outside { files, objects } = outside;
        for (name, bytes) in objects {
            if hash(&bytes) == name {
                store.put(bytes).await?;
            } else {
                store.put_named(&name, bytes).await?;
            }
        }
        Files::new(&self.core).adopt(run, files).await?;
        store.put_named(&record_object(run), bytes).await?;
        let made = self.change(run, |before| match before.imported {
            Some(_) => before,
            // What was removed of it is back.
            None => super::KeepNote { imported: Some(note.clone()), ..before },
        });
        match made.await?.imported {
            Some(made) if made == note => Ok(made),
            Some(_) | None => Err(BusError::Conflict { what: format!("run {}", run.short()) }),
        }
    }
}
