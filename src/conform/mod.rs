//! Whether an agent keeps the protocol: what it is given, what it was seen to do, and what follows from that.

pub(crate) mod check;
pub(crate) mod drive;
#[cfg(test)]
mod tests;

use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId};
use muster_shared::time::Millis;

/// A message that passed.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    /// When it was seen.
    pub(crate) at: Millis,
    /// Its subject.
    pub(crate) subject: String,
    /// Its headers.
    pub(crate) headers: Vec<(String, String)>,
    /// Its payload.
    pub(crate) payload: Vec<u8>,
    /// Its place in the record, if it got there.
    pub(crate) stored: Option<Seq>,
}

impl Passed {
    /// A header, whatever the case of its name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// What a trial is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A task like any other.
    Plain,
    /// Another agent began it and took one step.
    TakenOver,
    /// Its outcome stands in the record already.
    Closed,
    /// It is cancelled once it was started.
    Cancelled,
}

/// A task that the agent was given.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    /// What it is about.
    pub(crate) kind: Kind,
    /// Its run; every trial has its own.
    pub(crate) run: RunId,
    /// The task.
    pub(crate) task: TaskId,
    /// Its generation.
    pub(crate) generation: Generation,
    /// When it was offered.
    pub(crate) from: Millis,
    /// When it was looked away from.
    pub(crate) until: Millis,
    /// When its cancellation was sent.
    pub(crate) cancelled_at: Option<Millis>,
}

/// All that was seen of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    /// The agent.
    pub(crate) agent: AgentId,
    /// Its role, by its own word.
    pub(crate) role: String,
    /// What passed, in order.
    pub(crate) passed: Vec<Passed>,
    /// What it was given, in order.
    pub(crate) trials: Vec<Trial>,
    /// When watching ended.
    pub(crate) until: Millis,
}
