//! What a tool is: its specification, what it is given, and what it answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use muster_corpus::{Corpus, CorpusError};
use muster_shared::flow::{LeafRef, Refusal, RolePermission, RolePermissions, TaskRights, Wait};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::workspace::Workspace;

/// Longest name of a tool, in characters (the limit of the strictest model provider).
pub const MAX_NAME: usize = 64;

/// Time a tool may take when its specification does not say otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// What a tool must be allowed to do before it may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
}

impl Permission {
    /// Every permission there is.
    pub const ALL: [Self; 7] = [
        Self::ReadDocuments,
        Self::ReadWorkspace,
        Self::WriteWorkspace,
        Self::Network,
        Self::Execute,
        Self::Memory,
        Self::AskPerson,
    ];

    /// The name used in settings and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadDocuments => "read_documents",
            Self::ReadWorkspace => "read_workspace",
            Self::WriteWorkspace => "write_workspace",
            Self::Network => "network",
            Self::Execute => "execute",
            Self::Memory => "memory",
            Self::AskPerson => "ask_person",
        }
    }
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
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
        }
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

/// What a call may use and on whose behalf it runs. Cheap to clone.
#[derive(Clone, Default)]
pub struct ToolContext {
    /// The run, for logs.
    pub run: String,
    /// The task, for logs and as the author of workspace files.
    pub task: String,
    /// What this agent was granted.
    pub grants: BTreeSet<Permission>,
    /// The documents of the run, if it has any.
    pub corpus: Option<Corpus>,
    /// Results of the tasks that this one builds on.
    pub results: Arc<Vec<LeafRef>>,
    /// The lines of documents that were shown in this task, so that they need not be shown again.
    pub shown: Option<Arc<BTreeMap<String, BTreeSet<u64>>>>,
    /// What the agent's role may do.
    pub permissions: RolePermissions,
    /// What the task may use.
    pub rights: Arc<TaskRights>,
    /// The files of the run, if it has a workspace.
    pub workspace: Option<Arc<dyn Workspace>>,
    /// Names this call, the same whoever makes it and however often: `run/task/gen/step`. Only calls with side effects
    /// have one; a tool that keeps it can tell a repetition.
    pub idempotency_key: Option<String>,
    /// Raised when the task is stopped; a call that runs is given up at once.
    pub cancel: CancellationToken,
}

impl ToolContext {
    /// A context for a task, with nothing granted yet.
    pub fn new(run: impl Into<String>, task: impl Into<String>) -> Self {
        Self { run: run.into(), task: task.into(), ..Self::default() }
    }

    /// Names the call that is made with this.
    #[must_use]
    pub fn under_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Narrows what the task may use.
    #[must_use]
    pub fn within(mut self, rights: Arc<TaskRights>) -> Self {
        self.rights = rights;
        self
    }

    /// Grants permissions.
    #[must_use]
    pub fn granting(mut self, grants: impl IntoIterator<Item = Permission>) -> Self {
        self.grants.extend(grants);
        self
    }

    /// Gives the documents of the run, and the permission to read them.
    #[must_use]
    pub fn with_corpus(mut self, corpus: Corpus) -> Self {
        self.corpus = Some(corpus);
        self.granting([Permission::ReadDocuments])
    }

    /// Gives the workspace of the run, and the permission to read and write it.
    #[must_use]
    pub fn with_workspace(mut self, workspace: Arc<dyn Workspace>) -> Self {
        self.workspace = Some(workspace);
        self.granting([Permission::ReadWorkspace, Permission::WriteWorkspace])
    }
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext")
            .field("run", &self.run)
            .field("task", &self.task)
            .field("permissions", &self.grants)
            .field("corpus", &self.corpus.as_ref().map(|corpus| corpus.id().to_string()))
            .field("workspace", &self.workspace.is_some())
            .finish_non_exhaustive()
    }
}

/// What a tool gives back when it worked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// The observation, in words for a model.
    pub content: String,
    /// The same as data, for programs.
    pub data: Option<Value>,
    /// What the task is to wait for before there is anything to observe. It is put down, frees its slot, and goes on
    /// with what came of it as the observation of this very call: content and data are of no use then.
    pub wait: Option<Box<Wait>>,
}

impl ToolOutput {
    /// An output of words alone.
    pub fn text(content: impl Into<String>) -> Self {
        Self { content: content.into(), data: None, wait: None }
    }

    /// There is nothing to observe before this is there. A tool that gives this should not be declared pure, and
    /// should repeat when its end is not known: it has done nothing by itself.
    #[must_use]
    pub fn waiting(wait: Wait) -> Self {
        Self { wait: Some(Box::new(wait)), ..Self::default() }
    }

    /// Adds the structured form.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

/// Why a tool could not do what it was asked. The message is shown to the model: it says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolFailure {
    /// The arguments fit the schema but make no sense.
    #[error("{0}")]
    InvalidArguments(String),
    /// What was asked for is not there.
    #[error("{0}")]
    NotFound(String),
    /// The request is against the rules, such as a path outside the workspace.
    #[error("{0}")]
    Refused(String),
    /// The task has no right to what the call uses.
    #[error("Not done: {0}. Go on without it.")]
    NoRight(Box<Refusal>),
    /// Something outside failed that may work when tried again.
    #[error("{0}")]
    Unavailable(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl From<CorpusError> for ToolFailure {
    fn from(error: CorpusError) -> Self {
        let message = error.to_string();
        match error {
            CorpusError::UnknownPath { .. } | CorpusError::Missing(_) => Self::NotFound(message),
            CorpusError::BadRange { .. } | CorpusError::BadPattern(_) => Self::InvalidArguments(message),
            CorpusError::Store(_)
            | CorpusError::Timeout(_)
            | CorpusError::Io { .. }
            | CorpusError::Index(_) => Self::Unavailable(message),
            CorpusError::NoFolder
            | CorpusError::FolderMissing(_)
            | CorpusError::FolderUnreadable { .. }
            | CorpusError::NothingUsable { .. }
            | CorpusError::Damaged(_) => Self::Failed(message),
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// The tool did what it was asked.
    Success,
    /// It could not: unknown tool, bad arguments, failure, panic.
    Error,
    /// It took longer than it may.
    Timeout,
    /// It was not let: permission missing, path outside, task stopped.
    Refused,
}

impl ToolStatus {
    /// The name used in records and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Refused => "refused",
        }
    }
}

/// The structured result of a call, whatever happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// How the call ended.
    pub status: ToolStatus,
    /// The observation, or what went wrong and what to do, in words for a model.
    pub content: String,
    /// The structured form, when the tool has one and it is not too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// How long the call took, in milliseconds.
    pub millis: u64,
    /// Whether content or data were cut to the size limit.
    #[serde(default)]
    pub truncated: bool,
    /// Whether the same call may succeed when tried again later.
    #[serde(default)]
    pub transient: bool,
    /// What the task is to wait for, see [`ToolOutput::wait`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Box<Wait>>,
    /// The right that the task has not, where that is why nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<Box<Refusal>>,
}

impl ToolResult {
    /// Whether the tool did what it was asked.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status == ToolStatus::Success
    }
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
