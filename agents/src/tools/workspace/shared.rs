//! A workspace on the bus: the same files for whoever works for the run, on whatever machine.

use async_trait::async_trait;
use bytes::Bytes;
use muster_bus::{BusError, FileList, FilePlace, Files, WriteError};
use muster_shared::flow::Artifact;
use muster_shared::ids::RunId;
use muster_tools::workspace::text_of;

use super::{Workspace, WorkspaceError, WorkspaceLimits, WorkspacePath, version_of};

/// The files of a run, as one of its tasks sees them. Cheap to clone.
#[derive(Clone)]
pub struct SharedWorkspace {
    files: Files,
    run: RunId,
    /// Who is named as the author.
    task: String,
    limits: WorkspaceLimits,
}

impl SharedWorkspace {
    /// The files of `run`, written in the name of `task`.
    #[must_use]
    pub fn new(files: Files, run: RunId, task: impl Into<String>, limits: WorkspaceLimits) -> Self {
        Self { files, run, task: task.into(), limits }
    }

    async fn change(
        &self,
        path: &WorkspacePath,
        over: Over<'_>,
        make: impl Fn(Option<&Bytes>) -> Result<Bytes, WorkspaceError> + Send + Sync,
        needs_content: bool,
    ) -> Result<u64, WorkspaceError> {
        let make = |list: &FileList, content: Option<&Bytes>| {
            check_place(&list.files, path)?;
            check_author(list, path, &self.task, over)?;
            let bytes = make(content)?;
            check_room(&list.files, path, bytes.len() as u64, &self.limits)?;
            Ok(bytes)
        };
        let place = FilePlace { run: self.run, path: path.as_str(), task: &self.task };
        match self.files.write(place, make, needs_content).await {
            Ok(file) => Ok(file.bytes),
            Err(WriteError::Refused(refusal)) => Err(refusal),
            Err(WriteError::Bus(error)) => Err(of_bus(error)),
        }
    }
}

#[async_trait]
impl Workspace for SharedWorkspace {
    async fn read_bytes(&self, path: &WorkspacePath) -> Result<Bytes, WorkspaceError> {
        let found = self.files.read(self.run, path.as_str()).await.map_err(of_bus)?;
        found.ok_or_else(|| WorkspaceError::NotFound(path.to_string()))
    }

    async fn write_bytes(&self, path: &WorkspacePath, bytes: Bytes) -> Result<(), WorkspaceError> {
        self.change(path, Over::Own, |_| Ok(bytes.clone()), false).await.map(|_| ())
    }

    async fn replace(&self, path: &WorkspacePath, text: &str, version: &str) -> Result<(), WorkspaceError> {
        self.change(path, Over::Version(version), |_| Ok(Bytes::copy_from_slice(text.as_bytes())), false)
            .await
            .map(|_| ())
    }

    async fn append(&self, path: &WorkspacePath, text: &str) -> Result<u64, WorkspaceError> {
        let added = |before: Option<&Bytes>| match before {
            Some(before) => Ok(Bytes::from(text_of(before, path)? + text)),
            None => Ok(Bytes::copy_from_slice(text.as_bytes())),
        };
        self.change(path, Over::Any, added, true).await
    }

    async fn list(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        Ok(self.files.list(self.run).await.map_err(of_bus)?.files)
    }

    async fn glance(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        Ok(self.files.glance(self.run).await.map_err(of_bus)?.files)
    }
}

/// What may be written over.
#[derive(Debug, Clone, Copy)]
enum Over<'a> {
    /// What the task itself wrote.
    Own,
    /// This version, whoever wrote it.
    Version(&'a str),
    /// Anything: what is there stays.
    Any,
}

/// What another task wrote is not lost without a word: whoever writes over it has to know of it.
fn check_author(
    list: &FileList,
    path: &WorkspacePath,
    task: &str,
    over: Over<'_>,
) -> Result<(), WorkspaceError> {
    let Some(file) = list.find(path.as_str()).filter(|file| file.task != task) else { return Ok(()) };
    let may = match over {
        Over::Own => false,
        Over::Version(version) => version.trim().eq_ignore_ascii_case(version_of(file)),
        Over::Any => true,
    };
    if may {
        return Ok(());
    }
    Err(WorkspaceError::Taken {
        path: file.path.clone(),
        by: file.task.clone(),
        bytes: file.bytes,
        version: version_of(file).to_owned(),
    })
}

/// A name cannot be that of a file and of a folder, so that all of them can be put on a disk.
///
/// # Errors
/// If the path leads through a file, or is the path of a directory.
pub fn check_place(files: &[Artifact], path: &WorkspacePath) -> Result<(), WorkspaceError> {
    let lies_below =
        |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    for file in files {
        if lies_below(path.as_str(), &file.path) {
            return Err(WorkspaceError::NotAFolder(file.path.clone()));
        }
        if lies_below(&file.path, path.as_str()) {
            return Err(WorkspaceError::NotAFile(path.to_string()));
        }
    }
    Ok(())
}

/// Checks the limits of a workspace before a file of this size is written.
///
/// # Errors
/// If a limit would be exceeded.
pub fn check_room(
    files: &[Artifact],
    path: &WorkspacePath,
    bytes: u64,
    limits: &WorkspaceLimits,
) -> Result<(), WorkspaceError> {
    let full = |what, limit| Err(WorkspaceError::Full { what, limit });
    if bytes > limits.max_file {
        return full("bytes in a file", limits.max_file);
    }
    let others = || files.iter().filter(|file| file.path != path.as_str());
    if others().count() >= limits.max_files {
        return full("files", limits.max_files as u64);
    }
    if others().map(|file| file.bytes).sum::<u64>().saturating_add(bytes) > limits.max_total {
        return full("bytes", limits.max_total);
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by value")]
fn of_bus(error: BusError) -> WorkspaceError {
    WorkspaceError::Bus(error.to_string())
}
