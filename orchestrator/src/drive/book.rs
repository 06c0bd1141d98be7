//! What an actor knows of its run between two turns: the record, folded.

use muster_bus::{Appended, BusError, RecordFilter};
use muster_shared::flow::TaskOffered;
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::{ApplyError, Decided, Entry, Input, RecordEvent, RunState, apply, apply_late};

use super::office::Office;

/// The folded record of a run, and what was put off.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) run: Option<RunState>,
    /// Who made the newest decision.
    pub(super) author: Option<AgentId>,
    /// Inputs that were put off; all are of agents, so they stand in the record.
    pub(super) deferred: Vec<Input>,
    /// How far the record was read at once. Signals up to there have been folded.
    read_to: Seq,
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl Book {
    /// Reads and folds the whole record of a run.
    pub(super) async fn read(office: &Office, id: RunId) -> Result<Self, ReadError> {
        let entries = office.bus.record().read(&RecordFilter::Run(id), Seq(0)).await?;
        let mut book = Self::default();
        for entry in &entries {
            apply(&mut book.run, entry)?;
            if let RecordEvent::Decided(decided) = &entry.event {
                book.author = Some(decided.by.clone());
            }
        }
        book.read_to = entries.last().map_or(Seq(0), |entry| entry.seq);
        Ok(book)
    }

    /// What a new owner decides upon: everything that no decision has named, and what may have got free.
    pub(super) fn left_over(&self) -> Vec<Input> {
        let pending = self.run.iter().flat_map(|run| run.pending.keys());
        pending.map(|seq| Input::Agent { seq: *seq }).chain([Input::Capacity]).collect()
    }

    /// Folds a signal. Returns the input that it is, if a decision can follow from it.
    pub(super) fn take_in(&mut self, entry: &Entry) -> Option<Input> {
        let RecordEvent::Agent(key, event) = &entry.event else { return None };
        let run = self.run.as_mut().filter(|_| entry.seq > self.read_to)?;
        apply_late(run, entry.seq, key, event);
        run.pending.contains_key(&entry.seq).then_some(Input::Agent { seq: entry.seq })
    }

    /// Folds a decision that was just written.
    pub(super) fn wrote(
        &mut self,
        id: RunId,
        appended: Appended,
        decided: Decided,
        offers: Vec<TaskOffered>,
    ) -> Result<(), ApplyError> {
        let at = decided.now;
        self.author = Some(decided.by.clone());
        let events =
            [RecordEvent::Decided(decided)].into_iter().chain(offers.into_iter().map(RecordEvent::Offered));
        for (seq, event) in (appended.first.0..).zip(events) {
            apply(&mut self.run, &Entry { seq: Seq(seq), at, run: id, event })?;
        }
        Ok(())
    }
}
