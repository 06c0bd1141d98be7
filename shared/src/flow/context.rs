//! What the tasks of a run know in common: values by key, each with its version and where it comes from (O5).

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AgentId, TaskIndex};
use crate::settings;
use crate::time::Millis;

/// Longest key, in bytes.
pub const MAX_KEY: usize = 64;

/// A value of the shared context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ContextEntry {
    /// What it is. Its type stays what it was when it was written first.
    pub value: Value,
    /// How often it was written. Whoever changes it names the version that it saw.
    pub version: u32,
    /// Who wrote it last.
    pub by: ContextAuthor,
    /// When that was.
    pub at: Millis,
}

impl ContextEntry {
    /// The value as it stands in a text.
    #[must_use]
    pub fn text(&self) -> String {
        in_text(&self.value)
    }
}

/// A value as it stands in a text: a text without its quotes, all else as JSON.
#[must_use]
pub fn in_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The type of a value, in words.
#[must_use]
pub const fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "yes or no",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// Whether a name can be a key: a letter, then letters, digits, `-`, `_` and single `.` between them.
#[must_use]
pub fn is_key(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_joined = !name.ends_with('.') && !name.contains("..");
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    name.len() <= MAX_KEY && begins && is_joined && name.chars().all(rest)
}

/// Who wrote a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContextAuthor {
    /// A task of the run.
    Task {
        /// Which.
        task: TaskIndex,
        /// Who worked on it.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
    },
    /// A person, or a program that acts for one.
    Person(String),
}

impl std::fmt::Display for ContextAuthor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Task { task, agent: Some(agent) } => write!(f, "task {task} ({agent})"),
            Self::Task { task, agent: None } => write!(f, "task {task}"),
            Self::Person(name) => f.write_str(name),
        }
    }
}

settings! {
    /// How much the tasks of a run may know in common. Part of a run's limits.
    #[derive(PartialEq, Eq)]
    #[cfg_attr(test, derive(JsonSchema))]
    pub const struct ContextLimits {
        /// Most values in the shared context of one run.
        pub max_entries: u32 = 200 => bounded(0, 2000),
        /// Largest value, in bytes of JSON.
        pub max_bytes: u32 = 4 * 1024 => bounded(1, 64 * KIB),
    }
}
