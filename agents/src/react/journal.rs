//! Writing what happens to a task into the record, behind the fence: whoever writes after somebody else wrote
//! learns of it and stops. The rules are in [`muster_journal`].

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use muster_bus::{BusError, Record};
use muster_journal::{Begin, LATE};
use muster_shared::flow::TaskOffered;
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{AgentEvent, AgentKey, Entry, RecordEvent, RunEvent};
use uuid::Uuid;

use super::history::History;
use super::ownership::TaskOwnership;
use super::place::TaskAssignment;

/// Why nothing more can be written about a task.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Somebody else took the task over.
    #[error("somebody else has the task")]
    Lost,
    /// Its outcome is in the record already, or it had been offered anew.
    #[error("the task has ended")]
    Closed,
    /// The event is larger than the record takes.
    #[error("the event has {bytes} bytes, {most} is the most")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The bus failed for longer than the agent waits, or for good.
    #[error(transparent)]
    Bus(BusError),
}

/// The writer of one generation of one task.
pub struct Journal {
    place: Arc<TaskAssignment>,
    ownership: Arc<TaskOwnership>,
}

/// A task that was looked up in the record.
pub enum JournalOpening {
    /// It is ours: `started` is in the record, and this is what was done before.
    Ours(Box<(Journal, History)>),
    /// Its outcome is in the record already, it had been offered anew, or its run has ended.
    Closed,
}

/// Who starts a task.
#[derive(Debug, Clone)]
pub struct Starter {
    /// The agent and the task.
    pub key: AgentKey,
    /// Where the queue's acknowledgement goes.
    pub ack: String,
    /// The machine.
    pub host: String,
    /// How often the task was given out, from 1.
    pub delivered: u64,
    /// How long the offer was on its way.
    pub waited: Duration,
}

impl Journal {
    /// Writes `started`. A task given out for the first time is taken for new, without a look into the record:
    /// the fence tells when it is not. An offer that came late may have outlived its run: no fence of a task tells that.
    ///
    /// # Errors
    /// [`JournalError::Lost`] when others keep writing, else when the bus fails.
    pub async fn open(
        record: Record,
        offer: &TaskOffered,
        starter: &Starter,
        patience: Duration,
    ) -> Result<JournalOpening, JournalError> {
        let may_be_old = starter.delivered > 1 || starter.waited >= LATE;
        if may_be_old && has_ended(&record, offer.run).await {
            tracing::debug!(run = %offer.run, task = %offer.task, "dropping an offer of a run that has ended");
            return Ok(JournalOpening::Closed);
        }
        let this = Self::new(record, offer, starter, patience);
        let step = this.place.journal().open(begin(offer, starter), this.place.now());
        match this.place.carry_out(step).await {
            Ok(()) => {
                let history = History::of(this.place.journal().take_found());
                Ok(JournalOpening::Ours(Box::new((this, history))))
            }
            Err(JournalError::Closed) => Ok(JournalOpening::Closed),
            Err(error @ (JournalError::Lost | JournalError::TooLarge { .. } | JournalError::Bus(_))) => {
                Err(error)
            }
        }
    }

    fn new(record: Record, offer: &TaskOffered, starter: &Starter, patience: Duration) -> Self {
        let key = starter.key.clone();
        Self::at(TaskAssignment::new(record, offer.run, key, offer.encoding, patience))
    }

    fn at(place: TaskAssignment) -> Self {
        let place = Arc::new(place);
        let ownership = Arc::new(TaskOwnership::new(Arc::clone(&place)));
        Self { place, ownership }
    }

    /// The journal of a task that was begun at `started` and whose record is known up to `last`, for an agent that several
    /// processes may write for. Nothing is written.
    #[must_use]
    pub fn resume(
        record: Record,
        offer: &TaskOffered,
        key: AgentKey,
        patience: Duration,
        started: Seq,
        last: Seq,
    ) -> Self {
        let place = TaskAssignment::new(record, offer.run, key, offer.encoding, patience);
        place.resume(started, last);
        Self::at(place)
    }

    /// The last position in the record that is known to be ours.
    #[must_use]
    pub fn last(&self) -> Seq {
        self.place.journal().last()
    }

    /// How long a bus that cannot be reached is waited for.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.place.journal().patience()
    }

    /// As [`Self::append`], under an id by which the message is known again.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub async fn append_as(&mut self, id: Uuid, event: &AgentEvent) -> Result<(), JournalError> {
        self.place.name(Some(id));
        let appended = self.append(event).await;
        self.place.name(None);
        appended
    }

    /// What tells whether the task is still ours.
    #[must_use]
    pub fn ownership(&self) -> Arc<TaskOwnership> {
        Arc::clone(&self.ownership)
    }

    /// Writes an event and waits until it is stored. A bus that cannot be reached is waited for within limits.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub async fn append(&mut self, event: &AgentEvent) -> Result<(), JournalError> {
        let step = self.place.journal().append(Cow::Borrowed(event), self.place.now());
        self.place.carry_out(step).await
    }
}

/// Whether a run is known to have ended. Where that cannot be told, its tasks are begun as ever.
async fn has_ended(record: &Record, run: RunId) -> bool {
    match record.last_decision(run).await {
        Ok(Some(Entry { event: RecordEvent::Decided(decided), .. })) => {
            decided.events.iter().any(RunEvent::ends_run)
        }
        Ok(Some(_) | None) => false,
        Err(error) => {
            tracing::debug!(%run, %error, "it cannot be told whether a run has ended");
            false
        }
    }
}

fn begin(offer: &TaskOffered, starter: &Starter) -> Begin {
    Begin {
        continues: offer.continues,
        delivered: starter.delivered,
        waited: starter.waited,
        ack: starter.ack.clone(),
        pid: std::process::id(),
        host: starter.host.clone(),
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
