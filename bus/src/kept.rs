//! What is kept of runs besides the record, and what was removed of it: marks of those that are kept for good, records that came
//! from another fleet, and summaries of runs whose record is over its time.
//!
//! A run that came from elsewhere is an object and no part of the record's streams: there its places would be others, by which
//! entries name each other, and its offers would be queue entries. So nobody takes it up, and it is read as it was written.

mod imported;
mod orphans;
mod removal;

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_shared::ids::{RunId, Seq};
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};

use crate::bus::Core;
use crate::error::BusError;
use crate::kv::Bucket;
use crate::topology::KEPT;
pub use imported::{ImportedRecord, Outside};
pub use removal::Removal;

const BUCKET: Bucket = Bucket(KEPT);

/// How often a change is made anew because somebody else changed the note first.
const MOST_ATTEMPTS: u32 = 16;

/// What is noted of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeepNote {
    /// Nothing of it is removed by age.
    pub kept: bool,
    /// It came from elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportNote>,
    /// Its record was removed, or is being removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<RemovalNote>,
}

impl KeepNote {
    /// How many messages were removed of it that stood at or after a place. Of a run on both sides of it all count: what stands
    /// before the first message of a stream is not counted as missing anyway.
    pub(crate) fn removed_after(&self, first: Seq) -> Option<u64> {
        let removed = self.removed.as_ref()?;
        removed.places.filter(|(_, last)| *last >= first).map(|_| removed.entries)
    }

    /// What was removed of it, where that has not come back.
    #[must_use]
    pub fn gone(&self) -> Option<&RemovalNote> {
        self.removed.as_ref().filter(|removed| self.imported.is_none() || !removed.done)
    }
}

/// How a run came from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportNote {
    /// When, by the clock of whoever did it.
    pub at: Millis,
    /// How many messages its record has.
    pub entries: u64,
    /// Their bytes, as they are kept here.
    pub bytes: u64,
    /// SHA-256 of what is kept: objects can be written by agents too, notes by the fleet's owner alone.
    pub hash: String,
}

/// What was removed of a run. It is noted before anything is removed, so that whoever is killed in between leaves a run that
/// nobody takes for whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovalNote {
    /// Since when, by the clock of whoever did it.
    pub at: Millis,
    /// By what: a setting and its value, or a command.
    pub rule: String,
    /// How many messages its record had.
    pub entries: u64,
    /// Where the first and the last of them stood in the streams of the record; nothing where they stood elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<(Seq, Seq)>,
    /// Bytes of its record, and of all that belonged to it.
    pub bytes: u64,
    /// How many files and other objects it had.
    pub objects: u64,
    /// SHA-256 of the summary that is kept, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Whether all of it is gone.
    pub done: bool,
}

/// What is kept of runs.
#[derive(Clone)]
pub struct Kept {
    pub(crate) core: Arc<Core>,
}

impl Kept {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// All that is noted, by run.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn all(&self) -> Result<BTreeMap<RunId, KeepNote>, BusError> {
        let entries = BUCKET.all(&self.core, "*").await?;
        let read = |entry: crate::kv::KvEntry| Some((entry.key.parse().ok()?, entry.read()?));
        Ok(entries.into_iter().filter_map(read).collect())
    }

    /// What is noted of a run.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn note(&self, run: RunId) -> Result<KeepNote, BusError> {
        Ok(self.read(run).await?.0)
    }

    async fn read(&self, run: RunId) -> Result<(KeepNote, Seq), BusError> {
        let last = BUCKET.last(&self.core, &run.to_string()).await?;
        Ok(last.map_or_else(Default::default, |entry| {
            (entry.clone().read().unwrap_or_default(), entry.revision)
        }))
    }

    /// Changes what is noted of a run, and gives what is noted then.
    ///
    /// # Errors
    /// [`BusError::Conflict`] when others kept changing it; else when the bus fails, or this process may not do that.
    pub async fn change(
        &self,
        run: RunId,
        make: impl Fn(KeepNote) -> KeepNote + Send + Sync,
    ) -> Result<KeepNote, BusError> {
        for _ in 0..MOST_ATTEMPTS {
            let (before, after) = self.read(run).await?;
            let note = make(before.clone());
            if note == before {
                return Ok(note);
            }
            if BUCKET.replace(&self.core, &run.to_string(), &note, after).await? {
                return Ok(note);
            }
        }
        Err(BusError::Conflict { what: format!("what is noted of run {}", run.short()) })
    }
}
