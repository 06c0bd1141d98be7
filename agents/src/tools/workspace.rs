//! Files of a run's workspace: what tasks write down for each other and for the person who asked.
//!
//! Paths are relative and `/`-separated. They are names in a list and no places on a disk: nothing outside the workspace
//! can be reached. That no path has `..`, is absolute or hidden keeps them harmless where they are put on a disk later.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use muster_shared::flow::Artifact;
use serde_json::{Value, json};

pub use self::{
    path::{MAX_DEPTH, MAX_PATH, WorkspacePath},
    shared::SharedWorkspace,
};
use super::spec::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec, Uncertain};

#[path = "workspace/path.rs"]
mod path;
#[path = "workspace/shared.rs"]
mod shared;

/// Most characters of a file that one `workspace.read` shows, in bytes.
const MAX_SHOWN: usize = 24 * 1024;

/// Letters of a version.
const VERSION: usize = 12;

/// What a workspace may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceLimits {
    /// Largest file, in bytes.
    pub max_file: u64,
    /// Largest sum of all files, in bytes.
    pub max_total: u64,
    /// Most files.
    pub max_files: usize,
}

impl Default for WorkspaceLimits {
    fn default() -> Self {
        Self { max_file: 1024 * 1024, max_total: 64 * 1024 * 1024, max_files: 1_000 }
    }
}

/// Why a workspace refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path is not one inside the workspace.
    #[error("`{path}` is no path in the workspace: {reason}")]
    BadPath {
        /// The path as given.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no such file.
    #[error("there is no file `{0}` in the workspace; list it to see what there is")]
    NotFound(String),
    /// The path is that of a folder.
    #[error("`{0}` is a folder; list the workspace to see what is in it")]
    NotAFile(String),
    /// The path leads through a file.
    #[error("`{0}` is a file and no folder; choose another path")]
    NotAFolder(String),
    /// The file is no text.
    #[error("`{0}` is not a text file")]
    NotText(String),
    /// Another task wrote it.
    #[error(
        "`{path}` was written by task {by} ({bytes} bytes) and stays as it is. Choose another name; or, if it is to be \
         replaced, read it first and write it with `replaces`: \"{version}\""
    )]
    Taken {
        /// The path.
        path: String,
        /// Who wrote it last.
        by: String,
        /// How long it is.
        bytes: u64,
        /// Its version.
        version: String,
    },
    /// A limit would be passed.
    #[error("the workspace would pass its limit of {limit} {what}; write less, or reuse a file")]
    Full {
        /// What is limited.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The bus failed.
    #[error("the workspace cannot be reached: {0}")]
    Bus(String),
}

/// The files of one run, wherever they live.
#[async_trait]
pub trait Workspace: Send + Sync + 'static {
    /// The text of a file.
    ///
    /// # Errors
    /// When it is not there, no text file, or cannot be read.
    async fn read(&self, path: &WorkspacePath) -> Result<String, WorkspaceError>;

    /// Writes a file as a whole: readers see the old text or the new, never a part. What another task wrote is not
    /// written over.
    ///
    /// # Errors
    /// When another task wrote it, a limit would be passed, or the path is that of a folder or leads through a file.
    async fn write(&self, path: &WorkspacePath, text: &str) -> Result<(), WorkspaceError>;

    /// The same, in place of this version, whoever wrote it.
    ///
    /// # Errors
    /// When another task wrote another version of it, and as [`write`](Self::write).
    async fn replace(&self, path: &WorkspacePath, text: &str, version: &str) -> Result<(), WorkspaceError>;

    /// Adds to the end of a file, which is made when it is not there. Gives the new size in bytes.
    ///
    /// # Errors
    /// When a limit would be passed, or the path is that of a folder or leads through a file.
    async fn append(&self, path: &WorkspacePath, text: &str) -> Result<u64, WorkspaceError>;

    /// All files by path.
    ///
    /// # Errors
    /// When the workspace cannot be read.
    async fn list(&self) -> Result<Vec<Artifact>, WorkspaceError>;

    /// The same as far as this process has heard: what another one has just written may be missing. Costs nothing.
    ///
    /// # Errors
    /// When the workspace cannot be read.
    async fn glance(&self) -> Result<Vec<Artifact>, WorkspaceError>;
}

/// How a version of a file is called: the beginning of its hash.
#[must_use]
pub fn version_of(file: &Artifact) -> &str {
    file.hash.get(..VERSION).unwrap_or(&file.hash)
}

/// The four workspace tools: `workspace.read`, `workspace.list`, `workspace.write`, `workspace.append`.
#[must_use]
pub fn workspace_tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Read), Arc::new(List), Arc::new(Write), Arc::new(Append)]
}

struct Read;
struct List;
struct Write;
struct Append;

static PATH_ONLY: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {"path": path_schema()},
        "required": ["path"],
        "additionalProperties": false
    })
});

static PATH_TEXT_AND_VERSION: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {
            "path": path_schema(),
            "text": {"type": "string"},
            "replaces": {
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "description": "of another task's file: the version that it replaces"
            }
        },
        "required": ["path", "text"],
        "additionalProperties": false
    })
});

static PATH_AND_TEXT: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {"path": path_schema(), "text": {"type": "string"}},
        "required": ["path", "text"],
        "additionalProperties": false
    })
});

fn path_schema() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_PATH,
        "description": "such as notes/findings.md"
    })
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("workspace.read", "Reads a text file of the run's workspace.", PATH_ONLY.clone())
            .needing(Permission::ReadWorkspace)
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let path = path_of(&args)?;
        let mut text = workspace(ctx)?.read(&path).await?;
        let bytes = text.len();
        if bytes > MAX_SHOWN {
            text.truncate(text.floor_char_boundary(MAX_SHOWN));
            text.push_str(&format!("\n[cut: the file has {bytes} bytes, the first {MAX_SHOWN} are shown]"));
        }
        Ok(ToolOutput::text(text).with_data(json!({"path": path.as_str(), "bytes": bytes})))
    }
}

#[async_trait]
impl Tool for List {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(
            "workspace.list",
            "Lists the files of the run's workspace with their sizes, who wrote them, and their versions.",
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
        )
        .needing(Permission::ReadWorkspace)
    }

    async fn call(&self, ctx: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        let files = workspace(ctx)?.list().await?;
        if files.is_empty() {
            return Ok(ToolOutput::text("The workspace is empty.").with_data(json!([])));
        }
        let lines: Vec<String> = files
            .iter()
            .map(|file| format!("{} ({} bytes{})", file.path, file.bytes, author(file)))
            .collect();
        let entry = |file: &Artifact| json!({"path": file.path, "bytes": file.bytes, "task": file.task, "version": version_of(file)});
        let data = files.iter().map(entry).collect();
        Ok(ToolOutput::text(lines.join("\n")).with_data(data))
    }
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(
            "workspace.write",
            "Writes a text file of the run's workspace, over your own if it is there.",
            PATH_TEXT_AND_VERSION.clone(),
        )
        .needing(Permission::WriteWorkspace)
        .with_side_effects()
        // The file is replaced as a whole: writing it twice is as good as once.
        .when_uncertain(Uncertain::Repeat)
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let (path, text) = (path_of(&args)?, text_of(&args));
        match args.get("replaces").and_then(Value::as_str) {
            Some(version) => workspace(ctx)?.replace(&path, text, version).await?,
            None => workspace(ctx)?.write(&path, text).await?,
        }
        Ok(ToolOutput::text(format!("Wrote {} bytes to {path}.", text.len()))
            .with_data(json!({"path": path.as_str(), "bytes": text.len()})))
    }
}

#[async_trait]
impl Tool for Append {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(
            "workspace.append",
            "Adds text to the end of a file in the run's workspace, which is made when it is not there.",
            PATH_AND_TEXT.clone(),
        )
        .needing(Permission::WriteWorkspace)
        .with_side_effects()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let (path, text) = (path_of(&args)?, text_of(&args));
        let bytes = workspace(ctx)?.append(&path, text).await?;
        Ok(ToolOutput::text(format!("Added {} bytes to {path}, which now has {bytes}.", text.len()))
            .with_data(json!({"path": path.as_str(), "bytes": bytes})))
    }
}

/// Who wrote a file, and which version it is.
fn author(file: &Artifact) -> String {
    if file.task.is_empty() {
        format!(", version {}", version_of(file))
    } else {
        format!(", by task {}, version {}", file.task, version_of(file))
    }
}

fn path_of(args: &Value) -> Result<WorkspacePath, ToolFailure> {
    Ok(WorkspacePath::parse(args.get("path").and_then(Value::as_str).unwrap_or_default())?)
}

fn text_of(args: &Value) -> &str {
    args.get("text").and_then(Value::as_str).unwrap_or_default()
}

fn workspace(ctx: &ToolContext) -> Result<&Arc<dyn Workspace>, ToolFailure> {
    ctx.workspace.as_ref().ok_or_else(|| ToolFailure::Unavailable("this run has no workspace".to_owned()))
}

impl From<WorkspaceError> for ToolFailure {
    fn from(error: WorkspaceError) -> Self {
        let message = error.to_string();
        match error {
            WorkspaceError::BadPath { .. }
            | WorkspaceError::NotAFile(_)
            | WorkspaceError::NotAFolder(_)
            | WorkspaceError::Taken { .. }
            | WorkspaceError::Full { .. } => Self::Refused(message),
            WorkspaceError::NotFound(_) => Self::NotFound(message),
            WorkspaceError::NotText(_) => Self::InvalidArguments(message),
            WorkspaceError::Bus(_) => Self::Unavailable(message),
        }
    }
}

#[cfg(test)]
#[path = "workspace/tests.rs"]
mod tests;
