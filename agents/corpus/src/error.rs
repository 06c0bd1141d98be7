//! What can go wrong with documents.

use std::{io, path::PathBuf};

use super::{blob::BlobError, scan::Skipped, unit::Unit};

/// Why documents cannot be used, or a question about them not be answered.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// No folder was given.
    #[error("no folder of documents was given")]
    NoFolder,
    /// The folder is not there.
    #[error("the folder of documents `{}` does not exist; check the path", .0.display())]
    FolderMissing(PathBuf),
    /// The folder may not or cannot be read.
    #[error("the folder of documents `{}` cannot be read ({reason}); check its permissions", .path.display())]
    FolderUnreadable {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// There is nothing to search in the folders.
    #[error(
        "no usable document in {folders}: {skipped}; give a folder with text, Markdown, HTML, source files, PDF or office documents"
    )]
    NothingUsable {
        /// The folders given.
        folders: String,
        /// What was found and left out, by reason.
        skipped: Skipped,
    },
    /// There is no document of that path.
    #[error("there is no document `{path}`{}", nearest_hint(.nearest.as_deref()))]
    UnknownPath {
        /// The path asked for.
        path: String,
        /// The path that was probably meant.
        nearest: Option<String>,
    },
    /// The lines asked for are not in the document.
    #[error("`{path}` has {lines} {}; ask for {} from 1 to {lines}", .unit.many(), .unit.many())]
    BadRange {
        /// The document.
        path: String,
        /// How many lines, or pages and the like, it has.
        lines: u64,
        /// What is counted.
        unit: Unit,
    },
    /// The document is no picture.
    #[error("`{0}` is no picture; read it as text")]
    NoPicture(String),
    /// What was to be a regular expression is none.
    #[error("this is no regular expression: {0}")]
    BadPattern(String),
    /// A part of the corpus is neither here nor in the store.
    #[error("{0} of the documents is not in the store; ask the question again where the documents are")]
    Missing(String),
    /// What came from the store or the disk is not what it should be.
    #[error("{0} of the documents is damaged")]
    Damaged(String),
    /// The store of documents failed or did not answer.
    #[error("the store of documents failed: {0}")]
    Store(#[from] BlobError),
    /// The disk failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The index failed.
    #[error("the index of documents failed: {0}")]
    Index(#[from] rusqlite::Error),
    /// It took too long.
    #[error("{0} took too long")]
    Timeout(&'static str),
}

impl CorpusError {
    /// An input or output error with what was being done.
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Whether the index file itself is broken, so that building it again helps.
    pub(super) fn is_broken_index(&self) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, DatabaseCorrupt, NotADatabase};
        matches!(self, Self::Index(error)
            if matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase | CannotOpen)))
    }
}

fn nearest_hint(nearest: Option<&str>) -> String {
    nearest
        .map(|path| format!("; did you mean `{path}`?"))
        .unwrap_or_else(|| "; search to find paths".to_owned())
}
