//! Files of a run's workspace, wherever they live.
//!
//! Paths are relative and `/`-separated. They are names in a list and no places on a disk: nothing outside the workspace
//! can be reached. That no path has `..`, is absolute or hidden keeps them harmless where they are put on a disk later.

use async_trait::async_trait;
use bytes::Bytes;
use muster_shared::flow::Artifact;

use super::spec::ToolFailure;
pub use crate::path::{MAX_DEPTH, MAX_PATH, WorkspacePath};

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
    async fn read(&self, path: &WorkspacePath) -> Result<String, WorkspaceError> {
        text_of(&self.read_bytes(path).await?, path)
    }

    /// What stands in a file, whatever it is.
    ///
    /// # Errors
    /// When it is not there, or cannot be read.
    async fn read_bytes(&self, path: &WorkspacePath) -> Result<Bytes, WorkspaceError>;

    /// The same as [`write`](Self::write) for what is no text, such as a picture.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    async fn write_bytes(&self, path: &WorkspacePath, bytes: Bytes) -> Result<(), WorkspaceError>;

    /// Writes a file as a whole: readers see the old text or the new, never a part. What another task wrote is not
    /// written over.
    ///
    /// # Errors
    /// When another task wrote it, a limit would be passed, or the path is that of a folder or leads through a file.
    async fn write(&self, path: &WorkspacePath, text: &str) -> Result<(), WorkspaceError> {
        self.write_bytes(path, Bytes::copy_from_slice(text.as_bytes())).await
    }

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
    async fn glance(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        self.list().await
    }
}

/// The text of a file with these bytes.
///
/// # Errors
/// When they are no text.
pub fn text_of(bytes: &Bytes, path: &WorkspacePath) -> Result<String, WorkspaceError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| WorkspaceError::NotText(path.to_string()))
}

/// How a version of a file is called: the beginning of its hash.
#[must_use]
pub fn version_of(file: &Artifact) -> &str {
    file.hash.get(..VERSION).unwrap_or(&file.hash)
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
