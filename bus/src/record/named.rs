//! What whoever goes on with somebody else's task has to know: the offer as it was made, the run's secret, and which
//! message each entry was.

use muster_shared::flow::TaskOffered;
use muster_shared::ids::{RunId, Seq, TaskId};
use muster_shared::run::{Entry, RecordEvent, RunEvent};
use uuid::Uuid;

use super::{Record, RecordFilter};
use crate::error::BusError;
use crate::places::Places;
use crate::seal::open_inline;

/// An entry with the id of its message; nil when its author gave it none.
#[derive(Debug, Clone)]
pub struct Named {
    /// The id.
    pub id: Uuid,
    /// The entry.
    pub entry: Entry,
}

impl Record {
    /// All entries after a position, as [`Record::read`] gives them, each with the id of its message.
    ///
    /// # Errors
    /// As [`Record::read`].
    pub async fn read_named(&self, which: &RecordFilter, after: Seq) -> Result<Vec<Named>, BusError> {
        let stored = self.core.scan_record(which.run(), &which.subjects(), &Places::from(after)).await?;
        let mut entries = Vec::with_capacity(stored.len());
        for message in &stored {
            let id = open_inline(&message.message).map(|envelope| envelope.id).unwrap_or_default();
            match self.core.entry(message).await? {
                Ok(entry) => entries.push(Named { id, entry }),
                Err(stray) if stray.of_nobody => {
                    tracing::debug!(%stray, "an entry of no task is left out");
                }
                Err(unreadable) => return Err(unreadable.into()),
            }
        }
        Ok(entries)
    }

    /// The decisions about a run since an entry; none where there is no entry.
    ///
    /// # Errors
    /// When the bus fails, or one of them cannot be read.
    pub async fn decisions_since(&self, run: RunId, first: Option<&Entry>) -> Result<Vec<Entry>, BusError> {
        match first {
            Some(first) => self.read(&RecordFilter::Decisions(run), first.seq).await,
            None => Ok(Vec::new()),
        }
    }

    /// The newest offer of a task, by the leader's word; nothing when it was never offered.
    ///
    /// # Errors
    /// When the bus fails, or the offer cannot be read.
    pub async fn offer_of(&self, run: RunId, task: &TaskId) -> Result<Option<TaskOffered>, BusError> {
        let Some(stored) = self.core.last_of(run, format!("run.{run}.task.*.{task}")).await? else {
            return Ok(None);
        };
        let offer = self.core.entry(&stored).await??.event.into_offer();
        let unvouched = offer.as_ref().map(|offer| self.core.vouched(&stored.message, offer, stored.at));
        if let Some(Err(reason)) = unvouched {
            return Err(BusError::Other { what: format!("the offer of {task}"), reason });
        }
        Ok(offer)
    }

    /// The secret of a run, which its first decision tells; nothing when that is not there.
    ///
    /// # Errors
    /// When the bus fails, or the decision cannot be read.
    pub async fn secret_of(&self, run: RunId) -> Result<Option<String>, BusError> {
        let Some(first) = self.first(&RecordFilter::Decisions(run), Seq(0)).await? else { return Ok(None) };
        let RecordEvent::Decided(decided) = first.event else { return Ok(None) };
        Ok(decided.events.into_iter().find_map(|event| match event {
            RunEvent::RunCreated(created) => Some(created.secret),
            _ => None,
        }))
    }
}
