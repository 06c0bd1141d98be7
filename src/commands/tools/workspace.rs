//! The files of a call by hand: those of a folder, in a workspace as a run has it. What the call changed is written back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use bytes::Bytes;
use muster_agents::tools::workspace::{WorkspaceError, WorkspacePath, check_place, check_room};
use muster_agents::tools::{Workspace, WorkspaceLimits};
use muster_shared::flow::Artifact;
use muster_shared::sync::lock;
use muster_tools::workspace::text_of;
use sha2::{Digest, Sha256};

use crate::commands::artifacts;
use crate::exit::{Failure, failed, usage};

/// The author of the files.
const TASK: &str = "by-hand";

type Contents = BTreeMap<String, Bytes>;

/// A workspace and the folder that it is of.
pub(super) struct HandWorkspace {
    files: Mutex<Contents>,
    limits: WorkspaceLimits,
    folder: Option<PathBuf>,
    /// The files before the call.
    before: Contents,
}

impl HandWorkspace {
    /// The files of a folder; none without one. Hidden files and links are left out.
    pub(super) async fn open(folder: Option<&Path>) -> Result<Arc<Self>, Failure> {
        let limits = WorkspaceLimits::default();
        let (files, before) = (Mutex::default(), Contents::new());
        let mut opened = Self { files, limits, folder: folder.map(Path::to_owned), before };
        if let Some(folder) = folder {
            for (path, place) in found(folder, &opened.limits)? {
                let bytes = fs::read(&place).map_err(|error| unreadable(&place, &error))?;
                opened.write_bytes(&path, Bytes::from(bytes)).await.map_err(|error| {
                    usage!("{} cannot be in a workspace: {error}", place.display())
                        .help("give a smaller folder with --workspace")
                })?;
            }
        }
        let before = opened.files().clone();
        opened.before = before;
        Ok(Arc::new(opened))
    }

    fn files(&self) -> MutexGuard<'_, Contents> {
        lock(&self.files)
    }

    /// Writes what is new or changed back into the folder, or into a new one; gives where.
    pub(super) fn write_back(&self) -> Result<Vec<PathBuf>, Failure> {
        let files = self.files();
        let changed: Vec<_> =
            files.iter().filter(|(path, bytes)| self.before.get(*path) != Some(*bytes)).collect();
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => new_folder()?,
        };
        let mut written = Vec::with_capacity(changed.len());
        for (path, bytes) in changed {
            let target = folder.join(path);
            artifacts::write(&folder, &target, bytes, true)?;
            written.push(target);
        }
        Ok(written)
    }

    fn put(
        &self,
        path: &WorkspacePath,
        make: impl FnOnce(Option<&Bytes>) -> Result<Bytes, WorkspaceError>,
    ) -> Result<u64, WorkspaceError> {
        let mut files = self.files();
        let bytes = make(files.get(path.as_str()))?;
        let (listed, length) = (listed(&files), bytes.len() as u64);
        check_place(&listed, path)?;
        check_room(&listed, path, length, &self.limits)?;
        files.insert(path.to_string(), bytes);
        Ok(length)
    }
}

fn listed(files: &Contents) -> Vec<Artifact> {
    let artifact = |(path, bytes): (&String, &Bytes)| Artifact {
        path: path.clone(),
        bytes: bytes.len() as u64,
        hash: hex::encode(Sha256::digest(bytes)),
        task: TASK.to_owned(),
    };
    files.iter().map(artifact).collect()
}

#[async_trait]
impl Workspace for HandWorkspace {
    async fn read_bytes(&self, path: &WorkspacePath) -> Result<Bytes, WorkspaceError> {
        let found = self.files().get(path.as_str()).cloned();
        found.ok_or_else(|| WorkspaceError::NotFound(path.to_string()))
    }

    async fn write_bytes(&self, path: &WorkspacePath, bytes: Bytes) -> Result<(), WorkspaceError> {
        self.put(path, |_| Ok(bytes)).map(drop)
    }

    async fn replace(&self, path: &WorkspacePath, text: &str, _: &str) -> Result<(), WorkspaceError> {
        self.write(path, text).await
    }

    async fn append(&self, path: &WorkspacePath, text: &str) -> Result<u64, WorkspaceError> {
        self.put(path, |before| {
            let before = before.map(|before| text_of(before, path)).transpose()?;
            Ok(Bytes::from(before.unwrap_or_default() + text))
        })
    }

    async fn list(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        Ok(listed(&self.files()))
    }
}

fn new_folder() -> Result<PathBuf, Failure> {
    let made = tempfile::Builder::new().prefix("muster-tools-").tempdir();
    made.map(tempfile::TempDir::keep).map_err(|error| {
        failed!("no folder can be made for the files of the call: {error}").help("name one with --workspace")
    })
}

/// The plain files below a folder that can stand in a workspace, each with its path there.
fn found(folder: &Path, limits: &WorkspaceLimits) -> Result<Vec<(WorkspacePath, PathBuf)>, Failure> {
    let mut open = vec![(folder.to_owned(), String::new())];
    let mut files = Vec::new();
    while let Some((below, prefix)) = open.pop() {
        let entries = fs::read_dir(&below).map_err(|error| unreadable(&below, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(&below, &error))?;
            let kind = entry.file_type().map_err(|error| unreadable(&entry.path(), &error))?;
            let Some(path) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else {
                continue;
            };
            // What no path of a workspace can name is left out, hidden names among it.
            let Ok(named) = WorkspacePath::parse(&path) else { continue };
            if kind.is_dir() {
                open.push((entry.path(), format!("{path}/")));
            } else if kind.is_file() {
                files.push((named, entry.path()));
            }
            if files.len() > limits.max_files || open.len() > limits.max_files {
                return Err(usage!("{} has more than {} files", folder.display(), limits.max_files)
                    .help("give a smaller folder with --workspace"));
            }
        }
    }
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    usage!("{} cannot be read: {error}", path.display())
        .help("give a folder that exists and that you may read with --workspace")
}
