//! What the parser finds, and how it fails.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// How the model wrote its action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerForm {
    /// A native tool call.
    Native,
    /// JSON in the text.
    Json,
    /// The YAML form (`thought:`, `action:`, `action_input:`).
    Yaml,
    /// `Thought:` / `Action:` / `Action Input:` lines.
    ActionLines,
    /// A call in tags, such as `<tool_call>…</tool_call>`.
    Tags,
}

/// What the model wants done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParsedAction {
    /// The tool or standard action.
    pub name: String,
    /// Its arguments: an object, unless the model gave a bare value.
    pub arguments: Value,
    /// The native call's id, when there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

/// One answer, understood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParsedAnswer {
    /// Why this action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// Longer reasoning, when given apart from the thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// What the model means to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The model's doubts about its own course.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criticism: Option<String>,
    /// The action to take.
    pub action: ParsedAction,
    /// Further actions in the same answer, in order; the caller decides whether it takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<ParsedAction>,
    /// How it was written.
    pub form: AnswerForm,
    /// Whether the text had to be repaired.
    #[serde(default)]
    pub repaired: bool,
}

/// Why no action could be read.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "failure")]
pub enum ParseFailure {
    /// The answer was empty.
    #[error("the answer was empty")]
    Empty,
    /// The answer was longer than the parser accepts.
    #[error("the answer is {bytes} bytes long, at most {limit} are read")]
    TooLarge {
        /// Length of the answer.
        bytes: usize,
        /// What is accepted.
        limit: usize,
    },
    /// The answer nests deeper than the parser accepts.
    #[error("the answer nests deeper than {limit} levels")]
    TooDeep {
        /// What is accepted.
        limit: usize,
    },
    /// The answer was cut off, so that what it says may be incomplete.
    #[error(
        "the answer was cut off before its end, so nothing of it was done: make it much shorter, or do it in several steps"
    )]
    CutOff,
    /// Prose without an action.
    #[error("the answer holds no action, only text")]
    NoAction,
    /// The model declined to act.
    #[error("the model refused: {said}")]
    Refusal {
        /// What it said, shortened.
        said: String,
    },
    /// Something that looks like an action, yet cannot be read even after repair.
    #[error("the answer looks like an action but cannot be read: {why}")]
    Unreadable {
        /// What is wrong.
        why: String,
    },
    /// JSON without the name of an action.
    #[error("the answer is data without an action: no \"action\" field")]
    NoActionName,
    /// Readable, but not what the schema asks for.
    #[error("the answer does not fit the schema: at {path}: {why}")]
    DoesNotFit {
        /// JSON pointer to the first wrong place; `/` for the whole.
        path: String,
        /// What is wrong there.
        why: String,
    },
}
