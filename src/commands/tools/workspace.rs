//! The files of a call by hand: those of a folder, in a workspace as a run has it. What the call changed is written back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use muster_agents::tools::workspace::WorkspacePath;
use muster_agents::tools::{SharedWorkspace, Workspace, WorkspaceLimits};
use muster_bus::Bus;
use muster_shared::ids::RunId;

use crate::commands::artifacts;
use crate::exit::Failure;

/// The author of the files; whoever calls a tool by hand may write over them.
const TASK: &str = "by-hand";

/// A workspace and the folder that it is of.
pub(super) struct HandWorkspace {
    files: Arc<SharedWorkspace>,
    folder: Option<PathBuf>,
    /// The hash of each file as it was.
    before: BTreeMap<String, String>,
}

impl HandWorkspace {
    /// The files of a folder; none without one. Hidden files and links are left out.
    pub(super) async fn open(bus: &Bus, run: RunId, folder: Option<&Path>) -> Result<Self, Failure> {
        let limits = WorkspaceLimits::default();
        let files = Arc::new(SharedWorkspace::new(bus.files(), run, TASK, limits.clone()));
        if let Some(folder) = folder {
            for (path, place) in found(folder, &limits)? {
                let bytes = fs::read(&place).map_err(|error| unreadable(&place, &error))?;
                files.write_bytes(&path, Bytes::from(bytes)).await.map_err(|error| {
                    Failure::usage(format!("{} cannot be in a workspace: {error}", place.display()))
                        .help("give a smaller folder with --workspace")
                })?;
            }
        }
        let before = hashes(&files).await?;
        Ok(Self { files, folder: folder.map(Path::to_owned), before })
    }

    /// The workspace as tools have it.
    pub(super) fn shared(&self) -> Arc<dyn Workspace> {
        Arc::<SharedWorkspace>::clone(&self.files)
    }

    /// Writes what is new or changed back into the folder, or into a new one; gives where.
    pub(super) async fn write_back(self) -> Result<Vec<PathBuf>, Failure> {
        let after = hashes(&self.files).await?;
        let changed: Vec<String> = after
            .into_iter()
            .filter(|(path, hash)| self.before.get(path) != Some(hash))
            .map(|(path, _)| path)
            .collect();
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        let folder = match self.folder {
            Some(folder) => folder,
            None => new_folder()?,
        };
        let mut written = Vec::with_capacity(changed.len());
        for path in changed {
            let path = WorkspacePath::parse(&path).map_err(|error| Failure::failed(error.to_string()))?;
            let bytes =
                self.files.read_bytes(&path).await.map_err(|error| Failure::failed(error.to_string()))?;
            let target = folder.join(path.as_str());
            artifacts::write(&folder, &target, &bytes, true)?;
            written.push(target);
        }
        Ok(written)
    }
}

async fn hashes(files: &SharedWorkspace) -> Result<BTreeMap<String, String>, Failure> {
    let listed = files.list().await.map_err(|error| Failure::failed(error.to_string()))?;
    Ok(listed.into_iter().map(|file| (file.path, file.hash)).collect())
}

fn new_folder() -> Result<PathBuf, Failure> {
    let made = tempfile::Builder::new().prefix("muster-tools-").tempdir();
    made.map(tempfile::TempDir::keep).map_err(|error| {
        Failure::failed(format!("no folder can be made for the files of the call: {error}"))
            .help("name one with --workspace")
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
                return Err(Failure::usage(format!(
                    "{} has more than {} files",
                    folder.display(),
                    limits.max_files
                ))
                .help("give a smaller folder with --workspace"));
            }
        }
    }
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{} cannot be read: {error}", path.display()))
        .help("give a folder that exists and that you may read with --workspace")
}
