//! What agents report of the tasks they hold.

use std::str::FromStr;
use std::sync::Arc;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::{Awaited, Outcome, Step, Usage};
use crate::ids::{AgentId, Attempt, Generation, Role, TaskId};

/// Who writes about which generation of which task: the variable part of an agent's subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct AgentKey {
    /// The agent's role.
    pub role: Role,
    /// The agent.
    pub agent: AgentId,
    /// The task.
    pub task: TaskId,
    /// The generation.
    pub generation: Generation,
}

/// What an agent reports of the task it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AgentEvent {
    /// It started.
    Started(Started),
    /// It is about to call a tool whose effect cannot be taken back.
    ToolStarted(ToolStarted),
    /// It took a step.
    Step(Step),
    /// It hands the task over in good order.
    Released(Released),
    /// The task ended. Shared: it may be large, and is kept as it came.
    Outcome(Arc<Outcome>),
    /// Something was written under the name of the agent that cannot be read.
    Unreadable(Unreadable),
}

impl AgentEvent {
    /// The kind, as it stands in the subject.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::Started(_) => EventKind::Started,
            Self::ToolStarted(_) => EventKind::Tool,
            Self::Step(_) => EventKind::Step,
            Self::Released(_) => EventKind::Released,
            Self::Outcome(_) => EventKind::Outcome,
            Self::Unreadable(unreadable) => unreadable.kind,
        }
    }

    /// The step that it records: a step that was done, or the last one, which is stored with the outcome.
    #[must_use]
    pub fn step(&self) -> Option<&Step> {
        match self {
            Self::Step(step) => Some(step),
            Self::Outcome(outcome) => outcome.last_step.as_deref(),
            _ => None,
        }
    }
}

/// An entry under an agent's name that cannot be read. Nobody ever writes one: it is what a reader makes of what is
/// damaged, foreign, or not what the protocol has. One that was to begin or to end a generation ends it as a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Unreadable {
    /// What its subject says it is.
    pub kind: EventKind,
    /// What is wrong with it, with the field if there is one.
    pub why: String,
}

/// The last token of an agent's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::IntoStaticStr)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EventKind {
    /// See [`AgentEvent::Started`].
    Started,
    /// See [`AgentEvent::ToolStarted`].
    Tool,
    /// See [`AgentEvent::Step`].
    Step,
    /// See [`AgentEvent::Released`].
    Released,
    /// See [`AgentEvent::Outcome`].
    Outcome,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Started, Self::Tool, Self::Step, Self::Released, Self::Outcome];

    /// Its name, as it stands in subjects.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether orchestrators decide upon it: it begins, hands over or ends a generation of a task.
    #[must_use]
    pub const fn is_decided_upon(self) -> bool {
        !matches!(self, Self::Tool | Self::Step)
    }
}

impl FromStr for EventKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not a kind of agent event"))
    }
}

/// An agent started a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Started {
    /// Which try of this generation, from 1; 0, or left out, leaves the counting to whoever decides.
    #[serde(default)]
    pub attempt: Attempt,
    /// Where the queue's acknowledgement goes, so that an orchestrator can hand the task on when the agent dies.
    pub ack: String,
    /// The process.
    #[serde(default)]
    pub pid: u32,
    /// The machine.
    #[serde(default)]
    pub host: String,
    /// The last step that an earlier attempt journaled; work goes on after it.
    #[serde(default)]
    pub after_step: u32,
}

/// A tool whose effect cannot be taken back is about to be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ToolStarted {
    /// The step as far as it is known: the model's answer is journaled with it.
    pub step: Step,
    /// `run/task/gen/step`, for tools that can tell a repetition by it. Empty when nothing is done yet and the answer alone
    /// is to be kept.
    pub idempotency_key: String,
}

/// A task is handed over in good order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Released {
    /// Why.
    pub reason: String,
    /// Whether the generation ends with this: nobody takes it over, the next one goes on from its last step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// What was used and has not been counted: all that the generation used when it is parked, else what was used for
    /// the step being taken, which no step holds.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub usage: Usage,
    /// What the task waits for, when it is put down for that: the generation ends with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Box<Awaited>>,
}
