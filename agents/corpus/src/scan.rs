//! Walking folders: which files are documents, and what is left out and why.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use ignore::WalkBuilder;
use serde::{Deserialize, Serialize};

use super::error::CorpusError;

/// Removes secrets from a text before it is stored, indexed or sent. Must keep the number of lines.
pub type Redact = Arc<dyn for<'a> Fn(&'a str) -> Cow<'a, str> + Send + Sync>;

/// What is read at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanLimits {
    /// Most documents.
    pub max_files: usize,
    /// Largest text, in bytes.
    pub max_file: u64,
    /// Largest file that is no text and has one (PDF, office documents, archives), in bytes.
    pub max_extracted: u64,
    /// How many of these are read at the same time; 0 for as many as there are processors.
    pub extracted_at_once: usize,
    /// Largest picture, in bytes.
    pub max_picture: u64,
    /// Most pictures.
    pub max_pictures: usize,
    /// Largest sum of all files, in bytes.
    pub max_total: u64,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self {
            max_files: 50_000,
            max_file: 32 * 1024 * 1024,
            max_extracted: 128 * 1024 * 1024,
            extracted_at_once: 0,
            max_picture: 4 * 1024 * 1024,
            max_pictures: 200,
            max_total: 2 * 1024 * 1024 * 1024,
        }
    }
}

/// Why a file is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// It is not text.
    Binary,
    /// There is nothing in it.
    Empty,
    /// It is larger than a document may be.
    TooLarge,
    /// The system does not let it be read.
    Unreadable,
    /// It is a symbolic link, or no ordinary file.
    Special,
    /// Its name cannot be cited: not UTF-8, or with control characters.
    BadName,
    /// There are more files, or more bytes, than a corpus may have.
    OverLimit,
    /// Taking secrets out of it changed its lines.
    NotRedactable,
    /// It needs a password.
    Encrypted,
    /// It is broken.
    Broken,
    /// It is a picture of a kind that no model is shown.
    Picture,
    /// Its kind is read, and there is no text in it.
    NoText,
    /// Only a part of it was read.
    Partly,
}

impl SkipReason {
    const fn words(self) -> &'static str {
        match self {
            Self::Binary => "not text",
            Self::Empty => "empty",
            Self::TooLarge => "too large",
            Self::Unreadable => "unreadable",
            Self::Special => "links or special files",
            Self::BadName => "names that cannot be cited",
            Self::OverLimit => "over the limit of a corpus",
            Self::NotRedactable => "secrets that could not be taken out",
            Self::Encrypted => "encrypted",
            Self::Broken => "broken",
            Self::Picture => "pictures of kinds that no model is shown",
            Self::NoText => "without text, such as scans",
            Self::Partly => "read in part",
        }
    }
}

/// How many files are left out, by reason, with an example of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped(pub BTreeMap<SkipReason, SkippedFiles>);

/// Files left out for one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedFiles {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub example: String,
}

impl Skipped {
    /// How many files are left out.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().map(|files| files.count).sum()
    }

    pub(super) fn add(&mut self, reason: SkipReason, path: &str) {
        let files = self.0.entry(reason).or_default();
        files.count += 1;
        if files.example.is_empty() {
            path.clone_into(&mut files.example);
        }
    }
}

impl Skipped {
    /// Those that somebody who gave a folder takes for read: what is not text, a picture, empty or a link is not among them.
    #[must_use]
    pub fn missed(&self) -> Self {
        let is_expected = |reason: &SkipReason| {
            matches!(
                reason,
                SkipReason::Binary | SkipReason::Empty | SkipReason::Special | SkipReason::Picture
            )
        };
        let missed = self.0.iter().filter(|(reason, _)| !is_expected(reason));
        Self(missed.map(|(reason, files)| (*reason, files.clone())).collect())
    }
}

impl std::fmt::Display for Skipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no file left out");
        }
        let parts: Vec<String> = self
            .0
            .iter()
            .map(|(reason, files)| format!("{} {} (such as {})", files.count, reason.words(), files.example))
            .collect();
        f.write_str(&parts.join(", "))
    }
}

/// A file that may be a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// Path as cited.
    pub(super) path: String,
    /// Where it lies.
    pub(super) file: PathBuf,
}

/// The folders, made absolute, each once. A single file may stand for a folder of one.
pub(super) fn resolve(folders: &[PathBuf]) -> Result<Vec<PathBuf>, CorpusError> {
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let absolute = folder.canonicalize().map_err(|error| unusable(folder, &error))?;
        if absolute.is_dir() {
            std::fs::read_dir(&absolute).map_err(|error| unusable(folder, &error))?;
        }
        if !found.contains(&absolute) {
            found.push(absolute);
        }
    }
    if found.is_empty() { Err(CorpusError::NoFolder) } else { Ok(found) }
}

fn unusable(folder: &Path, error: &std::io::Error) -> CorpusError {
    if error.kind() == std::io::ErrorKind::NotFound {
        CorpusError::FolderMissing(folder.to_owned())
    } else {
        CorpusError::FolderUnreadable { path: folder.to_owned(), reason: error.to_string() }
    }
}

/// All files of the folders in the order of their paths, as far as names and limits allow.
/// With several folders each path begins with the name of its folder.
pub(super) fn walk(folders: &[PathBuf], limits: &ScanLimits, skipped: &mut Skipped) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (folder, prefix) in folders.iter().zip(prefixes(folders)) {
        walk_one(folder, &prefix, limits, &mut candidates, skipped);
    }
    candidates.sort();
    candidates
}

fn walk_one(
    folder: &Path,
    prefix: &str,
    limits: &ScanLimits,
    into: &mut Vec<Candidate>,
    skipped: &mut Skipped,
) {
    // What stands above the given folder has no say: who names an ignored folder wants it read.
    let walker = WalkBuilder::new(folder)
        .parents(false)
        .require_git(false)
        .git_global(false)
        .git_exclude(false)
        .follow_links(false)
        .sort_by_file_path(Path::cmp)
        .build();
    for entry in walker {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                skipped.add(SkipReason::Unreadable, &error.to_string());
                continue;
            }
        };
        let Some(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            continue;
        }
        let below = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        let below = if below.as_os_str().is_empty() { Path::new(entry.file_name()) } else { below };
        let Some(path) = cited(prefix, below) else {
            skipped.add(SkipReason::BadName, &below.to_string_lossy().replace(char::is_control, "?"));
            continue;
        };
        if !kind.is_file() {
            skipped.add(SkipReason::Special, &path);
        } else if into.len() >= limits.max_files {
            skipped.add(SkipReason::OverLimit, &path);
        } else {
            into.push(Candidate { path, file: entry.into_path() });
        }
    }
}

fn cited(prefix: &str, below: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
    let path = format!("{prefix}{}", parts?.join("/"));
    (!path.contains(char::is_control)).then_some(path)
}

/// What paths below each folder begin with: nothing for a single folder, else its name, with a number
/// when two have the same.
fn prefixes(folders: &[PathBuf]) -> Vec<String> {
    if folders.len() == 1 {
        return vec![String::new()];
    }
    let mut taken = BTreeSet::new();
    folders
        .iter()
        .map(|folder| {
            if folder.is_file() {
                return String::new();
            }
            let name =
                folder.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy().into_owned());
            let mut unique = name.clone();
            let mut number = 2;
            while !taken.insert(unique.clone()) {
                unique = format!("{name}-{number}");
                number += 1;
            }
            format!("{unique}/")
        })
        .collect()
}

/// How many lines a text has; a line break at the end opens no further line.
pub(super) fn lines_of(text: &str) -> u64 {
    let breaks = text.bytes().filter(|byte| *byte == b'\n').count() as u64;
    breaks + u64::from(!text.is_empty() && !text.ends_with('\n'))
}
