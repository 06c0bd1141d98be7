//! Files that are no text: what reads them is given from outside, and what they give is kept, so that a file that did not
//! change is not read again.
//!
//! A file becomes one document or several: a workbook is a folder of its sheets, an archive one of its files. What has
//! pages stays one document, whose text is cut into them.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use super::{disk, manifest::hash_of, unit::Unit};

/// What was made of files is kept for so long after it was used last.
const KEPT_FOR: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// Most of it that is kept, in bytes; what was not used for longest goes first.
const MOST_KEPT: u64 = 2 * 1024 * 1024 * 1024;

/// Raised with every change of what is kept of a file.
const KEPT_VERSION: u32 = 1;

/// Gets the text out of files that are no text. Called from several threads at once.
pub trait Extractor: Send + Sync {
    /// Changes whenever the same file may give another text.
    fn version(&self) -> String;

    /// Whether it reads such a file: by its name, and by the bytes that it begins with.
    fn takes(&self, path: &str, beginning: &[u8]) -> bool;

    /// The text of a file. Blocks.
    ///
    /// # Errors
    /// Why it has none.
    fn extract(&self, path: &str, bytes: Vec<u8>) -> Result<Extracted, ExtractFailure>;
}

/// What a file gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extracted {
    /// Its documents.
    pub documents: Vec<ExtractedDocument>,
    /// What was left out, and why; in words for people.
    pub left_out: Vec<String>,
}

/// A document that a file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractedDocument {
    /// Where it lies within the file, `/`-separated: a sheet, a file of an archive. Empty for what is the file itself.
    pub within: String,
    /// What of it is cited.
    #[serde(default, skip_serializing_if = "Unit::is_line")]
    pub unit: Unit,
    /// Its text. Where pages and the like are cited, as [`cut_into`](super::cut_into) joins them.
    pub text: String,
}

/// Why a file has no text for us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ExtractFailure {
    /// It needs a password.
    #[error("it is encrypted")]
    Encrypted,
    /// It passes a limit.
    #[error("it passes the limit of {0}")]
    TooLarge(String),
    /// It is broken.
    #[error("it is broken: {0}")]
    Broken(String),
    /// It is of a kind that nothing here reads.
    #[error("nothing reads this kind")]
    Unknown,
    /// It could not be read now; it may be another time.
    #[error("it could not be read: {0}")]
    NotNow(String),
}

/// What was made of files, in the cache directory.
#[derive(Debug, Clone)]
pub(super) struct ExtractedFolder(PathBuf);

/// The name under which what was made of a file is kept.
pub(super) struct ExtractedKey(String);

impl ExtractedKey {
    /// By what stands in the file, its kind by name, and what reads it.
    pub(super) fn of(version: &str, path: &str, bytes: &[u8]) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        let told = format!("{KEPT_VERSION}\0{version}\0{ending}\0{}", hash_of(bytes));
        Self(hash_of(told.as_bytes()))
    }
}

impl ExtractedFolder {
    pub(super) fn of(cache: &Path) -> Self {
        Self(cache.join("extracted"))
    }

    /// What was made of that file before.
    pub(super) fn get(&self, key: &ExtractedKey) -> Option<Result<Extracted, ExtractFailure>> {
        let path = self.0.join(&key.0);
        let kept = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        if let Ok(file) = File::options().append(true).open(&path) {
            // A note that fails costs reading the file again, later.
            let _ = file.set_modified(SystemTime::now());
        }
        Some(kept)
    }

    /// Keeps what was made of a file. What cannot be kept is made again.
    pub(super) fn keep(&self, key: &ExtractedKey, made: &Result<Extracted, ExtractFailure>) {
        if matches!(made, Err(ExtractFailure::NotNow(_))) {
            return;
        }
        let Ok(bytes) = serde_json::to_vec(made) else { return };
        if let Err(error) = disk::write_whole(&self.0.join(&key.0), &bytes) {
            tracing::warn!(%error, "the text of a document is not kept");
        }
    }

    /// Removes what was not used for long, and what is too much.
    pub(super) fn prune(&self) {
        let now = SystemTime::now();
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut kept: Vec<(Duration, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let about = entry.metadata().ok()?;
                let age = now.duration_since(about.modified().ok()?).unwrap_or_default();
                Some((age, about.len(), entry.path()))
            })
            .collect();
        kept.sort();
        let mut bytes = 0u64;
        for (age, length, path) in kept {
            bytes = bytes.saturating_add(length);
            if age > KEPT_FOR || bytes > MOST_KEPT {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Whether a path within a file can be cited and leads nowhere else.
pub(super) fn can_be_cited(within: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    within.is_empty() || within.split('/').all(is_part) && !within.contains(char::is_control)
}
