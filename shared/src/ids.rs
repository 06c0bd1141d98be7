//! Names of things: runs, tasks, agents, roles, queues. All of them are safe as one token of a subject.

mod task_index;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

pub use task_index::TaskIndex;

use crate::text_form::text_form;

/// Why a text is not the name of the thing asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {wanted}")]
pub struct NameError {
    text: String,
    wanted: &'static str,
}

impl NameError {
    fn new(text: &str, wanted: &'static str) -> Self {
        let text = text.chars().take(80).collect();
        Self { text, wanted }
    }
}

/// A run: one goal being worked on. Shown as 32 hexadecimal digits; UUID hyphens are accepted when read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Uuid);

impl RunId {
    /// Wraps a UUID that the caller made. Its time is that of a client's clock: the order of runs is that of the event log.
    #[must_use]
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID itself.
    #[must_use]
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }

    /// The last twelve digits: enough for a person to tell runs apart, and for commands that name a run. The first ones
    /// are the time, and the same for all runs of a moment.
    #[must_use]
    pub fn short(&self) -> String {
        let text = self.to_string();
        text.get(text.len().saturating_sub(SHORT)..).unwrap_or(&text).to_owned()
    }
}

/// How many digits of a run's id are shown.
const SHORT: usize = 12;

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.as_simple())
    }
}

impl FromStr for RunId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Uuid::try_parse(text).map(Self).map_err(|_| NameError::new(text, "a run id (32 hexadecimal digits)"))
    }
}
text_form!(RunId, "RunId", "^[0-9a-fA-F-]{32,36}$", "A run, as a UUID without hyphens");

/// Only the canonical form counts (no sign, no leading zero), so that one task has one subject.
fn parse_position(text: &str) -> Option<u16> {
    let canonical = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    canonical.then(|| text.parse().ok()).flatten()
}

/// What an agent can be given to do: a leaf of the plan, or one of the run's own phases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskId {
    /// Make the plan.
    Plan,
    /// Execute a leaf.
    Leaf(TaskIndex),
    /// Reflect on a leaf that ended.
    Reflect(TaskIndex),
    /// Change the plan, for the nth time in this run (from 1).
    Refine(u32),
    /// Help to settle a conflict, the nth such task of the run (from 1).
    Settle(u32),
    /// Write the report.
    Write,
    /// Review the draft of the report, for the nth time in this run (from 1).
    DraftReview(u32),
}

impl TaskId {
    /// The index of the leaf that this task is, if it is one.
    #[must_use]
    pub const fn as_leaf(&self) -> Option<&TaskIndex> {
        if let Self::Leaf(index) = self { Some(index) } else { None }
    }

    /// The index of the leaf this task is about, if it is about one.
    #[must_use]
    pub const fn leaf(&self) -> Option<&TaskIndex> {
        if let Self::Leaf(index) | Self::Reflect(index) = self { Some(index) } else { None }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan => f.write_str("plan"),
            Self::Leaf(index) => index.fmt(f),
            Self::Reflect(index) => write!(f, "reflect-{index}"),
            Self::Refine(n) => write!(f, "refine-{n}"),
            Self::Settle(n) => write!(f, "settle-{n}"),
            Self::Write => f.write_str("write"),
            Self::DraftReview(n) => write!(f, "draft-review-{n}"),
        }
    }
}

impl FromStr for TaskId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let number = |n: &str| parse_position(n).map(u32::from);
        let task = match text {
            "plan" => Some(Self::Plan),
            "write" => Some(Self::Write),
            _ => match text.split_once('-') {
                Some(("reflect", index)) => index.parse().ok().map(Self::Reflect),
                Some(("refine", n)) => number(n).map(Self::Refine),
                Some(("settle", n)) => number(n).map(Self::Settle),
                Some(("draft", review)) => {
                    review.strip_prefix("review-").and_then(number).map(Self::DraftReview)
                }
                Some(_) | None => text.parse().ok().map(Self::Leaf),
            },
        };
        task.ok_or_else(|| {
            NameError::new(
                text,
                "a task (1-2-3, plan, reflect-1-2, refine-1, settle-1, write or draft-review-1)",
            )
        })
    }
}

text_form!(
    TaskId,
    "TaskId",
    "^(plan|write|refine-[0-9]+|settle-[0-9]+|draft-review-[0-9]+|(reflect-)?[1-9][0-9]*(-[1-9][0-9]*)*(~[a-z])?)$",
    "A task: the index of a leaf, or a phase of the run"
);

/// A kind of agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Splits a goal into a tree of tasks.
    Planner,
    /// Does leaves that act and check.
    Worker,
    /// Draws lessons from what ended.
    Reflector,
    /// Changes the plan while it runs.
    Refiner,
    /// Does leaves that find things out.
    Researcher,
    /// Delivers the answer.
    Writer,
    /// A role that a user defined.
    Specialist(RoleName),
}

impl Role {
    /// The roles that come with Muster, in the order a run meets them.
    pub const BUILT_IN: [Self; 6] =
        [Self::Planner, Self::Researcher, Self::Worker, Self::Reflector, Self::Refiner, Self::Writer];

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Planner => "planner",
            Self::Worker => "worker",
            Self::Reflector => "reflector",
            Self::Refiner => "refiner",
            Self::Researcher => "researcher",
            Self::Writer => "writer",
            Self::Specialist(name) => &name.0,
        }
    }

    /// Whether it does tasks of plans.
    #[must_use]
    pub const fn does_leaves(&self) -> bool {
        matches!(self, Self::Worker | Self::Researcher | Self::Specialist(_))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        match Self::BUILT_IN.iter().find(|role| role.as_str() == text) {
            Some(role) => Ok(role.clone()),
            None => text.parse().map(Self::Specialist),
        }
    }
}
text_form!(Role, "Role", "^[a-z][a-z0-9_]{0,31}$", "A kind of agent");

/// The name of a role that a user defined: lower-case letters, digits and `_`, 32 at most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleName(String);

impl FromStr for RoleName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        let rest = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if first && rest && text.len() <= 32 {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError::new(text, "a role (a lower-case letter, then letters, digits or _, 32 at most)"))
        }
    }
}

/// One process of the fleet, such as `worker-5f3a9c21`. Letters, digits, `-` and `_`, 64 at most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// The id of a process of `role`, told apart from others by `token` (random, chosen by the caller).
    #[must_use]
    pub fn new(role: &str, token: u32) -> Self {
        Self(format!("{role}-{token:08x}").into())
    }

    /// Whoever sends a message without saying who.
    #[must_use]
    pub fn anonymous() -> Self {
        Self("anonymous".into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AgentId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if good && !text.is_empty() && text.len() <= 64 {
            Ok(Self(text.into()))
        } else {
            Err(NameError::new(text, "an agent id (letters, digits, - and _, 64 at most)"))
        }
    }
}
text_form!(AgentId, "AgentId", "^[A-Za-z0-9_-]{1,64}$", "One process of the fleet");

/// Where an offer waits: for anybody of a role, or for one agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Queue {
    /// Any agent of the role may take it.
    Role(Role),
    /// Only this agent may take it (an addressed offer).
    Agent(AgentId),
}

/// Work-queue stream of the tasks.
pub const TASKS: &str = "TASKS";

impl Queue {
    /// Returns `true` if a message to this subject acknowledges a task of this queue. An orchestrator publishes such
    /// messages with its own rights, so an agent must not name the queue of another role.
    #[must_use]
    pub fn is_acknowledged_by(&self, subject: &str) -> bool {
        let delivery = subject.strip_prefix(&format!("$JS.ACK.{TASKS}.{self}."));
        delivery.is_some_and(|rest| rest.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit()))
    }

    /// The role whose agents take from it; absent for the queue of one agent.
    #[must_use]
    pub const fn role(&self) -> Option<&Role> {
        if let Self::Role(role) = self { Some(role) } else { None }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(role) => role.fmt(f),
            Self::Agent(agent) => write!(f, "@{agent}"),
        }
    }
}

impl FromStr for Queue {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        match text.strip_prefix('@') {
            Some(agent) => agent.parse().map(Self::Agent),
            None => text.parse().map(Self::Role),
        }
    }
}
text_form!(Queue, "Queue", "^@?[A-Za-z0-9_-]{1,64}$", "A queue: a role, or @ and an agent");

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter! {
    /// One offer of a task by decision, from 1. Rises with every new offer (redo, edit, re-offer).
    Generation(u32)
}
counter! {
    /// One agent's try within a generation, from 1. Rises with each `started`.
    Attempt(u32)
}
counter! {
    /// A question of a run, from 1.
    QuestionId(u32)
}
counter! {
    /// A position in the record, given by the broker. 0 is before everything.
    Seq(u64)
}

impl FromStr for QuestionId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        text.parse().map(Self).map_err(|_| NameError::new(text, "a question (a number from 1)"))
    }
}

impl FromStr for Generation {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        text.parse().map(Self).map_err(|_| NameError::new(text, "a generation (a number from 1)"))
    }
}
