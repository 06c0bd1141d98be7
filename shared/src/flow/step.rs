//! One turn of a ReAct loop: thought, action, observation.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cached::CachedAnswer;
use super::note::Note;
use super::peer::Information;
use super::usage::Usage;

/// One turn of a ReAct loop, as it stands in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Step {
    /// From 1 within a generation, over all its attempts.
    pub number: u32,
    /// What the model thought.
    pub thought: Thought,
    /// What it chose to do.
    pub action: Action,
    /// What came of it; absent when the step ends the task or its effect is not known yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
    /// Further actions of the same answer, done in the same step, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<FurtherAction>,
    /// What the loop itself remarks on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// What other tasks told this one before it: the model is told it first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Information>,
    /// The model call (or calls, when asked again) behind it.
    #[serde(default)]
    pub calls: Vec<ModelCall>,
    /// Time of the whole step, in milliseconds.
    #[serde(default)]
    pub millis: u64,
    /// Of which outside: in models and tools, in milliseconds.
    #[serde(default)]
    pub outside_millis: u64,
}

/// Another action of the same answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct FurtherAction {
    /// What the model chose to do.
    pub action: Action,
    /// What came of it; absent as long as its effect is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
}

impl Step {
    /// All its actions in the order of the answer, each with what came of it.
    pub fn acts(&self) -> impl Iterator<Item = (&Action, Option<&Observation>)> {
        let more = self.more.iter().map(|one| (&one.action, one.observation.as_ref()));
        std::iter::once((&self.action, self.observation.as_ref())).chain(more)
    }

    /// What came of its actions, as far as that is known.
    pub fn observations(&self) -> impl Iterator<Item = &Observation> {
        self.acts().filter_map(|(_, observation)| observation)
    }
}

/// What a model thought before it acted (W1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Thought {
    /// The thought itself.
    pub text: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// What is to be done next.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plan: String,
    /// What could be wrong with it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub criticism: String,
}

/// What a model chose to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Action {
    /// A tool, or `submit` when the task ends with this step.
    pub name: String,
    /// The arguments, by the tool's schema.
    #[serde(default)]
    pub arguments: serde_json::Value,
}

impl Action {
    /// The name of the action that ends a task.
    pub const SUBMIT: &'static str = "submit";
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Observation {
    /// How it went.
    pub status: ObservationStatus,
    /// What the model is told.
    pub content: String,
    /// Time the tool took, in milliseconds.
    #[serde(default)]
    pub millis: u64,
    /// Whether the content was cut to its limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The tool was not called: this is the answer that the same call had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<CachedAnswer>,
}

impl Observation {
    /// An observation that no tool took time for.
    #[must_use]
    pub const fn new(status: ObservationStatus, content: String) -> Self {
        Self { status, content, millis: 0, truncated: false, cached: None }
    }
}

/// How an action went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ObservationStatus {
    /// It did what it should.
    Success,
    /// The tool failed.
    Error,
    /// The tool took too long.
    Timeout,
    /// It was not done: unknown tool, wrong arguments, no permission, a repetition.
    Refused,
}

/// One call of a model, with the exact request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ModelCall {
    /// The model that answered, as `provider/model`.
    pub model: String,
    /// Template the prompt was made from.
    pub template: TemplateRef,
    /// SHA-256 of the whole request, in hexadecimal.
    pub request_hash: String,
    /// How many messages at the head of this request are those of the call before it in this task. Calls that stand
    /// aside do not count as calls before it.
    pub same_messages: u32,
    /// The messages after those.
    pub messages: Vec<StoredMessage>,
    /// Whether it was asked apart from the conversation, for a purpose of its own that its template names. Its messages
    /// stand whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aside: bool,
    /// Parameters that were sent: temperature, limits, the names of the tools offered.
    #[serde(default)]
    pub parameters: serde_json::Value,
    /// The answer, word for word.
    pub answer: String,
    /// Where in the answer each native call begins, in bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls_at: Vec<u32>,
    /// Marks of the provider on the first native call, which want to go back with it to the same model. They say nothing
    /// to anybody else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<String>,
    /// Whether the answer was cut off at its limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// What it used.
    pub usage: Usage,
    /// Time until the answer was complete, in milliseconds.
    pub millis: u64,
}

/// One message of a request as it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct StoredMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The text.
    pub content: String,
}

/// Which template a prompt was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TemplateRef {
    /// Name, such as `worker`.
    pub name: String,
    /// Version of the template.
    pub version: u32,
    /// First 16 hexadecimal digits of the SHA-256 of its text.
    pub hash: String,
}
