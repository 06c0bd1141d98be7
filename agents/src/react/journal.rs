//! Writing what happens to a task into the record, behind the fence: whoever writes after somebody else wrote
//! learns of it and stops.

use std::time::{Duration, Instant};

use muster_bus::{AppendError, BusError, Record, RecordFilter};
use muster_shared::flow::TaskOffered;
use muster_shared::ids::{Generation, Seq};
use muster_shared::run::{AgentEvent, AgentKey, Entry, RecordEvent, Started};

use super::history::History;

/// How often a task is looked up anew when somebody wrote in between, before it counts as somebody else's.
const OPENINGS: u32 = 3;
/// The first wait after a write that failed; it doubles up to [`MAX_PAUSE`].
const PAUSE: Duration = Duration::from_millis(50);
/// Short, so that whoever was cut off writes what it has before somebody else is given its task.
const MAX_PAUSE: Duration = Duration::from_millis(250);

/// Why nothing more can be written about a task.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Somebody else took the task over.
    #[error("somebody else has the task")]
    Lost,
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
    record: Record,
    offer_key: (muster_shared::ids::RunId, AgentKey),
    encoding: muster_shared::wire::Encoding,
    last: Seq,
    patience: Duration,
}

/// A task that was looked up in the record.
pub enum Opening {
    /// It is ours: `started` is in the record, and this is what was done before.
    Ours(Box<(Journal, History)>),
    /// Its outcome is in the record already.
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
}

impl Journal {
    /// Writes `started`. A task given out for the first time is taken for new, without a look into the record:
    /// the fence tells when it is not.
    ///
    /// # Errors
    /// [`JournalError::Lost`] when others keep writing, else when the bus fails.
    pub async fn open(
        record: Record,
        offer: &TaskOffered,
        starter: &Starter,
        patience: Duration,
    ) -> Result<Opening, JournalError> {
        let offer_key = (offer.run, starter.key.clone());
        let mut this = Self { record, offer_key, encoding: offer.encoding, last: Seq(0), patience };
        let before = this.before(offer).await?;
        let mut history = before.clone();
        if starter.delivered > 1 {
            history = history.and_then(this.entries(Seq(0)).await?);
        }
        for _ in 0..OPENINGS {
            if history.is_closed() {
                return Ok(Opening::Closed);
            }
            this.last = history.last();
            match this.append(&started(&history, starter)).await {
                Ok(()) => return Ok(Opening::Ours(Box::new((this, history)))),
                Err(JournalError::Lost) => history = before.clone().and_then(this.entries(Seq(0)).await?),
                Err(error) => return Err(error),
            }
        }
        Err(JournalError::Lost)
    }

    /// Writes an event and waits until it is stored. A bus that cannot be reached is waited for within limits.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub async fn append(&mut self, event: &AgentEvent) -> Result<(), JournalError> {
        let begun = Instant::now();
        let mut pause = PAUSE;
        loop {
            let (run, key) = &self.offer_key;
            match self.record.append_agent(*run, key, self.last, event, self.encoding).await {
                Ok(seq) => {
                    self.last = seq;
                    return Ok(());
                }
                Err(AppendError::TooLarge { bytes, most }) => {
                    return Err(JournalError::TooLarge { bytes, most });
                }
                Err(AppendError::Conflict | AppendError::Ambiguous { .. }) => {
                    if self.look(event).await? {
                        return Ok(());
                    }
                }
                Err(AppendError::Bus(error)) => self.may_wait(error, begun)?,
            }
            if begun.elapsed() > self.patience {
                let what = "a write to the record".to_owned();
                return Err(JournalError::Bus(BusError::TimedOut { what, limit: self.patience }));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Looks what was written since: whether our event landed after all. What else we wrote (a write that was
    /// given up half-way) moves our place; what others wrote ends our part. Whoever starts has written nothing yet:
    /// what stands there under its name is another slot's of the same process, and has to be read first.
    async fn look(&mut self, event: &AgentEvent) -> Result<bool, JournalError> {
        let entries = self.entries(self.last).await?;
        let starts = matches!(event, AgentEvent::Started(_));
        let mut landed = false;
        for entry in entries {
            let RecordEvent::Agent(key, written) = &entry.event else { continue };
            landed = key == &self.offer_key.1 && written == event;
            let ends_ours =
                matches!(written, AgentEvent::Started(_) | AgentEvent::Outcome(_) | AgentEvent::Released(_));
            if !landed && (starts || key.agent != self.offer_key.1.agent || ends_ours) {
                return Err(JournalError::Lost);
            }
            self.last = entry.seq;
        }
        Ok(landed)
    }

    /// What was done in the earlier generations that this one goes on from.
    async fn before(&self, offer: &TaskOffered) -> Result<History, JournalError> {
        let mut history = History::default();
        let Some(first) = offer.continues else { return Ok(history) };
        for generation in (first.0..offer.generation.0).map(Generation) {
            history = history.going_on_from(self.entries_of(generation, Seq(0)).await?);
        }
        Ok(history)
    }

    async fn entries(&self, after: Seq) -> Result<Vec<Entry>, JournalError> {
        self.entries_of(self.offer_key.1.generation, after).await
    }

    async fn entries_of(&self, generation: Generation, after: Seq) -> Result<Vec<Entry>, JournalError> {
        let (run, key) = &self.offer_key;
        let filter = RecordFilter::Task { run: *run, task: key.task.clone(), generation };
        let begun = Instant::now();
        let mut pause = PAUSE;
        loop {
            match self.record.read(&filter, after).await {
                Ok(entries) => return Ok(entries),
                Err(error) => self.may_wait(error, begun)?,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn may_wait(&self, error: BusError, begun: Instant) -> Result<(), JournalError> {
        if error.is_transient() && begun.elapsed() < self.patience {
            tracing::debug!(%error, "the record cannot be reached; trying again");
            return Ok(());
        }
        Err(JournalError::Bus(error))
    }
}

fn started(history: &History, starter: &Starter) -> AgentEvent {
    AgentEvent::Started(Started {
        attempt: history.next_attempt(),
        ack: starter.ack.clone(),
        pid: std::process::id(),
        host: starter.host.clone(),
        after_step: history.next_step() - 1,
    })
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
