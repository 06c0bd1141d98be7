//! Text of documents that are no text: what reads them is elsewhere.

use async_trait::async_trait;
use bytes::Bytes;

/// A document as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentText {
    /// What kind it is: `pdf`, `docx`, `xlsx`, …
    pub kind: String,
    /// Its title, where it has one.
    pub title: Option<String>,
    /// Its parts in order: pages, sheets, slides, chapters, files of an archive.
    pub parts: Vec<DocumentPart>,
    /// What was left out, and why; in words for people.
    pub left_out: Vec<String>,
}

/// A part of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentPart {
    /// How it is cited, after the document's path and a colon: `3` (page), `Budget` (sheet), `chapter 2`.
    pub place: String,
    /// Its text; a table has a line for each row, with tabs between cells.
    pub text: String,
}

/// Why a document cannot be read; in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableDocument {
    /// Nothing here reads that kind.
    #[error("no reader for {0}")]
    UnknownKind(String),
    /// It needs a password.
    #[error("it is encrypted")]
    Encrypted,
    /// A limit would be passed: size, pages, time, memory, or what it unpacks to.
    #[error("it passes the limit of {0}")]
    TooLarge(String),
    /// It is broken.
    #[error("it is broken: {0}")]
    Broken(String),
}

/// Reads documents.
#[async_trait]
pub trait DocumentReader: Send + Sync + 'static {
    /// The text of a document. Its kind is told by what stands in it, else by its name or its media type.
    ///
    /// # Errors
    /// When it cannot be read.
    async fn read(
        &self,
        bytes: Bytes,
        name: &str,
        media_type: Option<&str>,
    ) -> Result<DocumentText, UnreadableDocument>;
}
