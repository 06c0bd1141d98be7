//! Tasks: what is offered to agents, and the states they pass through.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::child::Background;
use super::conversation::Turn;
use super::goal::CorpusRef;
use super::limits::RunLimits;
use super::peer::Information;
use super::rights::TaskRights;
use super::trial::TrialMark;
use super::wait::Answered;
use super::work::Work;
use crate::ids::{Generation, Queue, RunId, TaskId, TaskIndex};
use crate::time::Millis;
use crate::wire::{Encoding, TraceContext};

/// The state of a task (R3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// In the plan, or put down; not offered.
    #[default]
    Created,
    /// Put down until what it waits for is there. In nobody's hands and not offered meanwhile.
    Waiting,
    /// Offered; nobody has started it as far as the run has decided.
    Queued,
    /// An agent works on it.
    Processing,
    /// It ended well.
    Completed,
    /// It failed for good.
    Failed,
    /// It was cut off by a deadline or a cancellation.
    Aborted,
    /// Somebody decided to leave it out. Not a failure.
    Skipped,
    /// It cannot start because a task it needs failed.
    Blocked,
    /// It was split into smaller tasks.
    Split,
}

impl TaskStatus {
    /// Whether nothing more will happen to the task by itself.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        match self {
            Self::Created | Self::Waiting | Self::Queued | Self::Processing => false,
            Self::Completed | Self::Failed | Self::Aborted | Self::Skipped | Self::Blocked | Self::Split => {
                true
            }
        }
    }

    /// Whether a task with this state is in a queue or in an agent's hands, or some of those below it are.
    #[must_use]
    pub const fn is_in_work(self) -> bool {
        matches!(self, Self::Queued | Self::Processing)
    }
}

/// An offer of a task. Its record entry is at the same time its queue entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskOffered {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// Which offer of it, from 1.
    pub generation: Generation,
    /// Where it waits.
    pub queue: Queue,
    /// What is to be done.
    pub work: Work,
    /// The person's own words.
    pub goal: String,
    /// The role to play, in the person's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role_name: String,
    /// The earlier runs that the goal follows, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<Turn>,
    /// The run's documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corpus: Option<CorpusRef>,
    /// Model to use instead of the agent's own setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Limits of the run.
    pub limits: RunLimits,
    /// The most that this generation of the task may use.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// What whoever does it may use; everything when absent.
    #[serde(default, skip_serializing_if = "TaskRights::is_open")]
    pub rights: TaskRights,
    /// When the task's time is up.
    pub deadline: Millis,
    /// The first of the earlier generations whose steps this one goes on from; every one between belongs to it too.
    /// Nothing when the task is begun from its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<Generation>,
    /// What came of what the task waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<Box<Answered>>,
    /// What other tasks told it so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Information>,
    /// Whether whoever does it may ask its peers: the orchestrators at work understand it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_ask_peers: bool,
    /// The tasks that handed it over, one to the next, the first of them first (O4).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<TaskIndex>,
    /// Tools that failed it before: whoever does it sees them only where it has no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// Whether whoever does it should have nothing else in hand: agents died of it, or of what they did beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// What the run is told of the work that it is a part of, if it belongs to a task of another run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Box<Background>>,
    /// The span below which those of whoever does it stand (W3C `traceparent`), where that is none of the run's own trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The trial that it takes part in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<Box<TrialMark>>,
    /// Guards fences in prompts: unguessable to documents, the same for every step and attempt.
    pub nonce: String,
    /// How events of this run are encoded.
    #[serde(default)]
    pub encoding: Encoding,
}
