//! Leases: who owns which run. An optimisation only: the record's fence decides.

use std::sync::Arc;

use bytes::Bytes;
use muster_shared::ids::{AgentId, RunId, Seq};

use crate::backend::{Headers, Message};
use crate::bus::Core;
use crate::error::{AppendError, BusError};
use crate::kv::{Bucket, KvEntry};
use crate::seal::CONTENT_TYPE;
use crate::topology::LEASE;

const BUCKET: Bucket = Bucket(LEASE);

/// The leases of runs.
#[derive(Clone)]
pub struct Leases {
    core: Arc<Core>,
}

/// A run that this process owns until the lease expires. Renew it at a third of its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    run: RunId,
    revision: Seq,
}

impl Lease {
    /// The run.
    #[must_use]
    pub const fn run(&self) -> RunId {
        self.run
    }
}

impl Leases {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// Takes the lease of a run; nothing when somebody holds it.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn acquire(&self, run: RunId) -> Result<Option<Lease>, BusError> {
        let ttl = Some(self.core.settings.lease_ttl);
        match BUCKET.create(&self.core, &run.to_string(), self.message(run), ttl).await {
            Ok(revision) => Ok(Some(Lease { run, revision })),
            Err(AppendError::Conflict) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps a lease for its full time from now on; nothing when it was lost.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn renew(&self, lease: &Lease) -> Result<Option<Lease>, BusError> {
        let (run, after) = (lease.run, Some(lease.revision));
        let ttl = Some(self.core.settings.lease_ttl);
        match BUCKET.put(&self.core, self.message(run), ttl, after).await {
            Ok(revision) => Ok(Some(Lease { run, revision })),
            Err(AppendError::Conflict) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a lease up. One that was lost already is no error.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn release(&self, lease: Lease) -> Result<(), BusError> {
        match BUCKET.remove(&self.core, &lease.run.to_string(), Some(lease.revision)).await {
            Ok(()) | Err(AppendError::Conflict) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Who holds the lease of a run.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn holder(&self, run: RunId) -> Result<Option<AgentId>, BusError> {
        let entry = BUCKET.last(&self.core, &run.to_string()).await?;
        Ok(entry.and_then(|entry| holder_in(&entry)).map(|(_, agent)| agent))
    }

    /// All runs that somebody holds.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn list(&self) -> Result<Vec<(RunId, AgentId)>, BusError> {
        let entries = BUCKET.all(&self.core, "*").await?;
        Ok(entries.iter().filter_map(holder_in).collect())
    }

    fn message(&self, run: RunId) -> Message {
        let mut headers = Headers::default();
        headers.add(CONTENT_TYPE, "text/plain");
        let payload = Bytes::from(self.core.who.to_string());
        Message { subject: BUCKET.subject(&run.to_string()), headers, payload }
    }
}

/// Run and holder, unless the entry is a mark or foreign.
fn holder_in(entry: &KvEntry) -> Option<(RunId, AgentId)> {
    let holder = std::str::from_utf8(&entry.message.as_ref()?.payload).ok()?;
    Some((entry.key.parse().ok()?, holder.parse().ok()?))
}
