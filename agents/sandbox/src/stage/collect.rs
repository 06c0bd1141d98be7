//! What a program leaves behind is given back: plain files under names that a workspace has. Nobody is left who could change
//! anything while we look.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use muster_shared::text::quoted;
use muster_tools::workspace::{MAX_PATH, WorkspacePath};

use super::folder::{Folder, Stamp};
use super::places;
use crate::wire::{self, FileHead, Word};

/// Most things that are told to be kept back; more are counted.
const MOST_TOLD: u32 = 20;

/// What may be given back.
pub(super) struct Most {
    pub(super) files: u32,
    pub(super) bytes: u64,
}

/// Gives back what was made or changed, and says what is not.
///
/// # Errors
/// When whoever asked is gone.
pub(super) fn give_back(folder: &Folder, most: &Most, control: &mut UnixStream) -> io::Result<()> {
    let mut giver = Giver { folder, control, files: most.files, bytes: most.bytes, told: 0, untold: 0 };
    // Any number of entries costs time to look at, given back or not.
    let mut entries = u64::from(most.files).saturating_mul(8).saturating_add(64);
    let mut folders = vec![String::new()];
    while let Some(below) = folders.pop() {
        let mut names: Vec<_> =
            fs::read_dir(folder.path.join(&below)).into_iter().flatten().flatten().collect();
        names.sort_by_key(fs::DirEntry::file_name);
        for entry in names {
            entries = entries.saturating_sub(1);
            if entries == 0 {
                giver.keep(&below, "there are too many files")?;
                return giver.finish();
            }
            if let Some(deeper) = giver.look(&below, &entry)? {
                folders.push(deeper);
            }
        }
    }
    giver.finish()
}

struct Giver<'a> {
    folder: &'a Folder,
    control: &'a mut UnixStream,
    files: u32,
    bytes: u64,
    told: u32,
    untold: u32,
}

impl Giver<'_> {
    /// Gives one entry back, or says why not; gives a folder that is to be looked into.
    fn look(&mut self, below: &str, entry: &fs::DirEntry) -> io::Result<Option<String>> {
        let name = entry.file_name();
        let at_top = below.is_empty();
        if at_top && name.to_str().is_some_and(|name| places::OURS.contains(&name)) {
            return Ok(None);
        }
        let shown = name.to_string_lossy();
        let path = if at_top { shown.to_string() } else { format!("{below}/{shown}") };
        let Ok(meta) = entry.path().symlink_metadata() else { return Ok(None) };
        if name.to_str().is_none() {
            self.keep(&path, "its name is no text")?;
        } else if let Err(error) = WorkspacePath::parse(&path) {
            let why = error.to_string();
            self.keep(&path, why.rsplit_once("workspace: ").map_or(why.as_str(), |(_, why)| why))?;
        } else if meta.is_dir() {
            return Ok(Some(path));
        } else if meta.is_symlink() {
            self.keep(&path, "it is a link")?;
        } else if !meta.is_file() {
            self.keep(&path, "it is no plain file")?;
        } else if self.folder.laid.get(&path) != Some(&Stamp::of(&meta)) {
            self.give(path, &entry.path())?;
        }
        Ok(None)
    }

    fn give(&mut self, path: String, at: &Path) -> io::Result<()> {
        if self.files == 0 {
            return self.keep(&path, "there are too many files");
        }
        // Neither a link nor a pipe could have come in its place: nobody is left. It is opened as if it had.
        let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
        let opened = File::options().read(true).custom_flags(flags.bits()).open(at);
        let Ok((file, meta)) = opened.and_then(|file| file.metadata().map(|meta| (file, meta))) else {
            return self.keep(&path, "it cannot be read");
        };
        if !meta.is_file() || meta.len() > self.bytes {
            return self.keep(&path, "the files are too large together");
        }
        let mut content = Vec::new();
        if file.take(meta.len()).read_to_end(&mut content).is_err() {
            return self.keep(&path, "it cannot be read");
        }
        let bytes = content.len() as u64;
        self.files -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
        wire::send(self.control, &Word::File(FileHead { path, bytes }))?;
        io::Write::write_all(self.control, &content)
    }

    fn keep(&mut self, path: &str, why: &str) -> io::Result<()> {
        if self.told == MOST_TOLD {
            self.untold += 1;
            return Ok(());
        }
        self.told += 1;
        wire::send(self.control, &Word::Kept { path: quoted(path, MAX_PATH), why: why.to_owned() })
    }

    fn finish(self) -> io::Result<()> {
        if self.untold == 0 {
            return Ok(());
        }
        let path = format!("{} more", self.untold);
        wire::send(self.control, &Word::Kept { path, why: "for the same reasons".to_owned() })
    }
}
