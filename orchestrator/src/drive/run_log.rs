//! What an actor knows of its run between two turns: the record, folded.

use muster_bus::{Appended, BusError, RecordFilter};
use muster_shared::flow::TaskOffered;
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::{ApplyError, Decided, Entry, Input, RecordEvent, RunState, apply, apply_late};

use super::context::OrchestratorContext;
use super::silence::Heard;
use super::snapshots;

/// The folded record of a run, and what was put off.
#[derive(Debug, Default)]
pub(super) struct RunLog {
    pub(super) run: Option<RunState>,
    /// Who made the newest decision.
    pub(super) author: Option<AgentId>,
    /// Inputs that were put off; all are of agents, so they stand in the record.
    pub(super) deferred: Vec<Input>,
    /// When tasks in work were heard of last, as far as that was looked up.
    pub(super) heard: Heard,
    /// Where the run was created; 0 while that is not known.
    pub(super) created: Seq,
    /// Entries folded since the state was kept aside.
    since_snapshot: u32,
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

impl RunLog {
    /// Reads the record of a run and folds it, from the newest snapshot on if there is one.
    pub(super) async fn read(context: &OrchestratorContext, id: RunId) -> Result<Self, ReadError> {
        let mut run_log = snapshots::newest(context, id).await.unwrap_or_default();
        let after = run_log.run.as_ref().map_or(Seq(0), |run| run.folded);
        let entries = context.bus.record().read(&RecordFilter::Deciding(id), after).await?;
        for entry in &entries {
            apply(&mut run_log.run, entry)?;
            if let RecordEvent::Decided(decided) = &entry.event {
                run_log.author = Some(decided.by.clone());
            }
        }
        if let (Seq(0), Some(first)) = (run_log.created, entries.first()) {
            run_log.created = first.seq;
        }
        run_log.read_to = entries.last().map_or(after, |entry| entry.seq);
        run_log.since_snapshot = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        Ok(run_log)
    }

    /// What is known from a state that was kept aside.
    pub(super) fn restored(run: RunState, author: Option<AgentId>, created: Seq) -> Self {
        Self { run: Some(run), author, created, ..Self::default() }
    }

    /// Whether the state should be kept aside now. Counts anew from then on.
    pub(super) fn snapshot_is_due(&mut self, every: u32) -> bool {
        let due = every > 0 && self.since_snapshot >= every;
        if due {
            self.since_snapshot = 0;
        }
        due
    }

    /// What a new owner decides upon: everything that no decision has named, and what may have got free.
    pub(super) fn left_over(&self) -> Vec<Input> {
        self.run.iter().flat_map(RunState::undecided).chain([Input::Capacity]).collect()
    }

    /// Folds a signal. Returns the input that it is, if a decision can follow from it.
    pub(super) fn take_in(&mut self, entry: &Entry) -> Option<Input> {
        let RecordEvent::Agent(key, event) = &entry.event else { return None };
        let run = self.run.as_mut().filter(|_| entry.seq > self.read_to)?;
        apply_late(run, entry.seq, key, event);
        self.since_snapshot = self.since_snapshot.saturating_add(1);
        run.pending.get(&entry.seq).map(|(_, event)| Input::of_agent(entry.seq, event))
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
            self.since_snapshot = self.since_snapshot.saturating_add(1);
        }
        Ok(())
    }
}
