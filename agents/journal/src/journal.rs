//! What is known of a task while it is in an agent's hands.

use std::borrow::Borrow;
use std::time::Duration;

use muster_shared::ids::Seq;
use muster_shared::run::{AgentEvent, AgentKey, Entry, RecordEvent, Say};

/// A time since any beginning, and how often the connection to the bus had been made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// The time; it never goes back.
    pub at: Duration,
    /// How often the connection had been made anew.
    pub connections: u64,
}

/// What was done before, as it stands in the record.
#[derive(Debug, Clone)]
pub struct Found<E> {
    /// The entries of each of the generations that this one goes on from.
    pub before: Vec<Vec<E>>,
    /// Those of this generation.
    pub entries: Vec<E>,
}

impl<E> Default for Found<E> {
    fn default() -> Self {
        Self { before: Vec::new(), entries: Vec::new() }
    }
}

/// The journal of one generation of one task, kept by one agent. It does one thing at a time; one that is given up half-way
/// may be in the record all the same, and moves its place there when the next is written.
#[derive(Debug)]
pub struct Journal<E> {
    pub(crate) mine: AgentKey,
    /// How long a bus that cannot be reached is waited for.
    pub(crate) patience: Duration,
    /// Our last word, as far as we know.
    pub(crate) last: Seq,
    /// Where the task was begun by us.
    pub(crate) started: Seq,
    /// Up to where it is known that those who began it after us had no right to.
    pub(crate) cleared: Seq,
    /// When the task was ours for the last time, and over which connection we knew.
    pub(crate) ours_at: Moment,
    /// When its offer was the newest of the task.
    pub(crate) newest_at: Duration,
    pub(crate) found: Found<E>,
    /// Who has a say in each of the generations that this one goes on from.
    pub(crate) says: Vec<Say>,
    /// Whether another process may write for the same agent, so that nothing is written that was thought of before what
    /// stands there.
    pub(crate) shared: bool,
}

impl<E> Journal<E> {
    /// The journal of a task that is about to be begun.
    #[must_use]
    pub fn new(mine: AgentKey, patience: Duration, now: Moment) -> Self {
        Self {
            mine,
            patience,
            last: Seq(0),
            started: Seq(0),
            cleared: Seq(0),
            ours_at: now,
            newest_at: now.at,
            found: Found::default(),
            says: Vec::new(),
            shared: false,
        }
    }

    /// The same of an agent that several processes may write for, one after the other: what stands there and is not known
    /// here ends this one's part ([`Lost`](crate::JournalFailure::Lost)), whoever wrote it.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { shared: true, ..self }
    }

    /// The same of a task that was begun at the first of these positions, and of which all is known up to the second.
    #[must_use]
    pub fn begun(self, started: Seq, last: Seq) -> Self {
        Self { started, last, ..self }
    }

    /// The last position in the record that is known to be ours.
    #[must_use]
    pub const fn last(&self) -> Seq {
        self.last
    }

    /// How long a bus that cannot be reached is waited for.
    #[must_use]
    pub const fn patience(&self) -> Duration {
        self.patience
    }

    /// What was done before the task was begun here.
    pub fn take_found(&mut self) -> Found<E> {
        std::mem::take(&mut self.found)
    }

    /// Whether what stands after our last word under our own name ends our part in the task.
    pub(crate) fn ends_part(&self, key: &AgentKey, written: &AgentEvent) -> bool {
        key.agent == self.mine.agent && written.kind().is_decided_upon()
    }

    /// Our word of this position was taken, and had been sent at this moment or later.
    pub(crate) const fn confirm(&mut self, last: Seq, at: Moment) {
        (self.last, self.ours_at) = (last, at);
    }
}

impl<E: Borrow<Entry>> Journal<E> {
    /// The last place, after our last word, where another of the role begins the task: whether it may is for whoever decides
    /// to say. Nothing else that others write makes a difference, as they have no say.
    pub(crate) fn is_begun_by_another(&self, entries: &[E]) -> Option<Seq> {
        let begins = |entry: &&E| match &(*entry).borrow().event {
            RecordEvent::Agent(key, AgentEvent::Started(_)) => {
                key.agent != self.mine.agent && key.role == self.mine.role
            }
            _ => false,
        };
        let last = entries.iter().rev().find(begins).map(|entry| entry.borrow().seq);
        last.filter(|seq| *seq > self.cleared)
    }
}
