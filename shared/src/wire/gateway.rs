//! What programs in other languages ask of a task gateway (`agent.<role>.<verb>`), and what it answers. Plain bodies, in
//! JSON or MessagePack, without an envelope. `muster schema` prints their schemas.

use std::str::FromStr;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::flow::{Action, ContractSchemas, Ending, FurtherAction, Observation, ObservationStatus};
use crate::flow::{Thought, Usage, Wait};
use crate::ids::{AgentId, Generation, RunId, Seq, TaskId};

/// Longest id that a caller gives a message, in bytes.
pub const MAX_MESSAGE_ID: usize = 128;

/// What a program may ask of a gateway.
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
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GatewayVerb {
    /// A task to do.
    Take,
    /// That a step is recorded.
    Step,
    /// That the task ends.
    Finish,
    /// That the task waits for somebody.
    Wait,
    /// That it lives; and what is new.
    Beat,
    /// Files and documents.
    Files,
    /// An answer of a model.
    Model,
}

impl GatewayVerb {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Take, Self::Step, Self::Finish, Self::Wait, Self::Beat, Self::Files, Self::Model];

    /// Its name, as it stands in subjects.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl FromStr for GatewayVerb {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|verb| verb.as_str() == text);
        found.ok_or_else(|| {
            let text: String = text.chars().take(40).collect();
            format!(
                "{text:?} is nothing that a gateway is asked: it takes {}",
                Self::ALL.map(Self::as_str).join(", ")
            )
        })
    }
}

/// `take`: waits for a task, and says who asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TakeRequest {
    /// Who asks: a name of your own, the same for as long as the process lives.
    pub agent: AgentId,
    /// Names this message: asked again with it, the answer is the same task.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1, max = 128)))]
    pub id: Option<String>,
    /// How long to wait for a task, in milliseconds; the gateway's own limit when absent.
    pub patience_ms: Option<u64>,
    /// How many tasks you do at the same time.
    #[serde(default = "one")]
    #[cfg_attr(test, schemars(range(min = 1, max = 1024)))]
    pub slots: u32,
    /// What the role is for, in a sentence or two: planners are told it.
    #[serde(default)]
    pub description: String,
    /// What it can do, in a word or two each.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// What it takes on and what it gives.
    #[serde(default)]
    pub contract: ContractSchemas,
    /// What it is known by on its host when it is started again.
    #[serde(default)]
    pub name: String,
    /// How long it may have nothing to record about a task, in milliseconds; what the run's limits say when absent.
    #[serde(default)]
    pub quiet_ms: u64,
    /// The model that it asks by itself, as `provider/model`.
    #[serde(default)]
    pub model: String,
    /// Its process, for people.
    #[serde(default)]
    pub pid: u32,
    /// Its machine, for people.
    #[serde(default)]
    pub host: String,
}

const fn one() -> u32 {
    1
}

/// A thought, in words or in its parts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(untagged)]
pub enum ThoughtSaid {
    /// In words.
    Text(String),
    /// In its parts.
    Parts(Thought),
}

impl Default for ThoughtSaid {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<ThoughtSaid> for Thought {
    fn from(said: ThoughtSaid) -> Self {
        match said {
            ThoughtSaid::Text(text) => Self { text, ..Self::default() },
            ThoughtSaid::Parts(thought) => thought,
        }
    }
}

/// What came of an action, in words or in its parts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(untagged)]
pub enum SeenThere {
    /// It did what it should, and this is what came of it.
    Text(String),
    /// In its parts.
    Parts(Observation),
}

impl From<SeenThere> for Observation {
    fn from(seen: SeenThere) -> Self {
        match seen {
            SeenThere::Text(content) => Self {
                status: ObservationStatus::Success,
                content,
                millis: 0,
                truncated: false,
                cached: None,
            },
            SeenThere::Parts(observation) => observation,
        }
    }
}

/// `step`: records a step. Without an observation it announces an action with lasting effect; the same step with its
/// observation follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepRequest {
    /// The task.
    pub token: String,
    /// Names this message: sent again with it, it is recorded once.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1, max = 128)))]
    pub id: Option<String>,
    /// What was thought.
    #[serde(default)]
    pub thought: ThoughtSaid,
    /// What was done.
    pub action: Action,
    /// What came of it.
    pub observation: Option<SeenThere>,
    /// Further actions of the same step.
    #[serde(default)]
    pub more: Vec<FurtherAction>,
    /// What the step used of models that the gateway did not ask.
    #[serde(default)]
    pub usage: Usage,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub millis: u64,
}

/// `finish`: ends the task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FinishRequest {
    /// The task.
    pub token: String,
    /// Names this message: sent again with it, it is recorded once.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1, max = 128)))]
    pub id: Option<String>,
    /// How it ends.
    #[serde(default = "done")]
    pub ending: Ending,
    /// Why; needed unless it is done.
    #[serde(default)]
    pub reason: String,
    /// What it gives, by the schema that `take` told.
    #[serde(default)]
    #[cfg_attr(test, schemars(schema_with = "any_object"))]
    pub result: Option<Value>,
    /// What was thought last.
    #[serde(default)]
    pub thought: ThoughtSaid,
    /// What the last step used of models that the gateway did not ask.
    #[serde(default)]
    pub usage: Usage,
}

#[cfg(test)]
fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["object", "null"], "description": "What it gives, by the schema that take told"})
}

const fn done() -> Ending {
    Ending::Done
}

/// `wait`: puts the task down until what it waits for is there. It comes back by a later `take`, with the answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WaitRequest {
    /// The task.
    pub token: String,
    /// Names this message: sent again with it, it is recorded once.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1, max = 128)))]
    pub id: Option<String>,
    /// What it waits for: an `answer` of a person, a person's `approval` of a call, a `task` that part of it is handed over to,
    /// a `run` of its own, or word of a `peer`.
    #[serde(rename = "for")]
    pub wait: Wait,
    /// What was thought.
    #[serde(default)]
    pub thought: ThoughtSaid,
    /// What the step used of models that the gateway did not ask.
    #[serde(default)]
    pub usage: Usage,
}

/// `beat`: the heartbeat of a task. The answer has news.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BeatRequest {
    /// The task.
    pub token: String,
    /// Names this message.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1, max = 128)))]
    pub id: Option<String>,
    /// What it does, in a few words, for whoever watches.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 400)))]
    pub status: Option<String>,
}

/// What is asked of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FilesAction {
    /// The files of the run, and the run's documents.
    List,
    /// What stands in a file.
    Get,
    /// Writes a file.
    Put,
    /// Lines of a document.
    Read,
    /// Passages of documents.
    Search,
}

/// `files`: files of the run and documents of the goal, by name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FilesRequest {
    /// The task.
    pub token: String,
    /// Names this message.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1, max = 128)))]
    pub id: Option<String>,
    /// What is asked.
    #[serde(rename = "do")]
    pub action: FilesAction,
    /// The file or document.
    #[serde(default)]
    pub path: String,
    /// Of `put`: what is to stand in it.
    #[serde(default)]
    pub text: String,
    /// Of `put`: the version that it takes the place of, where another task wrote the file.
    pub version: Option<String>,
    /// Of `get`: from this byte on. Of `list`: from this document on. Of `read`: from this line on.
    #[serde(default)]
    pub from: u64,
    /// Of `read`: up to this line.
    pub to: Option<u64>,
    /// Of `search`: what is looked for.
    #[serde(default)]
    pub query: String,
    /// Of `search`: most passages.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(max = 100)))]
    pub most: Option<u32>,
}

/// One message of a question to a model.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Spoken {
    /// Who speaks: `user` or `assistant`.
    pub role: Speaker,
    /// What is said.
    pub content: String,
}

/// Who speaks to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The asker.
    User,
    /// The model.
    Assistant,
}

/// `model`: a call of the fleet's model, by its keys, rates and budgets.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// The task.
    pub token: String,
    /// Names this message: sent again with it to the same gateway, the model is asked once.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1, max = 128)))]
    pub id: Option<String>,
    /// Instructions.
    #[serde(default)]
    pub system: String,
    /// The conversation, oldest first.
    #[cfg_attr(test, schemars(length(min = 1, max = 200)))]
    pub messages: Vec<Spoken>,
    /// JSON Schema of the wanted answer, when it is to be a JSON document.
    pub schema: Option<Value>,
    /// Sampling temperature.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0.0, max = 2.0)))]
    pub temperature: Option<f64>,
    /// Most tokens of the answer.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub max_tokens: Option<u32>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// It cannot be read at all.
    Unreadable,
    /// It has too many bytes.
    TooLarge,
    /// It does not fit its schema.
    Invalid,
    /// There is no such request, or no such role.
    Unknown,
    /// The token is none that a gateway made, or belongs to another role.
    BadToken,
    /// The task was given to another agent, or offered anew.
    GivenAway,
    /// The task was cancelled.
    Cancelled,
    /// The task was put down.
    PutDown,
    /// The task has ended.
    Ended,
    /// The result does not hold what it has to.
    BadResult,
    /// The role may not do this, or the limits of the task are used up.
    NotAllowed,
    /// There is too much to do here.
    Busy,
    /// What was asked for is not there.
    NotFound,
    /// The model gave no answer.
    ModelFailed,
    /// The bus failed, or the gateway did.
    Failed,
}

impl RefusalCode {
    /// Whether the task of the token is not the caller's any more.
    #[must_use]
    pub const fn ends_task(self) -> bool {
        matches!(self, Self::BadToken | Self::GivenAway | Self::Cancelled | Self::PutDown | Self::Ended)
    }
}

/// Why a request is refused, and what to do. Stands in `error` of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct GatewayRefusal {
    /// The kind of reason, for programs.
    pub code: RefusalCode,
    /// The reason and what to do, for people.
    pub message: String,
    /// What is wrong, one line for each field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Whether the same request may be taken when it is sent again after a while.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry: bool,
    /// Whether the task is not yours any more: drop it and take another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over: bool,
}

impl GatewayRefusal {
    /// A refusal for this reason.
    #[must_use]
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        let retry = matches!(code, RefusalCode::Busy | RefusalCode::Failed);
        Self { code, message: message.into(), fields: Vec::new(), retry, over: code.ends_task() }
    }

    /// The same, with what is wrong of each field.
    #[must_use]
    pub fn of_fields(self, fields: Vec<String>) -> Self {
        Self { fields, ..self }
    }
}

/// One gateway tells the others that it goes on with a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// Where its `started` stands.
    pub started: Seq,
    /// The gateway.
    pub to: AgentId,
}
