//! What is known of a run between two turns: its record, folded.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId};
use muster_shared::run::{
    ApplyError, Chain, ChainEntry, Covered, Entry, Input, LinkDraft, RecordEvent, RunState, apply,
    apply_late, note_decided,
};

use super::prepared::{NoteOfWrite, WrittenAt};
use super::silence::Heard;

/// Most lost agents that are remembered.
const MOST_LOST: usize = 256;

/// The folded record of a run, and what was put off.
#[derive(Debug, Default)]
pub struct RunLog {
    pub(crate) run: Option<Box<RunState>>,
    /// Who made the newest decision.
    pub(crate) author: Option<AgentId>,
    /// Inputs that were put off; all are of agents, so they stand in the record.
    pub(super) deferred: Vec<Input>,
    /// When tasks in work were heard of last, as far as that was looked up.
    pub(super) heard: Heard,
    /// Where the run was created; 0 while that is not known.
    pub(crate) created: Seq,
    /// The run's hash chain, as far as it was read and heard.
    chain: Chain,
    /// Entries folded since the state was kept aside.
    since_snapshot: u32,
    /// How far the record was read at once. Signals up to there have been folded.
    read_to: Seq,
    /// Agents that were lost since the run is known here.
    lost: BTreeSet<AgentId>,
    /// What own decisions offered, with the place of each, until all that was written before has been heard.
    offered: Vec<Offered>,
}

/// An offer that stands in the record.
#[derive(Debug)]
struct Offered {
    at: Seq,
    task: TaskId,
    generation: Generation,
}

impl RunLog {
    /// What is known from a state that was kept aside. The entries after it are still to be folded.
    #[must_use]
    pub fn restored(run: RunState, author: Option<AgentId>, created: Seq, chain: Chain) -> Self {
        Self { run: Some(Box::new(run)), author, created, chain, ..Self::default() }
    }

    /// Carries the chain on over what was read after what is known, in order.
    #[must_use]
    pub fn chained(mut self, read: impl IntoIterator<Item = ChainEntry>) -> Self {
        read.into_iter().for_each(|entry| self.chain.read(entry));
        self
    }

    /// The run's hash chain, as far as it is known.
    #[must_use]
    pub const fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Takes note of what agents wrote, in order.
    pub(super) fn note_covered(&mut self, covered: Vec<Covered>) {
        covered.into_iter().for_each(|entry| self.chain.note(entry));
    }

    /// The link of what is decided now.
    pub(super) fn draft_link(&self, run: RunId) -> LinkDraft {
        self.chain.draft(run)
    }

    /// Folds the entries after what is known.
    ///
    /// # Errors
    /// When an entry cannot follow those before it.
    pub fn read<E: Borrow<Entry>>(mut self, entries: &[E]) -> Result<Self, ApplyError> {
        let after = self.folded();
        let mut run = self.run.take().map(|run| *run);
        for entry in entries.iter().map(Borrow::borrow) {
            apply(&mut run, entry)?;
            if let RecordEvent::Decided(decided) = &entry.event {
                self.author = Some(decided.by.clone());
            }
        }
        self.run = run.map(Box::new);
        if let (Seq(0), Some(first)) = (self.created, entries.first()) {
            self.created = first.borrow().seq;
        }
        self.read_to = entries.last().map_or(after, |entry| entry.borrow().seq);
        self.since_snapshot = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        Ok(self)
    }

    /// The run as it stands; nothing before it is created.
    #[must_use]
    pub fn run(&self) -> Option<&RunState> {
        self.run.as_deref()
    }

    /// The highest position folded.
    #[must_use]
    pub fn folded(&self) -> Seq {
        self.run.as_ref().map_or(Seq(0), |run| run.folded)
    }

    /// Remembers who is lost: what it had begun may be heard later.
    pub(super) fn note_lost(&mut self, wakes: &[Input]) {
        for wake in wakes {
            let Input::AgentLost { agent, .. } = wake else { continue };
            if self.lost.len() >= MOST_LOST {
                self.lost.pop_first();
            }
            self.lost.insert(agent.clone());
        }
    }

    /// Whether an agent was lost since the run is known here.
    pub(super) fn was_lost(&self, agent: &AgentId) -> bool {
        self.lost.contains(agent)
    }

    /// Whether the state should be kept aside now. Counts anew from then on.
    pub(super) const fn snapshot_is_due(&mut self, every: u32) -> bool {
        let due = every > 0 && self.since_snapshot >= every;
        if due {
            self.since_snapshot = 0;
        }
        due
    }

    /// What a new owner decides upon: everything that no decision has named, and what may have got free.
    pub(super) fn left_over(&self) -> Vec<Input> {
        self.run().into_iter().flat_map(RunState::undecided).chain([Input::Capacity]).collect()
    }

    /// Folds a signal. Returns the input that it is, if a decision can follow from it.
    pub(super) fn take_in(&mut self, entry: &Entry) -> Option<Input> {
        let RecordEvent::Agent(key, event) = &entry.event else { return None };
        let run = self.run.as_deref_mut().filter(|_| entry.seq > self.read_to)?;
        self.offered.retain(|offered| offered.at > entry.seq);
        let precedes = |offered: &Offered| offered.task == key.task && offered.generation <= key.generation;
        if self.offered.iter().any(precedes) {
            // It was not offered yet when this was written, and whoever folds the record in order finds so.
            run.folded = run.folded.max(entry.seq);
            return None;
        }
        apply_late(run, entry.seq, key, event);
        self.since_snapshot = self.since_snapshot.saturating_add(1);
        run.pending.get(&entry.seq).map(|(_, event)| Input::of_agent(entry.seq, event))
    }

    /// Takes over the run as it stands after a decision that was just written from this position on: it was folded while it
    /// was made.
    pub(super) fn wrote(
        &mut self,
        at: WrittenAt,
        note: NoteOfWrite,
        by: AgentId,
        state: Option<Box<RunState>>,
    ) {
        let WrittenAt { first, link } = at;
        self.run = state;
        if let Some(run) = &mut self.run {
            note_decided(run, note.decided, first);
        }
        let offered = note.offered.into_iter();
        self.offered.extend(offered.map(|(task, generation)| Offered { at: first, task, generation }));
        self.chain.wrote(first, link);
        self.author = Some(by);
        self.since_snapshot = self.since_snapshot.saturating_add(note.entries);
    }
}
