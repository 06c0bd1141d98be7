//! What agents and tool servers tell each other: who is there, what tools it has, and calls. Plain bodies in JSON, without an
//! envelope, so that a tool server may be written in any language.
//!
//! | subject | who says it | body | answer |
//! |---|---|---|---|
//! | `tool.<server>.here` | a server | [`ToolServerNotice`] | |
//! | `tool.who` | an agent that came | none | each server says that it is here |
//! | `tool.<server>.specs.<process>` | an agent | none | [`ToolSpecs`] |
//! | `tool.<server>.call.<role>.<agent>` | an agent | [`ToolCall`] | [`ToolReply`] |
//! | `tool.<server>.wait.<process>.<role>.<agent>` | the same | [`ToolTicket`] | [`ToolReply`] |
//! | `tool.<server>.answer.<process>.<role>.<agent>` | the same | [`ToolAnswer`](super::tool_question::ToolAnswer) | [`ToolReply`] |
//! | `tool.<server>.cancel.<role>.<agent>` | the same | [`ToolTicket`] | |
//!
//! An agent may speak under its own role and name alone, and a server under its own name: the bus sees to it.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::lending::LENDER;
use super::tool_question::{OpenQuestion, QuestionAnswer};
use crate::flow::cached::MOST_VERSION;
use crate::flow::{TaskRights, ToolCache, Voucher};
use crate::ids::AgentId;
use crate::plan::tools::{FOR_DATA, STANDARD};
use crate::text::beginning;

/// Longest name of a tool server, in bytes.
pub const MOST_SERVER_NAME: usize = 32;
/// Most tools of one server.
pub const MOST_TOOLS: usize = 256;
/// Longest full name of a tool, `server.tool`, in bytes: the limit of the strictest model provider.
pub const MOST_TOOL_NAME: usize = 64;
/// Longest description of a tool, in bytes.
pub const MOST_DESCRIPTION: usize = 4 * 1024;
/// Largest schema of a tool, in bytes of JSON.
pub const MOST_SCHEMA: usize = 32 * 1024;
/// Deepest nesting of a schema.
pub const MOST_DEPTH: usize = 32;
/// Largest arguments of a call, in bytes of JSON: they fit into one message together with the rights.
pub const MOST_ARGUMENTS: usize = 768 * 1024;
/// Longest time limit that a tool may have, in milliseconds.
pub const LONGEST_CALL_MS: u64 = 600_000;
/// Longest key of a call, in bytes.
pub const MOST_KEY: usize = 512;

/// Names of built-in tools that are off by default, and a prefix that models write before the name of any tool.
const RESERVED: [&str; 8] =
    ["fetch", "fetch_file", "http_request", "javascript", "python", "shell", "tools", "web_search"];

/// Whether this can be the name of a tool server: a token of its subjects, in lower case, and no name of ours or of lenders.
#[must_use]
pub fn is_tool_server_name(name: &str) -> bool {
    let is_letter =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter);
    let mut ours = STANDARD.iter().chain(&FOR_DATA).chain(&RESERVED);
    let mut is_ours = || ours.any(|ours| ours.split('.').next() == Some(name));
    let begins = name.starts_with(|letter: char| letter.is_ascii_lowercase());
    let is_lent = || name.starts_with(LENDER);
    begins && name.len() <= MOST_SERVER_NAME && name.chars().all(is_letter) && !is_ours() && !is_lent()
}

/// What a name of a server may be, in words.
pub const SERVER_NAME_RULE: &str = "lower-case letters, digits, - and _, beginning with a letter, 32 at most, no namespace of Muster's own tools, and not beginning with lent-";

/// What is done about a call of which nobody knows whether it took effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhenUncertain {
    /// It is made again.
    Repeat,
    /// The model is told, and looks before it does it again.
    #[default]
    Ask,
    /// It is never made again, and a person has to look.
    Fail,
}

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ServedTool {
    /// Its name without that of the server.
    pub name: String,
    /// What it does and when to use it, in words for a model.
    pub description: String,
    /// JSON Schema of the arguments, of type `object`.
    pub parameters: Value,
    /// Whether a call changes nothing.
    #[serde(default)]
    pub pure: bool,
    /// What is done about a call that may have taken effect; of a pure tool, it is always made again.
    #[serde(default)]
    pub uncertain: WhenUncertain,
    /// What an agent must be granted before it may call it, as in settings: `network`, `execute`, ….
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
    /// Whether a person approves each call before an agent makes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approve: bool,
    /// Longest time that one call may take, in milliseconds.
    pub timeout_ms: u64,
    /// How long answers serve others that make the same call; only of a tool that is pure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ToolCache>,
}

impl ServedTool {
    /// Its name as agents know it.
    #[must_use]
    pub fn full_name(&self, server: &str) -> String {
        format!("{server}.{}", self.name)
    }

    /// Tells one description from another: SHA-256 of its JSON, in hex.
    #[must_use]
    pub fn digest(&self) -> String {
        // A value that was read from JSON can be written as such.
        hash(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Why no agent takes it, in words; nothing when it is sound.
    #[must_use]
    pub fn fault(&self, server: &str) -> Option<String> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let is_name = self.name.split('.').all(|part| !part.is_empty() && part.bytes().all(is_letter));
        let shown = beginning(&self.name, MOST_TOOL_NAME);
        if !is_name || self.full_name(server).len() > MOST_TOOL_NAME {
            return Some(format!(
                "`{shown}` is no name for a tool: letters, digits, `_` and `-`, with the server's name {MOST_TOOL_NAME} at most"
            ));
        }
        let too_long = |what: &str, bytes: usize, most: usize| {
            (bytes > most).then(|| format!("the {what} of `{shown}` has {bytes} bytes, {most} are the most"))
        };
        let written = self.parameters.to_string().len();
        if !(1..=LONGEST_CALL_MS).contains(&self.timeout_ms) {
            return Some(format!("the time limit of `{shown}` is not within 1 to {LONGEST_CALL_MS} ms"));
        }
        if self.cache.is_some() && !self.pure {
            return Some(format!(
                "`{shown}` changes something, so its answers serve nobody else: leave `cache` out"
            ));
        }
        let version = self.cache.as_ref().map_or(0, |cache| cache.version.len());
        too_long("version", version, MOST_VERSION)
            .or_else(|| too_long("description", self.description.len(), MOST_DESCRIPTION))
            .or_else(|| too_long("schema", written, MOST_SCHEMA))
            .or_else(|| {
                is_deep(&self.parameters, MOST_DEPTH)
                    .then(|| format!("the schema of `{shown}` is nested too deeply"))
            })
    }
}

fn is_deep(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(all) => left == 0 || all.iter().any(|one| is_deep(one, left - 1)),
        Value::Object(all) => left == 0 || all.values().any(|one| is_deep(one, left - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// A process that serves tools says that it is there, or that it leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ToolServerNotice {
    /// The name of the server.
    pub server: String,
    /// The process.
    pub process: AgentId,
    /// Tells one set of tools from another, however the server makes it; nothing when the process leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The tools of a process, as it describes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ToolSpecs {
    /// The tools, by name.
    pub tools: Vec<ServedTool>,
}

impl ToolSpecs {
    /// Tells one set of tools from another.
    #[must_use]
    pub fn digest(&self) -> String {
        hash(self.tools.iter().map(ServedTool::digest).collect::<Vec<_>>().join("\n").as_bytes())
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ToolCall {
    /// The run.
    pub run: String,
    /// The task.
    pub task: String,
    /// The tool, without the name of the server.
    pub tool: String,
    /// What the agent knows of the tool, by the digest of its description: one that has changed since is not called.
    pub spec: String,
    /// The arguments.
    pub arguments: Value,
    /// Names the call, the same whoever makes it and however often.
    pub key: String,
    /// How long an answer is waited for, in milliseconds.
    pub patience_ms: u64,
    /// What the task may use, as its offer says.
    #[serde(default)]
    pub rights: TaskRights,
    /// Whether a person approved it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
    /// Who vouches for that; nobody in a fleet without keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voucher: Option<Voucher>,
    /// True if the tool may ask a person during the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_ask: bool,
    /// What was answered to questions of the same call when it was made before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<QuestionAnswer>,
}

impl ToolCall {
    /// Names what is to be done, for the servers of this version: the same key for something else names something else.
    #[must_use]
    pub fn ticket(&self) -> String {
        hash(format!("{}\n{}\n{}\n{}", self.key, self.tool, self.spec, self.arguments).as_bytes())
    }
}

/// Names a call that a server is at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ToolTicket {
    /// The ticket of the call.
    pub ticket: String,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServedStatus {
    /// The tool did what it was asked.
    Success,
    /// It could not.
    Error,
    /// It took longer than it may.
    Timeout,
    /// It was not let, or was asked for what makes no sense.
    Refused,
    /// Something outside failed that may work when tried again, and nothing was done.
    Unavailable,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ServedResult {
    /// How it ended.
    pub status: ServedStatus,
    /// What is observed, or what went wrong and what to do, in words for a model.
    pub content: String,
    /// The same as data, where there is some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// What a server says of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ToolReply {
    /// It has ended.
    Done {
        /// The key of the call.
        key: String,
        /// What came of it.
        result: ServedResult,
    },
    /// The process is at it, and is asked again.
    Running {
        /// The key of the call.
        key: String,
        /// By what the process is asked again.
        ticket: String,
        /// The process.
        process: AgentId,
    },
    /// The process is at it, and the tool asks something first.
    Asks {
        /// The key of the call.
        key: String,
        /// By what the process is answered, and asked again.
        ticket: String,
        /// The process.
        process: AgentId,
        /// What is asked.
        asked: Box<OpenQuestion>,
    },
    /// The process has as many calls in hand as it takes, and has not begun this one.
    Busy,
    /// The tool is not the one that the agent knows, and was not called.
    Changed,
    /// The process knows of no such call: it was started since, or has forgotten it.
    Unknown,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> ServedTool {
        ServedTool {
            name: name.to_owned(),
            description: "Adds.".to_owned(),
            parameters: json!({ "type": "object" }),
            pure: true,
            uncertain: WhenUncertain::Repeat,
            grants: Vec::new(),
            approve: false,
            timeout_ms: 1_000,
            cache: None,
        }
    }

    fn cache(version: &str) -> ToolCache {
        ToolCache { serves_ms: 60_000, version: version.to_owned() }
    }

    #[test]
    fn names_of_servers_are_tokens_and_none_of_ours() {
        for good in ["notes", "my-notes_2", "a"] {
            assert!(is_tool_server_name(good), "{good}");
        }
        let long = "x".repeat(MOST_SERVER_NAME + 1);
        for bad in [
            "",
            "lent-worker",
            "corpus",
            "workspace",
            "calculator",
            "sql",
            "chart",
            "fetch",
            "tools",
            "Notes",
            "2notes",
            "a.b",
            "a*",
            ">",
            "ä",
            &long,
        ] {
            assert!(!is_tool_server_name(bad), "{bad}");
        }
    }

    #[test]
    fn what_no_agent_takes_is_told() {
        let deep = (0..40).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
        let table = [
            (tool("add"), None),
            (tool("a.b"), None),
            (tool(""), Some("no name")),
            (tool("a b"), Some("no name")),
            (tool(&"x".repeat(60)), Some("no name")),
            (ServedTool { description: "x".repeat(5_000), ..tool("add") }, Some("5000 bytes")),
            (
                ServedTool {
                    parameters: json!({ "type": "object", "x": "y".repeat(40_000) }),
                    ..tool("add")
                },
                Some("schema"),
            ),
            (ServedTool { parameters: deep, ..tool("add") }, Some("too deeply")),
            (ServedTool { timeout_ms: 0, ..tool("add") }, Some("time limit")),
            (ServedTool { cache: Some(cache("1")), ..tool("add") }, None),
            (ServedTool { cache: Some(cache("1")), pure: false, ..tool("add") }, Some("leave `cache` out")),
            (ServedTool { cache: Some(cache(&"x".repeat(129))), ..tool("add") }, Some("version")),
            (ServedTool { timeout_ms: u64::MAX, ..tool("add") }, Some("time limit")),
        ];
        for (tool, wanted) in table {
            let found = tool.fault("server");
            assert_eq!(found.is_some(), wanted.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(wanted.unwrap_or_default()));
        }
    }

    #[test]
    fn a_changed_description_and_another_call_under_one_key_are_told_apart() {
        let (one, other) = (tool("add"), ServedTool { description: "Adds!".to_owned(), ..tool("add") });
        assert_ne!(one.digest(), other.digest());
        let read: ServedTool =
            serde_json::from_str(&serde_json::to_string(&one).unwrap_or_default()).unwrap_or(other);
        assert_eq!(read.digest(), one.digest(), "as it travels");
        let call = ToolCall {
            run: "r".to_owned(),
            task: "1".to_owned(),
            tool: "add".to_owned(),
            spec: one.digest(),
            arguments: json!({ "a": 1 }),
            key: "r/1/1/2".to_owned(),
            patience_ms: 1_000,
            rights: TaskRights::default(),
            approved: false,
            voucher: None,
            may_ask: false,
            answered: Vec::new(),
        };
        let elsewhere = ToolCall { task: "2".to_owned(), patience_ms: 5, ..call.clone() };
        assert_eq!(call.ticket(), elsewhere.ticket(), "whoever makes it");
        assert_ne!(call.ticket(), ToolCall { arguments: json!({ "a": 2 }), ..call.clone() }.ticket());
        assert_ne!(call.ticket(), ToolCall { key: "r/1/1/3".to_owned(), ..call.clone() }.ticket());
    }
}
