//! The folder of a program: made, filled, measured.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use muster_tools::workspace::WorkspacePath;
use tempfile::TempDir;

use super::places;
use crate::wire::{self, Failure, FileHead, Job, Mode};

/// Where the input stands until the program has it open.
const INPUT: &str = ".input";

/// How long ago files are said to have been written that are laid in. Clocks of file systems go in steps: what is written
/// right afterwards could otherwise have the same time.
const LAID_IN: Duration = Duration::from_secs(60);

/// What tells whether a file was changed. A program can set the time of writing as it likes, but not that of the entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    bytes: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(meta: &fs::Metadata) -> Self {
        Self {
            inode: meta.ino(),
            bytes: meta.len(),
            written: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// The folder of a program.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) input: PathBuf,
    /// Files as they were laid in.
    pub(super) laid: BTreeMap<String, Stamp>,
    /// Removes it, where it is not in memory.
    _removed_after: Option<TempDir>,
}

impl Folder {
    /// Makes it and lays in what comes over the socket.
    ///
    /// # Errors
    /// When it cannot be made, or what comes is not as announced.
    pub(super) fn make(
        job: &Job,
        mode: Mode,
        user: Option<u32>,
        control: &mut UnixStream,
    ) -> Result<Self, Failure> {
        let failed = Failure::at("making the folder of the program");
        let (path, removed) = match mode {
            Mode::Namespaces => {
                let size = job.limits.disk.saturating_add(job.laid).saturating_add(job.input);
                places::make_folder(size, job.most_files.saturating_add(job.files))?;
                (PathBuf::from(places::FOLDER), None)
            }
            Mode::Plain => {
                let made = tempfile::Builder::new()
                    .prefix("muster-program-")
                    .tempdir_in(&job.folder)
                    .map_err(&failed)?;
                (made.path().to_path_buf(), Some(made))
            }
        };
        for name in places::OURS {
            match fs::create_dir(path.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(&failed)?,
            }
        }
        let input = path.join(INPUT);
        take(control, &input, job.input).map_err(Failure::at("laying in the input"))?;
        let mut folder = Self { path, input, laid: BTreeMap::new(), _removed_after: removed };
        for _ in 0..job.files {
            folder.lay_in(control).map_err(Failure::at("laying in the files"))?;
        }
        if let Some(user) = user.filter(|_| mode == Mode::Plain) {
            give(&folder.path, user).map_err(Failure::at("giving the folder to the program"))?;
        }
        folder.stamp(Path::new("")).map_err(Failure::at("looking at the files"))?;
        Ok(folder)
    }

    fn lay_in(&mut self, control: &mut UnixStream) -> io::Result<()> {
        let head: FileHead = wire::receive(control)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let path = WorkspacePath::parse(&head.path).map_err(io::Error::other)?;
        let at = self.path.join(path.as_str());
        if let Some(parent) = at.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
        }
        take(control, &at, head.bytes)?.set_modified(SystemTime::now() - LAID_IN)
    }

    fn stamp(&mut self, below: &Path) -> io::Result<()> {
        for entry in fs::read_dir(self.path.join(below))? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            let meta = entry.metadata()?;
            match path.to_str().filter(|path| !path.starts_with('.')) {
                Some(_) if meta.is_dir() => self.stamp(&path)?,
                Some(name) => drop(self.laid.insert(name.to_owned(), Stamp::of(&meta))),
                None => {}
            }
        }
        Ok(())
    }
}

fn take(control: &mut UnixStream, at: &Path, bytes: u64) -> io::Result<File> {
    let mut file = File::options().write(true).create_new(true).open(at)?;
    let copied = io::copy(&mut control.take(bytes), &mut file)?;
    if copied == bytes { Ok(file) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Nobody but us has been in there yet.
fn give(path: &Path, user: u32) -> io::Result<()> {
    chown(path, Some(user), Some(user))?;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), user)?;
        }
    }
    Ok(())
}

/// How much lies in a folder, in bytes on the disk and in entries, looked at up to these. What cannot be looked at is
/// passed over: it may have gone in the meantime.
pub(super) fn measure(path: &Path, most_bytes: u64, most_entries: u64) -> (u64, u64) {
    let (mut bytes, mut entries) = (0_u64, 0_u64);
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.path().symlink_metadata() else { continue };
            bytes = bytes.saturating_add(meta.blocks().saturating_mul(512));
            entries += 1;
            if bytes > most_bytes || entries > most_entries {
                return (bytes, entries);
            }
            if meta.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    (bytes, entries)
}
