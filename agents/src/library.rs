//! The blueprints that can be called by name: files `NAME.toml` in the folders of the settings, then those that come
//! with Muster. A file takes the place of one that comes with Muster.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use muster_shared::blueprint::{Blueprint, Located, MAX_FILE_BYTES, parse, shipped, shipped_names};

/// Most files of a folder that are looked at.
const MAX_FILES: usize = 500;

/// Where blueprints are looked for.
#[derive(Debug, Clone, Default)]
pub struct Library {
    folders: Vec<PathBuf>,
}

/// Why there is no such blueprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// Nothing is called so.
    #[error("there is no blueprint {name:?}: there are {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The file cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// Something is wrong with it.
    #[error("{path} is no blueprint:\n{}", lines(problems))]
    Wrong {
        /// The file, or the name of one that comes with Muster.
        path: String,
        /// What, and where.
        problems: Vec<Located>,
    },
}

fn lines(problems: &[Located]) -> String {
    problems.iter().map(|problem| format!("  {problem}")).collect::<Vec<_>>().join("\n")
}

/// A blueprint that can be called by name.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// The file; nothing for one that comes with Muster.
    pub file: Option<PathBuf>,
    /// The blueprint, or why it cannot be used.
    pub blueprint: Result<Blueprint, LibraryError>,
}

impl Library {
    /// Looks in these folders, in order. One that is not there holds nothing.
    #[must_use]
    pub const fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders }
    }

    /// The blueprint of that name.
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub fn find(&self, name: &str) -> Result<Blueprint, LibraryError> {
        match self.files().remove(name) {
            Some(path) => read(&path),
            None => from_muster(name).unwrap_or_else(|| {
                Err(LibraryError::Unknown { name: name.chars().take(80).collect(), known: self.names() })
            }),
        }
    }

    /// The names of all, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.files().into_keys().collect();
        names.extend(shipped_names().map(str::to_owned));
        names.sort();
        names.dedup();
        names
    }

    /// All that there are, by name.
    #[must_use]
    pub fn list(&self) -> Vec<Listed> {
        let files = self.files();
        let listed = self.names().into_iter().map(|name| Listed {
            file: files.get(&name).cloned(),
            blueprint: self.find(&name),
            name,
        });
        listed.collect()
    }

    fn files(&self) -> BTreeMap<String, PathBuf> {
        let mut found = BTreeMap::new();
        for folder in &self.folders {
            let Ok(entries) = fs::read_dir(folder) else { continue };
            let paths = entries.flatten().take(MAX_FILES).map(|entry| entry.path());
            for path in
                paths.filter(|path| path.extension().is_some_and(|end| end == "toml") && path.is_file())
            {
                if let Some(name) = path.file_stem().and_then(|name| name.to_str()) {
                    found.entry(name.to_owned()).or_insert(path);
                }
            }
        }
        found
    }
}

fn from_muster(name: &str) -> Option<Result<Blueprint, LibraryError>> {
    let text = shipped(name)?;
    Some(parse(text).map_err(|problems| LibraryError::Wrong { path: name.to_owned(), problems }))
}

/// Reads a blueprint from a file.
///
/// # Errors
/// When it cannot be read, or something is wrong with it.
pub fn read(path: &Path) -> Result<Blueprint, LibraryError> {
    let shown = path.display().to_string();
    let cannot =
        |error: std::io::Error| LibraryError::Unreadable { path: shown.clone(), reason: error.to_string() };
    let mut text = String::new();
    // One byte more than may be, so that too much is noticed and never gathered.
    let most = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    crate::input::open(path).map_err(cannot)?.take(most).read_to_string(&mut text).map_err(cannot)?;
    parse(&text).map_err(|problems| LibraryError::Wrong { path: shown, problems })
}
