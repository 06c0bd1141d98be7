//! Leases: which orchestrators are at work, and which runs each of them has. An optimisation only: the record's fence
//! decides.
//!
//! An orchestrator has one lease, whatever the number of its runs, and renews it at a third of its time. The lease
//! names the runs in hand, so that whoever takes over knows what was left without looking through the record. It does
//! not expire by itself: the stamps of the broker, which are in one order for all, tell that it lapsed, and what it
//! says is kept until all its runs are in other hands. See [`LeaseNote`].

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::backend::Message;
use crate::bus::Core;
use crate::error::{AppendError, BusError};
use crate::kv::{Bucket, KvEntry};
use crate::places::Places;
use crate::topology::LEASE;

const BUCKET: Bucket = Bucket(LEASE);

/// The leases of orchestrators.
#[derive(Clone)]
pub struct Leases {
    pub(crate) core: Arc<Core>,
}

/// What an orchestrator says with its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseNote {
    /// How many more runs it takes.
    pub room: u32,
    /// The runs that it has.
    pub runs: Vec<RunId>,
    /// A position of the record up to which no run of it is missing here. Runs that it created after that are found
    /// by reading on from there.
    pub through: Places,
    /// The domains whose runs it sees to rather than others; those of no domain when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Runs that it cannot handle and leaves to others for a while: nobody has them by this lease, and whoever takes over
    /// what it left tries them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<RunId>,
    /// Whether it has stopped in good order and leaves its runs to others.
    #[serde(default)]
    pub given_up: bool,
}

/// What a lease holds.
#[derive(Serialize, Deserialize)]
struct LeaseValue {
    holder: AgentId,
    /// 0 when it begins: the place of that message is the epoch.
    epoch: Seq,
    note: LeaseNote,
}

/// This process's lease. Lost when it is not renewed in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    key: String,
    epoch: Seq,
    revision: Seq,
}

impl Lease {
    /// What tells it from all others: it rises with every lease that begins.
    #[must_use]
    pub const fn epoch(&self) -> Seq {
        self.epoch
    }
}

/// Anybody's lease, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenLease {
    /// Its name among the leases.
    pub key: String,
    /// Whose it is.
    pub holder: AgentId,
    /// See [`Lease::epoch`].
    pub epoch: Seq,
    /// The place of its newest renewal.
    pub revision: Seq,
    /// When the broker stored its newest renewal.
    pub at: Millis,
    /// What it says.
    pub note: LeaseNote,
}

/// A change of the leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseChange {
    /// One began, was renewed, or was given up.
    Held(SeenLease),
    /// One was removed.
    Gone {
        /// Its name among the leases.
        key: String,
    },
}

impl Leases {
    /// Begins a lease of this process, besides any that it had before.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn begin(&self, note: LeaseNote) -> Result<Lease, BusError> {
        let key = format!("{}.{}", self.core.who, Uuid::new_v4().simple());
        let message = self.message(&key, Seq(0), note)?;
        let epoch = BUCKET.create(&self.core, &key, message, None).await?;
        Ok(Lease { key, epoch, revision: epoch })
    }

    /// Keeps a lease for its full time from now on, with a new note; nothing when it was removed, which others do
    /// once it has lapsed and its runs are in their hands.
    ///
    /// # Errors
    /// When the bus fails. The renewal may have been stored all the same.
    pub async fn renew(&self, lease: &Lease, note: LeaseNote) -> Result<Option<Lease>, BusError> {
        let message = self.message(&lease.key, lease.epoch, note)?;
        let mut after = lease.revision;
        loop {
            match BUCKET.put(&self.core, message.clone(), None, Some(after)).await {
                Ok(revision) => return Ok(Some(Lease { revision, ..lease.clone() })),
                Err(AppendError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
            // Nobody else renews it: an earlier renewal of ours was stored though its answer was lost.
            match BUCKET.last(&self.core, &lease.key).await? {
                Some(entry) if entry.message.is_some() && entry.revision != after => after = entry.revision,
                Some(_) | None => return Ok(None),
            }
        }
    }

    /// Removes a lease, if it is still the one that was seen: all its runs are in other hands, or have ended.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn remove(&self, key: &str, revision: Seq) -> Result<(), BusError> {
        match BUCKET.remove(&self.core, key, Some(revision)).await {
            Ok(()) | Err(AppendError::Conflict) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives this process's lease up: removes it when nothing is left to others, else says so with it.
    ///
    /// # Errors
    /// When the bus fails; the lease lapses by itself then.
    pub async fn give_up(&self, lease: &Lease, note: LeaseNote) -> Result<(), BusError> {
        let left = !note.left_alone.is_empty() || !note.runs.is_empty();
        let Some(last) = self.renew(lease, LeaseNote { given_up: true, ..note }).await? else {
            return Ok(());
        };
        if left { Ok(()) } else { self.remove(&last.key, last.revision).await }
    }

    /// All leases, lapsed or not. What cannot be read is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn list(&self) -> Result<Vec<SeenLease>, BusError> {
        let entries = BUCKET.all(&self.core, ">").await?;
        Ok(entries.iter().filter_map(seen).collect())
    }

    /// Changes as they come, beginning with all there are. What cannot be read is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch(&self) -> Result<BoxStream<'static, LeaseChange>, BusError> {
        let entries = BUCKET.watch(&self.core, ">").await?;
        let changes = entries.filter_map(|entry| async move {
            if entry.message.is_none() {
                return Some(LeaseChange::Gone { key: entry.key });
            }
            seen(&entry).map(LeaseChange::Held)
        });
        Ok(changes.boxed())
    }

    fn message(&self, key: &str, epoch: Seq, note: LeaseNote) -> Result<Message, BusError> {
        let held = LeaseValue { holder: self.core.who.clone(), epoch, note };
        BUCKET.json(key, &held)
    }
}

/// The lease in an entry, unless it is a mark or foreign.
fn seen(entry: &KvEntry) -> Option<SeenLease> {
    let LeaseValue { holder, epoch, note } = serde_json::from_slice(&entry.message.as_ref()?.payload).ok()?;
    let epoch = if epoch == Seq(0) { entry.revision } else { epoch };
    Some(SeenLease { key: entry.key.clone(), holder, epoch, revision: entry.revision, at: entry.at, note })
}
