//! Whether an agent keeps the protocol: what it is given, what it was seen to do, and what follows from that.

pub(crate) mod check;
pub(crate) mod drive;
mod offers;
#[cfg(test)]
mod tests;

use muster_bus::QueueSettings;
use muster_shared::flow::ContractSchemas;
use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId};
use muster_shared::time::Millis;

pub(crate) use offers::Given;

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
pub(crate) enum TrialKind {
    /// A task like any other, addressed to the agent.
    Plain,
    /// A task in the queue of its role.
    OfRole,
    /// A task whose offer is too large for a message: its body lies in the object store.
    Stored,
    /// Another agent began it and took one step.
    TakenOver,
    /// An earlier generation took one step and was put down: this one goes on from it.
    Continued,
    /// Its outcome stands in the record already.
    Closed,
    /// It is cancelled once it was started.
    Cancelled,
    /// It is to be put down once it was started.
    Parked,
    /// It is delivered once more while it is being worked on.
    Redelivered,
    /// Another agent writes to its record while it is being worked on: the next write is refused.
    Overtaken,
}

/// How a trial is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With an outcome.
    Outcome,
    /// Put down.
    PutDown,
    /// With nothing from this agent: somebody else has ended it.
    Nothing,
}

impl TrialKind {
    /// All of them, in the order in which they are tried.
    pub(crate) const ALL: [Self; 10] = [
        Self::Plain,
        Self::OfRole,
        Self::Stored,
        Self::TakenOver,
        Self::Continued,
        Self::Closed,
        Self::Cancelled,
        Self::Parked,
        Self::Redelivered,
        Self::Overtaken,
    ];

    /// What people are told of it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "the plain task",
            Self::OfRole => "the task in the role's queue",
            Self::Stored => "the task with a stored offer",
            Self::TakenOver => "the task that another agent had begun",
            Self::Continued => "the task that goes on from an earlier generation",
            Self::Closed => "the closed task",
            Self::Cancelled => "the cancelled task",
            Self::Parked => "the task to be put down",
            Self::Redelivered => "the task that was delivered twice",
            Self::Overtaken => "the task that another agent took",
        }
    }

    /// What was done before the agent comes: starts of its generation, and steps.
    pub(crate) const fn before(self) -> (u32, u32) {
        match self {
            Self::TakenOver => (1, 1),
            Self::Continued => (0, 1),
            Self::Plain
            | Self::OfRole
            | Self::Stored
            | Self::Closed
            | Self::Cancelled
            | Self::Parked
            | Self::Redelivered
            | Self::Overtaken => (0, 0),
        }
    }

    /// Which offer of its task it is.
    pub(crate) const fn generation(self) -> Generation {
        match self {
            Self::Continued => Generation(2),
            Self::Plain
            | Self::OfRole
            | Self::Stored
            | Self::TakenOver
            | Self::Closed
            | Self::Cancelled
            | Self::Parked
            | Self::Redelivered
            | Self::Overtaken => Generation(1),
        }
    }

    /// How it is to end.
    pub(crate) const fn end(self) -> End {
        match self {
            Self::Plain
            | Self::OfRole
            | Self::Stored
            | Self::TakenOver
            | Self::Continued
            | Self::Cancelled
            | Self::Redelivered => End::Outcome,
            Self::Parked => End::PutDown,
            Self::Closed | Self::Overtaken => End::Nothing,
        }
    }

    /// Whether the agent is to work on it.
    pub(crate) const fn is_worked_on(self) -> bool {
        match self {
            Self::Closed => false,
            Self::Plain
            | Self::OfRole
            | Self::Stored
            | Self::TakenOver
            | Self::Continued
            | Self::Cancelled
            | Self::Parked
            | Self::Redelivered
            | Self::Overtaken => true,
        }
    }
}

/// A task that the agent was given.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    /// What it is about.
    pub(crate) kind: TrialKind,
    /// Its run; every trial has its own.
    pub(crate) run: RunId,
    /// The task.
    pub(crate) task: TaskId,
    /// When it was offered.
    pub(crate) from: Millis,
    /// When it was looked away from.
    pub(crate) until: Millis,
    /// When what is special about it was done while the agent worked: the order was sent, the delivery handed on, or
    /// another agent wrote.
    pub(crate) disturbed_at: Option<Millis>,
}

/// All that was seen of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Observations {
    /// The agent.
    pub(crate) agent: AgentId,
    /// Its role, by its own word.
    pub(crate) role: String,
    /// What it promises, by its own word.
    pub(crate) contract: ContractSchemas,
    /// Why the tasks it was given do not fit what it takes on; empty where they do.
    pub(crate) unfit: Vec<String>,
    /// What passed, in order.
    pub(crate) passed: Vec<Passed>,
    /// What it was given, in order.
    pub(crate) trials: Vec<Trial>,
    /// Its two queues as they should be.
    pub(crate) queues: Vec<QueueSettings>,
    /// All queues as they are.
    pub(crate) found: Vec<QueueSettings>,
    /// How its process ended, if it did not last, and during which trial.
    pub(crate) ended: Option<(TrialKind, String)>,
    /// When watching ended.
    pub(crate) until: Millis,
}

impl Observations {
    /// A trial of this kind, if there was one.
    pub(crate) fn trial(&self, kind: TrialKind) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.kind == kind)
    }
}
