//! What is known of a task while it is in an agent's hands.

use std::time::Duration;

use muster_shared::ids::{Attempt, Seq};
use muster_shared::run::{AgentEvent, AgentKey};

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
    /// Which try it is, once it was begun here.
    pub(crate) attempt: Option<Attempt>,
    /// How long a bus that cannot be reached is waited for.
    pub(crate) patience: Duration,
    /// Our last word, as far as we know.
    pub(crate) last: Seq,
    /// When the task was ours for the last time, and over which connection we knew.
    pub(crate) ours_at: Moment,
    /// When its offer was the newest of the task.
    pub(crate) newest_at: Duration,
    pub(crate) found: Found<E>,
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
            attempt: None,
            patience,
            last: Seq(0),
            ours_at: now,
            newest_at: now.at,
            found: Found::default(),
            shared: false,
        }
    }

    /// The same of an agent that several processes may write for, one after the other: what stands there and is not known
    /// here ends this one's part ([`Lost`](crate::JournalFailure::Lost)), whoever wrote it.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { shared: true, ..self }
    }

    /// The same of a task that has been begun, and of which all is known up to this position.
    #[must_use]
    pub fn begun(self, last: Seq) -> Self {
        Self { last, ..self }
    }

    /// Who keeps it, and of what.
    #[must_use]
    pub const fn mine(&self) -> &AgentKey {
        &self.mine
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

    /// Whether what somebody wrote about the task, after our last word, ends our part in it. Who takes it over begins a
    /// later try; nobody else has a say in it, as whoever decides sees it too.
    pub(crate) fn ends_part(&self, key: &AgentKey, written: &AgentEvent) -> bool {
        if key.agent == self.mine.agent {
            return written.kind().is_decided_upon();
        }
        let Some(own) = self.attempt else { return true };
        match written {
            AgentEvent::Started(started) => {
                key.role == self.mine.role && (started.attempt > own || started.attempt == Attempt(0))
            }
            AgentEvent::ToolStarted(_)
            | AgentEvent::Step(_)
            | AgentEvent::Released(_)
            | AgentEvent::Outcome(_)
            | AgentEvent::Unreadable(_) => false,
        }
    }

    /// Our word of this position was taken, and had been sent at this moment or later.
    pub(crate) const fn confirm(&mut self, last: Seq, at: Moment) {
        (self.last, self.ours_at) = (last, at);
    }
}
