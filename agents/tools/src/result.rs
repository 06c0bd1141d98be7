//! What comes of a call of a tool.

use muster_corpus::CorpusError;
use muster_shared::flow::{CachedAnswer, Refusal, Wait};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

impl From<Refusal> for ToolFailure {
    fn from(refusal: Refusal) -> Self {
        Self::NoRight(Box::new(refusal))
    }
}

impl From<CorpusError> for ToolFailure {
    fn from(error: CorpusError) -> Self {
        let message = error.to_string();
        match error {
            CorpusError::UnknownPath { .. } | CorpusError::Missing(_) => Self::NotFound(message),
            CorpusError::BadRange { .. } | CorpusError::BadPattern(_) | CorpusError::NoPicture(_) => {
                Self::InvalidArguments(message)
            }
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
    #[serde(skip_serializing_if = "Option::is_none")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Box<Wait>>,
    /// The right that the task has not, where that is why nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<Box<Refusal>>,
    /// How often it was tried; 0 where it was not let begin.
    #[serde(default)]
    pub tries: u32,
    /// The tool that answered in place of the one that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// How old the answer is, in milliseconds, where it is the last good one of the same call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// The tool was not called: this is what the same call was answered before, by whichever agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<CachedAnswer>,
}

impl ToolResult {
    /// Whether the tool did what it was asked.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status == ToolStatus::Success
    }
}
