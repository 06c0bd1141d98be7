//! Messages that are not part of the record: commands, heartbeats, and what is watched live.

use std::time::Duration;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::tool_server::is_tool_server_name;
use crate::flow::{AgentState, ContractSchemas, Goal, Information, Presence, Usage};
use crate::ids::{AgentId, Generation, Role, RunId, TaskId};
use crate::run::{ChildEnd, Origin, Request, SignedOrder};

/// A durable command. `cmd.<run>.<name>`; the answer is the run's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Work on a goal. The asker names the run, so that asking twice makes one run.
    Submit {
        /// The run to be.
        run: RunId,
        /// The goal.
        goal: Box<Goal>,
    },
    /// Work on a goal for a task of another run, which waits for it. Given out again, it has a run that has ended tell
    /// its end again.
    Attend {
        /// The run to be.
        run: RunId,
        /// The goal.
        goal: Box<Goal>,
        /// Tells this command from others like it; the message's own id when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Uuid>,
    },
    /// A run that was begun for a task of this one has ended.
    ChildEnded {
        /// The run.
        run: RunId,
        /// The run that has ended.
        child: RunId,
        /// How.
        end: Box<ChildEnd>,
        /// See [`Command::Attend`].
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Uuid>,
    },
    /// Begin a run from where another one stood.
    Fork {
        /// The run to be.
        run: RunId,
        /// The other run, and where it stood.
        from: Origin,
        /// Model for every role, in place of the other run's.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// Ask something of a run that goes on.
    Request(Request),
}

impl Command {
    /// The run that the command is for.
    #[must_use]
    pub const fn run(&self) -> RunId {
        match self {
            Self::Submit { run, .. }
            | Self::Attend { run, .. }
            | Self::ChildEnded { run, .. }
            | Self::Fork { run, .. } => *run,
            Self::Request(request) => request.run,
        }
    }

    /// What tells the command from others like it, if it says so itself. A submitted goal does not: its run tells it.
    #[must_use]
    pub const fn id(&self) -> Option<Uuid> {
        match self {
            Self::Submit { .. } | Self::Fork { .. } => None,
            Self::Attend { id, .. } | Self::ChildEnded { id, .. } => *id,
            Self::Request(request) => request.own_id(),
        }
    }

    /// The command with the id of its message and with who sent it, as far as it names neither and needs them.
    #[must_use]
    pub fn sent(mut self, message: Uuid, sender: &AgentId) -> Self {
        match &mut self {
            Self::Submit { .. } | Self::Fork { .. } => {}
            Self::Attend { id, .. } | Self::ChildEnded { id, .. } => {
                id.get_or_insert(message);
            }
            Self::Request(request) => {
                if request.id.is_nil() {
                    request.id = message;
                }
                if request.by.is_empty() {
                    request.by = sender.to_string();
                }
            }
        }
        self
    }

    /// How long it is of use, if that is limited: a goal as long as it may take.
    #[must_use]
    pub fn lifetime(&self) -> Option<Duration> {
        if let Self::Submit { goal, .. } | Self::Attend { goal, .. } = self {
            goal.deadline_ms.map(Duration::from_millis)
        } else {
            None
        }
    }

    /// The last token of its subject.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Submit { .. } => "submit",
            Self::Attend { .. } => "attend",
            Self::ChildEnded { .. } => "child_ended",
            Self::Fork { .. } => "fork",
            Self::Request(request) => request.action.name(),
        }
    }
}

/// What an agent is and can do (F5). Kept in the registry while the agent lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Profile {
    /// The process.
    pub agent: AgentId,
    /// Its role, or `orchestrator`.
    pub role: String,
    /// Process id on its host; 0 when it does not say.
    #[serde(default)]
    pub pid: u32,
    /// The host.
    #[serde(default)]
    pub host: String,
    /// Version of the program.
    #[serde(default)]
    pub version: String,
    /// Newest event version it knows.
    #[serde(default = "one")]
    pub event_version: u32,
    /// Tasks it does at the same time.
    #[serde(default = "one")]
    pub slots: u32,
    /// Tasks (or runs) in hand.
    #[serde(default)]
    pub busy: u32,
    /// The model it asks, as `provider/model`; empty when it asks none.
    #[serde(default)]
    pub model: String,
    /// Tools it may use.
    #[serde(default)]
    pub tools: Vec<String>,
    /// When it started, in UTC milliseconds; 0 when it does not say.
    #[serde(default)]
    pub started_at: u64,
    /// Resident memory in bytes, when known.
    #[serde(default)]
    pub resident_bytes: u64,
    /// What the role is for, when a user defined it: planners are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub specialist: Option<Box<Advertised>>,
    /// Its name on its host, which stays the same when it is started again; the id of the process when it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How long it may have nothing to write about a task that it works on, in milliseconds; what limits of runs say when
    /// it says nothing.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub quiet_ms: u64,
    /// Whether a task gateway speaks for it: a connection of its name may not be there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_gateway: bool,
    /// Of an orchestrator: some of the runs that it leaves alone for now, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<SetAside>,
    /// Of an orchestrator: how often it left a run alone since it started.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub times_set_aside: u64,
    /// Of an orchestrator: agents that get no tasks for now, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<ExcludedAgent>,
    /// Where it serves its figures for Prometheus (`127.0.0.1:9464`); empty where it does not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub metrics: String,
    /// What its slots do, what its role can do, and what that costs.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub presence: Presence,
}

impl Profile {
    /// Most tasks that one process may say it does at the same time.
    pub const MAX_SLOTS: u32 = 1024;
    /// Longest name, and longest host, in bytes.
    pub const MAX_NAME: usize = 256;
    /// Most tools that one process may name.
    pub const MAX_TOOLS: usize = 1024;

    /// What no process can mean, in words; nothing when all of it is plausible.
    #[must_use]
    pub fn implausible(&self) -> Option<String> {
        let Self { slots, name, host, tools, model, version, metrics, .. } = self;
        if !(1..=Self::MAX_SLOTS).contains(slots) && self.role != Self::ORCHESTRATOR {
            return Some(format!("it claims {slots} slots: 1 to {} are allowed", Self::MAX_SLOTS));
        }
        let texts =
            [("name", name), ("host", host), ("model", model), ("version", version), ("metrics", metrics)];
        if let Some((what, text)) = texts.into_iter().find(|(_, text)| text.len() > Self::MAX_NAME) {
            return Some(format!("its {what} has {} bytes: {} are the most", text.len(), Self::MAX_NAME));
        }
        let many = tools.len() > Self::MAX_TOOLS;
        many.then(|| format!("it names {} tools: {} are the most", tools.len(), Self::MAX_TOOLS))
    }

    /// Tasks (or runs) in hand: what it says of that and what its slots do are told at different moments, and an agent
    /// may say one of them only.
    #[must_use]
    pub fn in_hand(&self) -> u32 {
        let at_work = self.presence.states.iter().filter(|state| **state != AgentState::Idle).count();
        self.busy.max(u32::try_from(at_work).unwrap_or(u32::MAX))
    }

    /// Most runs that are left alone and told of.
    pub const MOST_SET_ASIDE: usize = 8;

    /// The role under which orchestrators announce themselves; they take no tasks.
    pub const ORCHESTRATOR: &'static str = "orchestrator";

    /// What the role begins with under which a tool server announces itself, before its name; it takes no tasks.
    pub const TOOL_SERVER: &'static str = "tools-";

    /// The role under which the tool server of a name announces itself.
    #[must_use]
    pub fn role_of_tool_server(name: &str) -> String {
        format!("{}{name}", Self::TOOL_SERVER)
    }

    /// The name of the tool server that this is, if it is one.
    #[must_use]
    pub fn tool_server(&self) -> Option<&str> {
        let name = self.role.strip_prefix(Self::TOOL_SERVER)?;
        is_tool_server_name(name).then_some(name)
    }
}

/// A run that its orchestrator leaves alone for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct SetAside {
    /// The run.
    pub run: RunId,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// Until when, in UTC milliseconds.
    #[serde(default)]
    pub until: u64,
}

impl SetAside {
    /// Longest reason, in characters.
    pub const MAX_REASON: usize = 400;
}

/// An agent that failed several tasks in a row and gets none for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ExcludedAgent {
    /// The agent.
    pub agent: AgentId,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// Until when, in UTC milliseconds.
    #[serde(default)]
    pub until: u64,
}

const fn one() -> u32 {
    1
}

/// What a specialist says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Advertised {
    /// What it is for, in a sentence or two.
    pub description: String,
    /// What it can do, in a word or two each; the `needs` of a task are compared with these.
    pub capabilities: Vec<String>,
    /// What it takes on and what it gives.
    #[serde(skip_serializing_if = "ContractSchemas::is_empty")]
    pub contract: ContractSchemas,
}

/// A message that interrupts at once: `ctl.all`, `ctl.role.<role>`, `ctl.agent.<agent>`. May be lost; a durable
/// command or the record says the same for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "control", rename_all = "snake_case")]
pub enum ControlMessage {
    /// Drop all tasks of a run.
    CancelRun {
        /// The run.
        run: RunId,
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Drop one generation of a task.
    CancelTask {
        /// The run.
        run: RunId,
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Put all tasks of a run down: journal what there is, and leave them to be offered again.
    ParkRun {
        /// The run.
        run: RunId,
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Put one generation of a task down.
    ParkTask {
        /// The run.
        run: RunId,
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Another task told this one something: it is taken up with the next step. The record says it too, and whoever goes
    /// on with the task is told again.
    Inform {
        /// The run.
        run: RunId,
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// What it is told.
        information: Vec<Information>,
        /// The progress tree as it stands now, where it has changed since; empty otherwise.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        progress: String,
    },
    /// Hand everything over and leave.
    Shutdown,
    /// Between orchestrators: about a run that another one has.
    Owners(OwnerMessage),
}

/// What orchestrators tell each other about runs that another one has. All of it may be lost: a command stays in its
/// queue until it is on record, and whoever takes a run over looks at its deadlines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum OwnerMessage {
    /// A command came to the wrong one. A request: it is answered.
    Order {
        /// The command.
        command: Box<Command>,
        /// Who signed it.
        #[serde(skip_serializing_if = "Option::is_none")]
        signed: Option<Box<SignedOrder>>,
    },
    /// The answer to an order.
    Answer {
        /// What became of it.
        answer: OwnerAnswer,
    },
    /// It is time to look at a run.
    Due {
        /// The run.
        run: RunId,
    },
}

/// What became of a command that was handed to another orchestrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OwnerAnswer {
    /// It stands in the record, or changes nothing any more.
    Recorded,
    /// There is no such run.
    NoSuchRun,
    /// Not now, or not here.
    Later,
}

/// An agent is alive: `hb.<role>.<agent>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Heartbeat {
    /// The process.
    pub agent: AgentId,
    /// Tasks in hand, of how many slots.
    #[serde(default)]
    pub busy: u32,
    /// See [`Profile::slots`].
    #[serde(default = "one")]
    pub slots: u32,
    /// What those slots do that have a task; the others are idle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<AgentState>,
}

/// What is happening right now: `live.<run>.<role>.<agent>.<task>`. May be lost; the record has what counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Live {
    /// The run.
    pub run: RunId,
    /// The role that speaks.
    pub role: Role,
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// The step being taken, from 1.
    pub step: u32,
    /// What it is.
    pub kind: LiveKind,
}

/// How a status begins that tells of a model that has not answered for a while.
pub const UNANSWERED: &str = "no answer from ";

/// What is watched live (W13).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LiveKind {
    /// More of the model's thought.
    Thought {
        /// The text to append.
        text: String,
    },
    /// More of the model's answer.
    Answer {
        /// The text to append.
        text: String,
    },
    /// One line that says what is going on.
    Status {
        /// The line.
        text: String,
        /// What the task used so far.
        usage: Usage,
    },
}
