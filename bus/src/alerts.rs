//! What is known of alerts, who looks after them, and about what nothing is told for a while.
//!
//! One process looks at a time: it has the turn, which ends by itself when it is not kept. That is an optimisation. What is
//! known is written by compare-and-set: of two who both think that they have the turn one is refused, and tells nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use muster_shared::ids::{AgentId, Seq};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bus::Core;
use crate::error::{AppendError, BusError};
use crate::kv::{Bucket, KvEntry};
use crate::topology::ALERTS;

const BUCKET: Bucket = Bucket(ALERTS);

const TURN: &str = "turn";
const STATE: &str = "state";
const SILENCE: &str = "silence.";

/// How long what is known stays when nobody looks after it.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Alerts of the fleet.
#[derive(Clone)]
pub struct Alerts {
    core: Arc<Core>,
}

/// This process's turn to look after alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    revision: Seq,
}

#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    holder: AgentId,
}

impl Alerts {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// Takes the turn for a time; nothing while another process has it.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn take_turn(&self, time: Duration) -> Result<Option<Turn>, BusError> {
        let message = BUCKET.json(TURN, &Holder { holder: self.core.who.clone() })?;
        match BUCKET.create(&self.core, TURN, message, Some(time)).await {
            Ok(revision) => Ok(Some(Turn { revision })),
            Err(AppendError::Conflict) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps the turn for a time from now on; nothing when it had ended.
    ///
    /// # Errors
    /// When the bus fails. It may have been kept all the same.
    pub async fn keep_turn(&self, turn: &Turn, time: Duration) -> Result<Option<Turn>, BusError> {
        let message = BUCKET.json(TURN, &Holder { holder: self.core.who.clone() })?;
        match BUCKET.put(&self.core, message, Some(time), Some(turn.revision)).await {
            Ok(revision) => Ok(Some(Turn { revision })),
            Err(AppendError::Conflict) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Leaves the turn to others.
    ///
    /// # Errors
    /// When the bus fails; it ends by itself then.
    pub async fn leave_turn(&self, turn: &Turn) -> Result<(), BusError> {
        match BUCKET.remove(&self.core, TURN, Some(turn.revision)).await {
            Ok(()) | Err(AppendError::Conflict) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Who has the turn.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn holder(&self) -> Result<Option<AgentId>, BusError> {
        Ok(BUCKET.last(&self.core, TURN).await?.and_then(KvEntry::read).map(|held: Holder| held.holder))
    }

    /// What is known, and where it stands; what holds by default where nothing is, or where a newer build wrote it.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn state<S: DeserializeOwned + Default>(&self) -> Result<(S, Seq), BusError> {
        let Some(entry) = BUCKET.last(&self.core, STATE).await? else { return Ok((S::default(), Seq(0))) };
        let revision = entry.revision;
        Ok((entry.read().unwrap_or_default(), revision))
    }

    /// Writes what is known, if nobody wrote since; nothing when somebody did.
    ///
    /// # Errors
    /// When the bus fails. It may have been written all the same.
    pub async fn save<S: Serialize + Sync>(&self, state: &S, after: Seq) -> Result<Option<Seq>, BusError> {
        let message = BUCKET.json(STATE, state)?;
        match BUCKET.put(&self.core, message, Some(KEPT), Some(after)).await {
            Ok(revision) => Ok(Some(revision)),
            Err(AppendError::Conflict) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// About which rules nothing is told, with what was said of it. What is over has expired by itself.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn silences<S: DeserializeOwned>(&self) -> Result<BTreeMap<String, S>, BusError> {
        let entries = BUCKET.all(&self.core, "silence.*").await?;
        let read = |entry: KvEntry| Some((entry.key.strip_prefix(SILENCE)?.to_owned(), entry.read()?));
        Ok(entries.into_iter().filter_map(read).collect())
    }

    /// Has nothing told about a rule for a time. `rule` is letters, digits and `_`.
    ///
    /// # Errors
    /// When the bus fails, or this process may not do that.
    pub async fn silence<S: Serialize + Sync>(
        &self,
        rule: &str,
        said: &S,
        time: Duration,
    ) -> Result<(), BusError> {
        let message = BUCKET.json(&format!("{SILENCE}{rule}"), said)?;
        BUCKET.put(&self.core, message, Some(time), None).await?;
        Ok(())
    }

    /// Has things told about a rule again.
    ///
    /// # Errors
    /// When the bus fails, or this process may not do that.
    pub async fn end_silence(&self, rule: &str) -> Result<(), BusError> {
        BUCKET.remove(&self.core, &format!("{SILENCE}{rule}"), None).await?;
        Ok(())
    }
}

impl std::fmt::Debug for Alerts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alerts").finish_non_exhaustive()
    }
}
