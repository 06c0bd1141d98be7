//! What tasks ask of each other (F8): help, a word to other tasks, what the run knows, and who can do something. A request
//! travels as what a task waits for ([`Wait::Peer`](super::Wait)); its answer comes with the next offer, and both stand in
//! the record.

use std::collections::BTreeMap;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::context::{ContextEntry, in_text};
use super::limits::LONGEST_RUN_MS;
use crate::ids::{Role, TaskIndex};
use crate::settings;

/// A request of a task to its peers. Names are text as the asker wrote them: what is wrong with one is the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum PeerRequest {
    /// Another agent answers a question, as a task of its own.
    HelpRequest(HelpRequest),
    /// Other tasks are told something.
    InformationShare(InformationShare),
    /// What other tasks gave, or how the run stands. Answered from the record, without a model.
    ContextRequest(ContextRequest),
    /// Who can do something. Answered from the registry, without a model.
    CapabilityQuery(CapabilityQuery),
    /// A value of the shared context is to be written.
    ContextWrite(ContextWrite),
    /// What the shared context has. Answered from the record, without a model.
    ContextRead(ContextRead),
}

impl PeerRequest {
    /// What it is called.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::HelpRequest(_) => "help request",
            Self::InformationShare(_) => "information share",
            Self::ContextRequest(_) => "context request",
            Self::CapabilityQuery(_) => "capability query",
            Self::ContextWrite(_) => "context write",
            Self::ContextRead(_) => "context read",
        }
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn in_words(&self) -> String {
        let what = match self {
            Self::HelpRequest(help) => format!("{} is asked: {}", help.to.in_words(), help.question),
            Self::InformationShare(share) => {
                let to =
                    if share.tasks.is_empty() { "whom it concerns".into() } else { share.tasks.join(", ") };
                format!("to {to}: {}", share.text)
            }
            Self::ContextRequest(wanted) => {
                let of = if wanted.tasks.is_empty() { "the run".into() } else { wanted.tasks.join(", ") };
                if wanted.question.is_empty() { of } else { format!("{of}: {}", wanted.question) }
            }
            Self::CapabilityQuery(query) => format!("who can do {}?", query.needs.join(", ")),
            Self::ContextWrite(wanted) => format!("{} = {}", wanted.key, in_text(&wanted.value)),
            Self::ContextRead(wanted) if wanted.prefix => format!("{}*", wanted.key),
            Self::ContextRead(wanted) => wanted.key.clone(),
        };
        format!("{}: {what}", self.name())
    }

    /// How long its texts are together, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let all = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        match self {
            Self::HelpRequest(HelpRequest { to, question, why }) => {
                to.name().len() + question.len() + why.len()
            }
            Self::InformationShare(InformationShare { text, tasks }) => text.len() + all(tasks),
            Self::ContextRequest(ContextRequest { tasks, question }) => question.len() + all(tasks),
            Self::CapabilityQuery(CapabilityQuery { needs }) => all(needs),
            Self::ContextWrite(ContextWrite { key, value, version: _ }) => {
                key.len() + value.to_string().len()
            }
            Self::ContextRead(ContextRead { key, prefix: _ }) => key.len(),
        }
    }
}

/// A question to another agent. It becomes a task, so that it is answered once whoever dies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct HelpRequest {
    /// Who is asked.
    pub to: Peer,
    /// What, understandable by itself.
    pub question: String,
    /// What hangs on it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Who is asked for help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    /// Any agent of a role.
    Role(String),
    /// Any agent of the role that says it can do this.
    Capability(String),
    /// The role of one agent: all agents of a role can do the same, and one that dies is no loss.
    Agent(String),
}

impl Peer {
    /// The name by which it is asked.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Role(name) | Self::Capability(name) | Self::Agent(name) => name,
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Role(name) | Self::Agent(name) => name.clone(),
            Self::Capability(name) => format!("who can do {name}"),
        }
    }
}

/// Something that other tasks of the run should know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct InformationShare {
    /// What.
    pub text: String,
    /// For which tasks, by index or name; for all that it concerns when empty: those that depend on this one, or work
    /// for the same task as it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
}

/// A wish to know what other tasks gave, or how the run stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct ContextRequest {
    /// Of which tasks, by index or name; of the run when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// What is looked for: results that share words with it come first.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub question: String,
}

/// A wish to know who can do something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct CapabilityQuery {
    /// What is to be done, in a word or two each; everybody is named when empty.
    pub needs: Vec<String>,
}

/// A value that is to stand in the shared context of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ContextWrite {
    /// What it is called.
    pub key: String,
    /// What it is.
    pub value: Value,
    /// The version that whoever writes it has seen; 0 when there was none.
    #[serde(default)]
    pub version: u32,
}

/// A wish to know what the shared context has. Whoever asks is told when it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct ContextRead {
    /// The key, or how keys begin.
    pub key: String,
    /// Whether all keys are meant that begin so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prefix: bool,
}

/// The answer to a request, for programs. The observation says the same in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum PeerAnswer {
    /// Help was given.
    HelpGiven {
        /// By whom.
        role: Role,
        /// As which task.
        task: TaskIndex,
    },
    /// The information is on its way.
    InformationShared {
        /// Its number in the run.
        number: u32,
        /// For which tasks.
        to: Vec<TaskIndex>,
    },
    /// What is known.
    ContextGiven {
        /// The tasks that it comes from.
        tasks: Vec<TaskIndex>,
    },
    /// Who can do it, best first; nobody when empty.
    CapabilityFound {
        /// The roles.
        peers: Vec<Capable>,
    },
    /// The value stands in the shared context.
    ContextWritten {
        /// Its key.
        key: String,
        /// Its version.
        version: u32,
    },
    /// What the shared context has, by key.
    ContextFound {
        /// The values.
        entries: BTreeMap<String, ContextEntry>,
    },
}

/// A role that can be asked for help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Capable {
    /// The role.
    pub role: Role,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Which of what is needed it says it can do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub can: Vec<String>,
}

/// Something that a task was told by another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Information {
    /// Its number in the run: it is heard once, however often it is told.
    pub number: u32,
    /// The task that tells it; nothing when a person does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<TaskIndex>,
    /// The name of that task, or of the person.
    pub name: String,
    /// What it says.
    pub text: String,
}

impl Information {
    /// Who tells it: the index of a task, or the name of a person.
    #[must_use]
    pub fn teller(&self) -> String {
        self.from.as_ref().map_or_else(|| self.name.clone(), TaskIndex::to_string)
    }
}

settings! {
    /// How much tasks may ask of each other. Part of a run's limits.
    #[derive(PartialEq, Eq)]
    #[cfg_attr(test, derive(JsonSchema))]
    pub const struct Peers {
        /// Most requests to peers of one run (help, information, context, capabilities); further ones are refused.
        pub max_requests: u32 = 50 => bounded(0, 1000),
        /// Longest text of a request or of its answer, in bytes.
        pub max_bytes: u32 = 16 * 1024 => bounded(1, 64 * KIB),
        /// Time for help; then whoever asked goes on without it.
        pub help_within_ms: u64 = 10 * 60 * 1000 => bounded(1, LONGEST_RUN_MS),
    }
}
