//! Writing what happens to a task into the record, behind the fence: whoever writes after somebody else wrote
//! learns of it and stops.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_bus::{AppendError, BusError, Record};
use muster_shared::flow::TaskOffered;
use muster_shared::ids::{AgentId, Generation, Seq};
use muster_shared::run::{AgentEvent, AgentKey, RecordEvent, Started};

use super::history::History;
use super::ownership::TaskOwnership;
use super::place::{MAX_PAUSE, PAUSE, TaskAssignment};

/// How often a task is looked up anew when somebody wrote in between, before it counts as somebody else's.
const OPENINGS: u32 = 3;
/// How long the registry must not know whoever has a task, though nobody has decided that it is lost. A process that
/// stood still with its whole machine enters itself again as soon as it goes on.
const MISSED: Duration = Duration::from_secs(2);
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
    place: TaskAssignment,
    encoding: muster_shared::wire::Encoding,
    last: Seq,
    ownership: Arc<TaskOwnership>,
}

/// A task that was looked up in the record.
pub enum JournalOpening {
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
    ) -> Result<JournalOpening, JournalError> {
        let place = TaskAssignment::new(record, offer.run, starter.key.clone(), patience);
        let ownership = Arc::new(TaskOwnership::new(place.clone()));
        let mut this = Self { place, encoding: offer.encoding, last: Seq(0), ownership };
        let before = this.before(offer).await?;
        let mut history = before.clone();
        if starter.delivered > 1 {
            history = history.and_then(this.place.entries(Seq(0)).await?);
        }
        for _ in 0..OPENINGS {
            if history.is_closed() {
                return Ok(JournalOpening::Closed);
            }
            if let Some((agent, since)) = history.holder()
                && !this.is_gone(agent, *since).await?
            {
                return Err(JournalError::Lost);
            }
            this.last = history.last();
            match this.append(&started(&history, starter)).await {
                Ok(()) => return Ok(JournalOpening::Ours(Box::new((this, history)))),
                Err(JournalError::Lost) => {
                    history = before.clone().and_then(this.place.entries(Seq(0)).await?)
                }
                Err(error) => return Err(error),
            }
        }
        Err(JournalError::Lost)
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
        let begun = Instant::now();
        let mut pause = PAUSE;
        // Whether an earlier attempt may have been stored though nobody said so.
        let mut may_stand = false;
        loop {
            let (asked, TaskAssignment { record, run, key, .. }) = (self.ownership.now(), &self.place);
            match record.append_agent(*run, key, self.last, event, self.encoding).await {
                Ok(seq) => {
                    self.last = seq;
                    self.ownership.confirm(seq, asked);
                    return Ok(());
                }
                Err(AppendError::TooLarge { bytes, most }) => {
                    return Err(JournalError::TooLarge { bytes, most });
                }
                Err(error @ (AppendError::Conflict | AppendError::Ambiguous { .. })) => {
                    may_stand |= matches!(error, AppendError::Ambiguous { .. });
                    if self.look(event, may_stand).await? {
                        self.ownership.confirm(self.last, asked);
                        return Ok(());
                    }
                }
                Err(AppendError::Bus(error)) => {
                    self.place.may_wait(error, begun)?;
                    may_stand = true;
                }
            }
            if begun.elapsed() > self.place.patience {
                let (what, limit) = ("a write to the record".to_owned(), self.place.patience);
                return Err(JournalError::Bus(BusError::TimedOut { what, limit }));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Looks what was written since: whether our event landed after all, if it `may_stand` there. What else we wrote (a
    /// write that was given up half-way) moves our place; what others wrote ends our part. Whoever starts has written
    /// nothing yet: what stands there under its name is another slot's of the same process, and has to be read first.
    async fn look(&mut self, event: &AgentEvent, may_stand: bool) -> Result<bool, JournalError> {
        let entries = self.place.entries(self.last).await?;
        let starts = matches!(event, AgentEvent::Started(_));
        let mut landed = false;
        for entry in entries {
            let RecordEvent::Agent(key, written) = &entry.event else { continue };
            landed = may_stand && key == &self.place.key && written == event;
            if !landed && (starts || self.place.ends_part(key, written)) {
                return Err(JournalError::Lost);
            }
            self.last = entry.seq;
        }
        Ok(landed)
    }

    /// Whether whoever began the task before and has not ended is known to be gone. That it is given out once more proves
    /// nothing: a queue whose server was killed or stood still gives out what others have at work, and two who are told at
    /// once would both ask a model. Either it was decided, or the registry has not known it for a while.
    async fn is_gone(&self, agent: &AgentId, since: Seq) -> Result<bool, JournalError> {
        let TaskAssignment { record, run, key, .. } = &self.place;
        if *agent == key.agent {
            return Ok(true);
        }
        let begun = Instant::now();
        let mut missed = None;
        loop {
            let looked = async {
                let taken = record.was_taken_from(*run, (&key.task, agent), since).await?;
                Ok::<_, BusError>((taken, record.is_registered(agent).await?))
            };
            match looked.await {
                Ok((true, _)) => return Ok(true),
                Ok((false, true)) => {
                    tracing::info!(%run, task = %key.task, %agent, "given out again, but who has it lives: left to it");
                    return Ok(false);
                }
                Ok((false, false)) => {
                    if missed.get_or_insert_with(Instant::now).elapsed() >= MISSED {
                        return Ok(true);
                    }
                }
                Err(error) => self.place.may_wait(error, begun)?,
            }
            tokio::time::sleep(MAX_PAUSE).await;
        }
    }

    /// What was done in the earlier generations that this one goes on from.
    async fn before(&self, offer: &TaskOffered) -> Result<History, JournalError> {
        let mut history = History::default();
        let Some(first) = offer.continues else { return Ok(history) };
        for generation in (first.0..offer.generation.0).map(Generation) {
            history = history.going_on_from(self.place.entries_of(generation, Seq(0)).await?);
        }
        Ok(history)
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
