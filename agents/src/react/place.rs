//! One generation of one task in the record, as the agent that works on it reads and writes it: carries out what its
//! journal asks for.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use muster_bus::{AppendError, BusError, Record, RecordFilter};
use muster_journal::{
    AppendEvent, Appended, Journal, JournalFailure, JournalStep, Moment, Newest, ReadTask, Unanswered,
    WithDecisions,
};
use muster_shared::ids::{Generation, RunId, Seq};
use muster_shared::run::{AgentKey, Entry, is_of_one};
use muster_shared::sync::lock;
use muster_shared::wire::Encoding;
use uuid::Uuid;

use super::journal::JournalError;

/// One generation of one task, and who works on it.
pub(super) struct TaskAssignment {
    record: Record,
    run: RunId,
    key: AgentKey,
    encoding: Encoding,
    since: Instant,
    journal: Mutex<Journal<Entry>>,
    /// Under which id is written, where that is said.
    name: Mutex<Option<Uuid>>,
}

impl TaskAssignment {
    /// The journal of a task that waits so long for a bus that cannot be reached.
    pub(super) fn new(
        record: Record,
        run: RunId,
        key: AgentKey,
        encoding: Encoding,
        patience: Duration,
    ) -> Self {
        let (since, connections) = (Instant::now(), record.connections());
        let now = Moment { at: Duration::ZERO, connections };
        let journal = Mutex::new(Journal::new(key.clone(), patience, now));
        Self { record, run, key, encoding, since, journal, name: Mutex::default() }
    }

    /// From now on it is written under this id.
    pub(super) fn name(&self, id: Option<Uuid>) {
        *lock(&self.name) = id;
    }

    /// The task was begun at the first of these positions, and all is known up to the second. Others may write for the same
    /// agent.
    pub(super) fn resume(&self, started: Seq, last: Seq) {
        let (mine, patience, now) = (self.key.clone(), self.journal().patience(), self.now());
        *self.journal() = Journal::new(mine, patience, now).shared().begun(started, last);
    }

    pub(super) fn now(&self) -> Moment {
        Moment { at: self.since.elapsed(), connections: self.record.connections() }
    }

    /// Never held while something is waited for.
    pub(super) fn journal(&self) -> MutexGuard<'_, Journal<Entry>> {
        lock(&self.journal)
    }

    /// Carries out what the journal asks for, to its end.
    pub(super) async fn carry_out(&self, mut step: JournalStep<'_>) -> Result<(), JournalError> {
        let mut failed = None;
        loop {
            step = match step {
                JournalStep::Read(step) => {
                    let entries = self.read(&step).await.map_err(|error| unanswered(error, &mut failed));
                    step.read(&mut self.journal(), entries, self.now())
                }
                JournalStep::Append(step) => {
                    let appended = self.append(&step, &mut failed).await;
                    step.went(&mut self.journal(), appended, self.now())
                }
                JournalStep::AskWhoHolds(step) => {
                    let (run, task) = (self.run, &self.key.task);
                    let was_taken = self.record.was_taken_from(run, task, &step.agent, step.since).await;
                    let was_taken = was_taken.map_err(|error| unanswered(error, &mut failed));
                    step.told(&mut self.journal(), was_taken, self.now())
                }
                JournalStep::AskNewest(step) => {
                    let newest = self.newest().await.map_err(|error| unanswered(error, &mut failed));
                    step.told(&mut self.journal(), newest, self.now())
                }
                JournalStep::Wait(pause) => {
                    if let Some(error) = failed.take() {
                        tracing::debug!(%error, "the record cannot be reached; trying again");
                    }
                    tokio::time::sleep(pause.time).await;
                    pause.over(self.now())
                }
                JournalStep::Done(done) => return done.map_err(|failure| self.error(failure, failed)),
            };
        }
    }

    async fn read(&self, step: &ReadTask<'_>) -> Result<Vec<Entry>, BusError> {
        let (run, task, generation) = (self.run, self.key.task.clone(), step.generation);
        let mut entries = self.record.read(&RecordFilter::Task { run, task, generation }, step.after).await?;
        let needs_decisions = match step.decisions() {
            WithDecisions::No => false,
            WithDecisions::IfOfSeveral => !is_of_one(&entries),
            WithDecisions::Yes => true,
        };
        if needs_decisions {
            let decisions = self.record.decisions_since(run, entries.first()).await?;
            entries.extend(decisions);
            entries.sort_by_key(|entry| entry.seq);
        }
        Ok(entries)
    }

    async fn append(&self, step: &AppendEvent<'_>, failed: &mut Option<BusError>) -> Appended {
        let Self { record, run, key, encoding, .. } = self;
        let id = lock(&self.name).unwrap_or_else(Uuid::now_v7);
        match record.append_named(id, *run, key, step.after, step.event(), *encoding).await {
            Ok(seq) => {
                super::log_place::note(*run, key, step.event());
                Appended::Stored(seq)
            }
            Err(AppendError::Conflict) => Appended::Conflict,
            Err(AppendError::Ambiguous { .. }) => Appended::Ambiguous,
            Err(AppendError::TooLarge { bytes, most }) => Appended::TooLarge { bytes, most },
            Err(AppendError::Bus(error)) => Appended::Failed(unanswered(error, failed)),
        }
    }

    async fn newest(&self) -> Result<Newest, BusError> {
        let AgentKey { task, generation, .. } = &self.key;
        let last = self.record.last_word(self.run, task, *generation);
        let offered = async {
            match self.record.newest_offer(self.run, task).await {
                // The fence of the generation still keeps two agents apart.
                Err(error) if !error.is_transient() => {
                    tracing::warn!(%error, "it cannot be told whether an offer was made again");
                    Ok(None)
                }
                offered => offered,
            }
        };
        let (last, offered): (Option<(Seq, _)>, Option<Generation>) = futures::try_join!(last, offered)?;
        Ok(Newest { last: last.map(|(seq, _)| seq), offered })
    }

    fn error(&self, failure: JournalFailure, failed: Option<BusError>) -> JournalError {
        let timed_out = || {
            let (what, limit) = ("a write to the record".to_owned(), self.journal().patience());
            BusError::TimedOut { what, limit }
        };
        match failure {
            JournalFailure::Lost => JournalError::Lost,
            JournalFailure::Closed => JournalError::Closed,
            JournalFailure::OfferedAnew => {
                tracing::debug!(run = %self.run, task = %self.key.task, "dropping an offer that was made again");
                JournalError::Closed
            }
            JournalFailure::LeftTo(agent) => {
                let (run, task) = (self.run, &self.key.task);
                tracing::info!(%run, %task, %agent, "given out again, but who has it lives: left to it");
                JournalError::Lost
            }
            JournalFailure::TooLarge { bytes, most } => JournalError::TooLarge { bytes, most },
            JournalFailure::Unreachable => JournalError::Bus(failed.unwrap_or_else(timed_out)),
            JournalFailure::TimedOut => JournalError::Bus(timed_out()),
        }
    }
}

/// Keeps why an answer did not come.
fn unanswered(error: BusError, failed: &mut Option<BusError>) -> Unanswered {
    let is_transient = error.is_transient();
    *failed = Some(error);
    Unanswered { is_transient }
}
