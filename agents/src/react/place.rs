//! One generation of one task in the record, as the agent that works on it reads it.

use std::time::{Duration, Instant};

use muster_bus::{BusError, Record, RecordFilter};
use muster_shared::backoff::Backoff;
use muster_shared::ids::{Generation, RunId, Seq};
use muster_shared::run::{AgentEvent, AgentKey, Entry};

use super::journal::JournalError;

/// The first wait after a read or write that failed; it doubles up to [`MAX_PAUSE`].
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// Short, so that whoever was cut off writes what it has before somebody else is given its task.
pub(super) const MAX_PAUSE: Duration = Duration::from_millis(250);

/// One generation of one task, and who works on it.
#[derive(Clone)]
pub(super) struct TaskAssignment {
    pub(super) record: Record,
    pub(super) run: RunId,
    pub(super) key: AgentKey,
    /// How long a bus that cannot be reached is waited for.
    pub(super) patience: Duration,
}

impl TaskAssignment {
    pub(super) const fn new(record: Record, run: RunId, key: AgentKey, patience: Duration) -> Self {
        Self { record, run, key, patience }
    }

    /// Whether what somebody wrote about the task, after our last word, ends our part in it.
    pub(super) fn ends_part(&self, key: &AgentKey, written: &AgentEvent) -> bool {
        written.kind().is_decided_upon() || key.agent != self.key.agent
    }

    /// What was written about this generation after a position.
    pub(super) async fn entries(&self, after: Seq) -> Result<Vec<Entry>, JournalError> {
        self.entries_of(self.key.generation, after).await
    }

    pub(super) async fn entries_of(
        &self,
        generation: Generation,
        after: Seq,
    ) -> Result<Vec<Entry>, JournalError> {
        let filter = RecordFilter::Task { run: self.run, task: self.key.task.clone(), generation };
        let begun = Instant::now();
        let (backoff, mut failures) = (Backoff::new(PAUSE, MAX_PAUSE), 0_u32);
        loop {
            match self.record.read(&filter, after).await {
                Ok(entries) => return Ok(entries),
                Err(error) => self.may_wait(error, begun)?,
            }
            failures = failures.saturating_add(1);
            tokio::time::sleep(backoff.after(failures)).await;
        }
    }

    /// Whether an attempt may be repeated.
    pub(super) fn may_wait(&self, error: BusError, begun: Instant) -> Result<(), JournalError> {
        if error.is_transient() && begun.elapsed() < self.patience {
            tracing::debug!(%error, "the record cannot be reached; trying again");
            return Ok(());
        }
        Err(JournalError::Bus(error))
    }
}
