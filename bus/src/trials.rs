//! How trials stand (B6): one entry for each, written by compare-and-set, since several orchestrators count and withdraw.

use std::sync::Arc;

use futures::stream::BoxStream;
use muster_shared::ids::Seq;
use muster_shared::trial_state::TrialState;

use crate::bus::Core;
use crate::error::BusError;
use crate::kv::{Bucket, KvEntry};
use crate::topology::TRIALS;

const BUCKET: Bucket = Bucket(TRIALS);

/// How often a change is tried that others keep coming before.
const TRIES: usize = 32;

/// How all trials stand.
#[derive(Clone)]
pub struct Trials {
    pub(crate) core: Arc<Core>,
}

impl Trials {
    /// Changes how a trial stands: `change` is given what there is, and gives what is to be there with what it says.
    /// Nothing is written where that is the same.
    ///
    /// # Errors
    /// When the bus fails, or others come before too often.
    pub async fn change<T>(
        &self,
        name: &str,
        mut change: impl FnMut(Option<TrialState>) -> (TrialState, T),
    ) -> Result<T, BusError> {
        for _ in 0..TRIES {
            let last = BUCKET.last(&self.core, name).await?;
            let after = last.as_ref().map_or(Seq(0), |last| last.revision);
            let known: Option<TrialState> = last.and_then(KvEntry::read);
            let (changed, said) = change(known.clone());
            if known.as_ref() == Some(&changed) {
                return Ok(said);
            }
            if BUCKET.replace(&self.core, name, &changed, after).await? {
                return Ok(said);
            }
        }
        let reason = format!("trial {name} is being changed by too many at once");
        Err(BusError::Other { what: "a trial".into(), reason })
    }

    /// How one stands; nothing where nothing is known of it.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn of(&self, name: &str) -> Result<Option<TrialState>, BusError> {
        Ok(BUCKET.last(&self.core, name).await?.and_then(KvEntry::read))
    }

    /// How all stand. What cannot be read (a newer build's) is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn all(&self) -> Result<Vec<TrialState>, BusError> {
        BUCKET.values(&self.core, "*").await
    }

    /// How they stand as that changes, beginning with what there is.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch(&self) -> Result<BoxStream<'static, TrialState>, BusError> {
        BUCKET.watch_values(&self.core).await
    }
}
