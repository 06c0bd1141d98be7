//! A workspace in a directory of this machine.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use async_trait::async_trait;
use nix::{
    errno::Errno,
    fcntl::{OFlag, open, openat, renameat},
    sys::stat::{Mode, mkdirat},
    unistd::{UnlinkatFlags, unlinkat},
};

use super::{MAX_DEPTH, Workspace, WorkspaceError, WorkspaceFile, WorkspaceLimits, WorkspacePath};

/// The name under which a file is written before it takes its place; hidden, so never a valid path.
const UNFINISHED: &str = ".unfinished";

/// A directory as a workspace. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LocalWorkspace(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    /// The folder once it is made, without links. Most tasks never touch their workspace.
    made: OnceLock<PathBuf>,
    limits: WorkspaceLimits,
    /// One writer at a time, so that limits hold and additions are not lost.
    writing: Mutex<()>,
}

impl LocalWorkspace {
    /// A workspace in `folder`, which is made when it is first used.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>, limits: WorkspaceLimits) -> Self {
        let (folder, made) = (folder.into(), OnceLock::new());
        Self(Arc::new(Inner { folder, made, limits, writing: Mutex::new(()) }))
    }

    /// The directory, made if it was not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn root(&self) -> Result<&Path, WorkspaceError> {
        Ok(self.0.root()?)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let inner = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || work(&inner)).await.map_err(io::Error::other)?
    }
}

#[async_trait]
impl Workspace for LocalWorkspace {
    async fn read(&self, path: &WorkspacePath) -> Result<String, WorkspaceError> {
        let path = path.clone();
        self.blocking(move |inner| inner.read(&path)).await
    }

    async fn write(&self, path: &WorkspacePath, text: &str) -> Result<(), WorkspaceError> {
        let (path, text) = (path.clone(), text.to_owned());
        self.blocking(move |inner| {
            let _one = inner.writing.lock().unwrap_or_else(PoisonError::into_inner);
            inner.write(&path, &text)
        })
        .await
    }

    async fn append(&self, path: &WorkspacePath, text: &str) -> Result<u64, WorkspaceError> {
        let (path, text) = (path.clone(), text.to_owned());
        self.blocking(move |inner| {
            let _one = inner.writing.lock().unwrap_or_else(PoisonError::into_inner);
            let mut whole = match inner.read(&path) {
                Ok(before) => before,
                Err(WorkspaceError::NotFound(_)) => String::new(),
                Err(other) => return Err(other),
            };
            whole.push_str(&text);
            inner.write(&path, &whole)?;
            Ok(whole.len() as u64)
        })
        .await
    }

    async fn list(&self) -> Result<Vec<WorkspaceFile>, WorkspaceError> {
        self.blocking(Inner::list).await
    }
}

impl Inner {
    fn root(&self) -> io::Result<&Path> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        std::fs::create_dir_all(&self.folder)?;
        let made = self.folder.canonicalize()?;
        Ok(self.made.get_or_init(|| made))
    }

    fn read(&self, path: &WorkspacePath) -> Result<String, WorkspaceError> {
        let (folders, name) = path.split();
        let folder = self.folder(&folders, path, false)?;
        // Without O_NONBLOCK, opening a named pipe would wait for a writer.
        let file = open_at(&folder, name, OFlag::O_RDONLY | OFlag::O_NONBLOCK, path)?;
        let file = File::from(file);
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(WorkspaceError::NotAFile(path.to_string()));
        }
        let mut bytes = Vec::new();
        file.take(self.limits.max_file + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.limits.max_file {
            return Err(WorkspaceError::Full { what: "bytes in a file", limit: self.limits.max_file });
        }
        String::from_utf8(bytes).map_err(|_| WorkspaceError::NotText(path.to_string()))
    }

    fn write(&self, path: &WorkspacePath, text: &str) -> Result<(), WorkspaceError> {
        self.check_room(path, text.len() as u64)?;
        let (folders, name) = path.split();
        let folder = self.folder(&folders, path, true)?;
        if is_folder(&folder, name) {
            return Err(WorkspaceError::NotAFile(path.to_string()));
        }
        let unfinished = format!("{UNFINISHED}-{}", uuid::Uuid::now_v7());
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        let mut file = File::from(open_at(&folder, unfinished.as_str(), flags, path)?);
        let placed = file
            .write_all(text.as_bytes())
            .and_then(|()| renameat(&folder, unfinished.as_str(), &folder, name).map_err(io::Error::from));
        if placed.is_err() {
            // The first error is the one worth telling.
            let _ = unlinkat(&folder, unfinished.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        Ok(placed?)
    }

    fn check_room(&self, path: &WorkspacePath, bytes: u64) -> Result<(), WorkspaceError> {
        let full = |what, limit| Err(WorkspaceError::Full { what, limit });
        if bytes > self.limits.max_file {
            return full("bytes in a file", self.limits.max_file);
        }
        let others: Vec<WorkspaceFile> =
            self.list()?.into_iter().filter(|file| file.path != path.as_str()).collect();
        if others.len() >= self.limits.max_files {
            return full("files", self.limits.max_files as u64);
        }
        if others.iter().map(|file| file.bytes).sum::<u64>().saturating_add(bytes) > self.limits.max_total {
            return full("bytes", self.limits.max_total);
        }
        Ok(())
    }

    /// Opens folder after folder from the root, following no link, so that nothing that is swapped
    /// meanwhile leads outside.
    fn folder(&self, folders: &[&str], path: &WorkspacePath, make: bool) -> Result<OwnedFd, WorkspaceError> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut at = open(self.root()?, flags, Mode::empty()).map_err(io::Error::from)?;
        for name in folders {
            if make {
                match mkdirat(&at, *name, Mode::from_bits_truncate(0o755)) {
                    Ok(()) | Err(Errno::EEXIST) => {}
                    Err(error) => return Err(refusal(error, path)),
                }
            }
            at = open_at(&at, name, OFlag::O_RDONLY | OFlag::O_DIRECTORY, path)?;
        }
        Ok(at)
    }

    fn list(&self) -> Result<Vec<WorkspaceFile>, WorkspaceError> {
        let mut files = Vec::new();
        let mut seen = 0;
        self.list_into(self.root()?, "", 0, &mut seen, &mut files)?;
        files.sort();
        Ok(files)
    }

    fn list_into(
        &self,
        folder: &Path,
        prefix: &str,
        depth: usize,
        seen: &mut usize,
        files: &mut Vec<WorkspaceFile>,
    ) -> Result<(), WorkspaceError> {
        for entry in std::fs::read_dir(folder)? {
            // What tools wrote stays below this; a folder filled by others is not walked for ever.
            *seen += 1;
            if *seen > self.limits.max_files.saturating_mul(MAX_DEPTH + 1) {
                return Ok(());
            }
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let kind = entry.file_type()?;
            let path = format!("{prefix}{name}");
            if name.starts_with('.') {
                continue;
            }
            if kind.is_dir() && depth + 1 < MAX_DEPTH {
                self.list_into(&entry.path(), &format!("{path}/"), depth + 1, seen, files)?;
            } else if kind.is_file() {
                files.push(WorkspaceFile { path, bytes: entry.metadata()?.len() });
            }
        }
        Ok(())
    }
}

fn open_at(
    folder: impl AsFd,
    name: &str,
    flags: OFlag,
    path: &WorkspacePath,
) -> Result<OwnedFd, WorkspaceError> {
    openat(folder, name, flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::from_bits_truncate(0o644))
        .map_err(|error| refusal(error, path))
}

fn is_folder(folder: impl AsFd, name: &str) -> bool {
    openat(
        folder,
        name,
        OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
    .is_ok()
}

fn refusal(error: Errno, path: &WorkspacePath) -> WorkspaceError {
    match error {
        Errno::ENOENT => WorkspaceError::NotFound(path.to_string()),
        Errno::ELOOP | Errno::ENOTDIR | Errno::EISDIR | Errno::EMLINK | Errno::ENXIO => {
            WorkspaceError::NotAFile(path.to_string())
        }
        other => WorkspaceError::Io(other.into()),
    }
}
