//! What a server says of a tool, as it is pinned, judged and shown. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::names::hex_of;
use crate::plain::{cut, hides_words, is_within_depth, value_hides_words, visible, visible_value};

/// Deepest schema of arguments.
pub(crate) const MAX_SCHEMA_DEPTH: usize = 32;
/// Longest description that is pinned, in bytes; what models are shown of it is cut sooner.
pub(crate) const MAX_DESCRIPTION: usize = 64 * 1024;
/// Longest name that a server may give a tool, in bytes.
pub(crate) const MAX_TOOL_NAME: usize = 256;

/// A tool as its server tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTool {
    /// Its name there.
    pub name: String,
    /// What is said of it.
    pub definition: ToolDefinition,
}

/// What a model goes by when it calls a tool, and we when a call may be repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// What the tool does, in the server's words.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    /// What the server says of its effects.
    #[serde(default)]
    pub hints: Hints,
}

/// What a server says of a tool's effects. It can lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something.
    pub destructive: bool,
    /// Twice is as good as once.
    pub idempotent: bool,
}

impl Default for Hints {
    /// What the protocol says of a tool without annotations.
    fn default() -> Self {
        Self { read_only: false, destructive: true, idempotent: false }
    }
}

/// The limits of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefinitionLimits {
    /// Longest description, in bytes.
    pub description: usize,
    /// Largest schema, in bytes of JSON.
    pub schema: usize,
}

impl ToolDefinition {
    /// Names this definition of a tool: the same whatever the order of keys.
    #[must_use]
    pub fn digest(&self, tool: &str) -> String {
        let Hints { read_only, destructive, idempotent } = self.hints;
        let parts =
            serde_json::json!([tool, self.description, self.schema, read_only, destructive, idempotent]);
        hex_of(&Sha256::digest(sorted(&parts).to_string().as_bytes()))
    }

    /// Why a tool of this definition is not served to anybody; in words for people.
    #[must_use]
    pub fn fault(&self, tool: &str, limits: DefinitionLimits) -> Option<String> {
        if tool.is_empty() || tool.len() > MAX_TOOL_NAME {
            return Some(format!("its name is empty or longer than {MAX_TOOL_NAME} bytes"));
        }
        if self.description.len() > MAX_DESCRIPTION {
            return Some(format!("its description is longer than {MAX_DESCRIPTION} bytes"));
        }
        if hides_words(tool) || hides_words(&self.description) || value_hides_words(&self.schema) {
            return Some("it carries words that only a machine can read".to_owned());
        }
        if !is_within_depth(&self.schema, MAX_SCHEMA_DEPTH) {
            return Some(format!("its schema is nested deeper than {MAX_SCHEMA_DEPTH}"));
        }
        let bytes = self.schema.to_string().len();
        if bytes > limits.schema {
            return Some(format!("its schema has {bytes} bytes; at most {} are allowed", limits.schema));
        }
        if self.schema["type"].as_str() != Some("object") {
            return Some("its schema is not of an object".to_owned());
        }
        let compiled = jsonschema::validator_for(&self.schema);
        compiled.err().map(|error| cut(&format!("its schema cannot be used: {error}"), 300))
    }

    /// The description as models are shown it: with its source, and nothing in it that hides.
    #[must_use]
    pub fn shown_description(&self, server: &str, limits: DefinitionLimits) -> String {
        let words = visible(&self.description);
        let words = cut(words.trim(), limits.description);
        let words = if words.is_empty() { "The server says nothing of it." } else { &words };
        format!("[MCP server {}] {words}", visible(server))
    }

    /// The schema as models are shown it.
    #[must_use]
    pub fn shown_schema(&self) -> Value {
        visible_value(self.schema.clone())
    }
}

/// The value with the keys of every object in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            let pairs = keys.into_iter().filter_map(|key| Some((key.clone(), sorted(fields.get(key)?))));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
        _ => value.clone(),
    }
}

/// What is different, line by line: `-` as it was, `+` as it is.
#[must_use]
pub fn difference(was: &ToolDefinition, is: &ToolDefinition) -> String {
    let lines = |of: &ToolDefinition| -> Vec<String> {
        let schema = serde_json::to_string_pretty(&sorted(&of.schema)).unwrap_or_default();
        let Hints { read_only, destructive, idempotent } = of.hints;
        let hints = format!("read-only: {read_only}, destructive: {destructive}, idempotent: {idempotent}");
        let description = visible(&of.description);
        let whole = format!("{description}\n{hints}\n{}", visible(&schema));
        whole.lines().map(str::to_owned).collect()
    };
    let (was, is) = (lines(was), lines(is));
    let same = was.iter().zip(&is).take_while(|(a, b)| a == b).count();
    let (was, is) = (&was[same..], &is[same..]);
    let same = was.iter().rev().zip(is.iter().rev()).take_while(|(a, b)| a == b).count();
    let (was, is) = (&was[..was.len() - same], &is[..is.len() - same]);
    let marked = |sign: &str, lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| format!("{sign} {line}")).collect()
    };
    [marked("-", was), marked("+", is)].concat().join("\n")
}
