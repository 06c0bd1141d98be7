//! What a call uses, as rights are held against it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::flow::{PeerRequest, Wait};
use crate::wire::lending::own_name;

/// The ways to tools that models are not told of at once. They use nothing: what is called by them does.
const WAYS: [&str; 2] = ["find_tool", "use_tool"];

/// One kind of things that may be used or not.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Right {
    /// Calling tools.
    Tools,
    /// Reading, searching and citing documents.
    Documents,
    /// Reading values of the shared context.
    ReadContext,
    /// Writing them.
    WriteContext,
    /// Fetching from hosts.
    Hosts,
    /// Asking people.
    People,
    /// Handing work over, and asking peers.
    HandOver,
    /// Beginning runs.
    Runs,
    /// Writing files of the run.
    WriteFiles,
    /// Calls that change something.
    Effects,
}

impl Right {
    /// Its name, as in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One use that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use<'a> {
    /// A tool of this name.
    Tool(&'a str),
    /// Any documents.
    Documents,
    /// The document of this path.
    Document(&'a str),
    /// The shared value under this key.
    ReadKey(&'a str),
    /// Any shared values.
    ReadKeys,
    /// Writing the shared value under this key.
    WriteKey(&'a str),
    /// A host, with its port where it is known: `example.org:443`.
    Host(&'a str),
    /// Asking a person.
    Person,
    /// Handing work over to another agent, or asking one.
    HandOver,
    /// Beginning a run.
    Run,
    /// Writing a file of the run.
    WriteFile,
    /// A call of this tool, which changes something.
    Effect(&'a str),
}

impl<'a> Use<'a> {
    /// The right that it needs.
    #[must_use]
    pub const fn right(&self) -> Right {
        match self {
            Self::Tool(_) => Right::Tools,
            Self::Documents | Self::Document(_) => Right::Documents,
            Self::ReadKey(_) | Self::ReadKeys => Right::ReadContext,
            Self::WriteKey(_) => Right::WriteContext,
            Self::Host(_) => Right::Hosts,
            Self::Person => Right::People,
            Self::HandOver => Right::HandOver,
            Self::Run => Right::Runs,
            Self::WriteFile => Right::WriteFiles,
            Self::Effect(_) => Right::Effects,
        }
    }

    /// What a call of a tool uses, the tool itself first. Of a tool that is not ours, that is all that is known. One that
    /// another agent lends uses what it uses there as well: to borrow widens nothing.
    #[must_use]
    pub fn of_call(tool: &'a str, arguments: &'a Value) -> Vec<Self> {
        match own_name(tool) {
            Some(own) => std::iter::once(Self::Tool(tool)).chain(Self::of_own_call(own, arguments)).collect(),
            None => Self::of_own_call(tool, arguments),
        }
    }

    fn of_own_call(tool: &'a str, arguments: &'a Value) -> Vec<Self> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().trim();
        let flag = |name: &str| arguments.get(name).and_then(Value::as_bool);
        let mut uses = Self::of_own_tool(tool);
        match plain(tool).as_str() {
            "corpus_read" | "corpus_look" => uses.push(Self::Document(text("path"))),
            "write_context" => uses.push(Self::WriteKey(text("key"))),
            "read_context" if !flag("prefix").unwrap_or(text("key").is_empty()) => {
                uses.push(Self::ReadKey(text("key")));
            }
            "request_info" if flag("ask_person") == Some(true) => uses.push(Self::Person),
            // Names of tools are open.
            _ => {}
        }
        uses
    }

    /// What every call of a tool uses, whatever its arguments are.
    #[must_use]
    pub fn of_tool(tool: &'a str) -> Vec<Self> {
        match own_name(tool) {
            Some(own) => std::iter::once(Self::Tool(tool)).chain(Self::of_own_tool(own)).collect(),
            None => Self::of_own_tool(tool),
        }
    }

    fn of_own_tool(tool: &'a str) -> Vec<Self> {
        if WAYS.contains(&plain(tool).as_str()) {
            return Vec::new();
        }
        let own = match plain(tool).as_str() {
            "corpus_read" | "corpus_look" | "corpus_search" => Some(Self::Documents),
            "read_context" => Some(Self::ReadKeys),
            "escalate" => Some(Self::Person),
            "delegate" | "ask_peer" => Some(Self::HandOver),
            "plan" | "blueprint" => Some(Self::Run),
            "workspace_write" | "workspace_append" | "workspace_edit" | "chart" | "sql_save"
            | "fetch_file" => Some(Self::WriteFile),
            // Names of tools are open.
            _ => None,
        };
        std::iter::once(Self::Tool(tool)).chain(own).collect()
    }

    /// What a task uses that waits for this; what is told of a value that it reads is seen to where it is told.
    #[must_use]
    pub fn of_wait(wait: &'a Wait) -> Option<Self> {
        match wait {
            Wait::Answer(_) => Some(Self::Person),
            // It is the fleet that wants to ask, not the task.
            Wait::Approval(_) => None,
            Wait::Task(_) => Some(Self::HandOver),
            Wait::Run(_) => Some(Self::Run),
            Wait::Peer(request) => match &**request {
                PeerRequest::HelpRequest(_) => Some(Self::HandOver),
                PeerRequest::ContextWrite(write) => Some(Self::WriteKey(&write.key)),
                PeerRequest::ContextRead(read) if read.prefix => Some(Self::ReadKeys),
                PeerRequest::ContextRead(read) => Some(Self::ReadKey(&read.key)),
                PeerRequest::InformationShare(_)
                | PeerRequest::ContextRequest(_)
                | PeerRequest::CapabilityQuery(_) => None,
            },
        }
    }

    /// What is done, in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Tool(name) => (*name).to_owned(),
            Self::Documents => "read documents".to_owned(),
            Self::Document(path) => format!("read {path}"),
            Self::ReadKey(key) => format!("read the shared value {key}"),
            Self::ReadKeys => "read shared values".to_owned(),
            Self::WriteKey(key) => format!("write the shared value {key}"),
            Self::Host(host) => format!("fetch {host}"),
            Self::Person => "ask a person".to_owned(),
            Self::HandOver => "hand work over".to_owned(),
            Self::Run => "begin a run".to_owned(),
            Self::WriteFile => "write a file".to_owned(),
            Self::Effect(name) => format!("change something by {name}"),
        }
    }
}

/// Models write `corpus_search` for `corpus.search`.
fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace('.', "_")
}
