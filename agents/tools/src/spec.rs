//! What a tool is: its specification, what it is given, and what it answers.

use std::{collections::BTreeSet, time::Duration};

use async_trait::async_trait;
use muster_shared::flow::{RolePermission, ToolCache};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use crate::context::ToolContext;
pub use crate::result::{ToolFailure, ToolOutput, ToolResult, ToolStatus};

/// Longest name of a tool, in characters (the limit of the strictest model provider).
pub const MAX_NAME: usize = 64;

/// Time a tool may take when its specification does not say otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// What a tool must be allowed to do before it may be called.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Permission {
    /// Search and read the documents given with the goal.
    ReadDocuments,
    /// Read and list files in the run's workspace.
    ReadWorkspace,
    /// Write files in the run's workspace.
    WriteWorkspace,
    /// Reach other machines.
    Network,
    /// Run programs or code.
    Execute,
    /// Read or write the fleet's memory.
    Memory,
    /// Put a question to a person.
    AskPerson,
    /// Spend money, or bind somebody to.
    Money,
}

impl Permission {
    /// Every permission there is.
    pub const ALL: [Self; 8] = [
        Self::ReadDocuments,
        Self::ReadWorkspace,
        Self::WriteWorkspace,
        Self::Network,
        Self::Execute,
        Self::Memory,
        Self::AskPerson,
        Self::Money,
    ];

    /// The name used in settings and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What is done about a call that was begun and whose end nobody recorded, so that nobody knows whether it took effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Uncertain {
    /// It is made again: doing it twice is as good as once, or the tool knows the call by its idempotency key.
    Repeat,
    /// Whoever works on the task is told, and looks before doing it again.
    #[default]
    Ask,
    /// The task ends, and a person has to look: it must never be done twice.
    Fail,
}

/// Whether a call that failed for something that passes is made again by the engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repetition {
    /// As settings say, where doing it twice is as good as once: the tool is pure, or is repeated when uncertain.
    #[default]
    Usual,
    /// Never: the tool tries again by itself, or whoever calls it has to decide.
    Never,
}

/// Where a tool comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSource {
    /// It comes with Muster.
    #[default]
    BuiltIn,
    /// This file declares it.
    File(String),
    /// A server of tools has it.
    Server(String),
    /// An agent lends it.
    Agent(String),
}

impl std::fmt::Display for ToolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File(path) => write!(f, "file {path}"),
            Self::Server(name) => write!(f, "server {name}"),
            Self::Agent(name) => write!(f, "lent by {name}"),
        }
    }
}

/// The description of a tool, for models and for the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Namespaced name, such as `corpus.search`.
    pub name: String,
    /// What it does and when to use it, in words for a model.
    pub description: String,
    /// JSON Schema of the arguments; always of type `object`.
    pub parameters: Value,
    /// What must be granted before a call.
    pub grants: BTreeSet<Permission>,
    /// Whether a call changes nothing, so that it may run again freely after a crash.
    pub pure: bool,
    /// What is done about a call that may have taken effect. A pure tool is always called again.
    #[serde(default)]
    pub uncertain: Uncertain,
    /// What a role must be allowed before its agents may call it.
    pub permission: RolePermission,
    /// Longest time one call may take.
    pub timeout: Duration,
    /// Whether nobody may call it until settings allow it by name (`tool.allow`): it runs programs, reaches other machines,
    /// or spends.
    #[serde(default)]
    pub off_until_allowed: bool,
    /// Whether a person approves each call before it is made, whatever settings say.
    #[serde(default)]
    pub approve: bool,
    /// Whether the engine may try a call again.
    #[serde(default)]
    pub repetition: Repetition,
    /// Where it comes from.
    #[serde(default)]
    pub source: ToolSource,
    /// Arguments of a call that shows whether it works, and that does no harm.
    pub sample: Option<Value>,
    /// The tools that a call of it may call in turn, also by way of others: whatever keeps one of them from being called
    /// keeps it from being called.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub inner: BTreeSet<String>,
    /// How long its answers serve others that make the same call; they serve nobody where absent. Only a pure tool may say so
    /// whose answers depend on its arguments and on other machines alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ToolCache>,
}

impl ToolSpec {
    /// A pure tool without permissions and with the default time limit.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters,
            grants: BTreeSet::new(),
            pure: true,
            uncertain: Uncertain::Repeat,
            permission: RolePermission::Tools,
            timeout: DEFAULT_TIMEOUT,
            off_until_allowed: false,
            approve: false,
            repetition: Repetition::Usual,
            source: ToolSource::BuiltIn,
            sample: None,
            inner: BTreeSet::new(),
            cache: None,
        }
    }

    /// The same for a tool whose arguments are an object with these properties and no others.
    pub fn with_properties(
        name: impl Into<String>,
        description: impl Into<String>,
        properties: Value,
        required: &[&str],
    ) -> Self {
        let mut parameters = json!({"type": "object"});
        parameters["properties"] = properties;
        if !required.is_empty() {
            parameters["required"] = json!(required);
        }
        parameters["additionalProperties"] = Value::Bool(false);
        Self::new(name, description, parameters)
    }

    /// Adds a permission that a call needs.
    #[must_use]
    pub fn needing(mut self, permission: Permission) -> Self {
        self.grants.insert(permission);
        self
    }

    /// Marks the tool as having side effects: a call is journaled before it runs, and when its end is not known, the
    /// model is told so.
    #[must_use]
    pub fn with_side_effects(mut self) -> Self {
        self.pure = false;
        self.uncertain = Uncertain::Ask;
        self
    }

    /// Marks the tool as having side effects that a second call does not add to: a call whose end is not known is repeated.
    #[must_use]
    pub fn with_repeatable_effects(self) -> Self {
        self.with_side_effects().when_uncertain(Uncertain::Repeat)
    }

    /// Sets what is done about a call of which nobody knows whether it took effect.
    #[must_use]
    pub fn when_uncertain(mut self, uncertain: Uncertain) -> Self {
        self.uncertain = uncertain;
        self
    }

    /// Puts the tool behind another gate than that of tools.
    #[must_use]
    pub fn behind(mut self, permission: RolePermission) -> Self {
        self.permission = permission;
        self
    }

    /// Sets the time limit of one call.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Has a person approve each call before it is made.
    #[must_use]
    pub fn approved_by_person(mut self) -> Self {
        self.approve = true;
        self
    }

    /// Marks the tool as one that nobody may call until settings allow it.
    #[must_use]
    pub const fn until_allowed(mut self) -> Self {
        self.off_until_allowed = true;
        self
    }

    /// Keeps the engine from making a call again.
    #[must_use]
    pub const fn never_repeated(mut self) -> Self {
        self.repetition = Repetition::Never;
        self
    }

    /// Says where the tool comes from.
    #[must_use]
    pub fn from_source(mut self, source: ToolSource) -> Self {
        self.source = source;
        self
    }

    /// Gives arguments of a call that shows whether it works, and that does no harm.
    #[must_use]
    pub fn with_sample(mut self, arguments: Value) -> Self {
        self.sample = Some(arguments);
        self
    }

    /// Says which tools a call of it may call in turn.
    #[must_use]
    pub fn calling(mut self, inner: BTreeSet<String>) -> Self {
        self.inner = inner;
        self
    }

    /// Says how long its answers serve others that make the same call.
    #[must_use]
    pub fn cached(mut self, cache: Option<ToolCache>) -> Self {
        self.cache = cache;
        self
    }

    /// The name as model providers accept it: only `[A-Za-z0-9_-]`, dots become underscores.
    #[must_use]
    pub fn model_name(&self) -> String {
        model_name(&self.name)
    }
}

/// The model-facing form of a tool's name: every dot becomes an underscore.
#[must_use]
pub fn model_name(name: &str) -> String {
    name.replace('.', "_")
}

/// A tool. Implementations need not defend themselves: the engine validates arguments, keeps the time
/// limit, survives a panic and cuts what is too long.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The description; read once, on registration.
    fn spec(&self) -> ToolSpec;

    /// Does the work. `args` already fits the schema.
    ///
    /// # Errors
    /// Any [`ToolFailure`]; its message goes to the model.
    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure>;
}
