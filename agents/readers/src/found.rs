//! What the reading of a document gives.

use muster_corpus::{ExtractFailure, Extracted, ExtractedDocument, Unit, cut_into};
use muster_tools::{DocumentPart, DocumentText, UnreadableDocument};
use serde::{Deserialize, Serialize};

/// Most sentences about what was left out.
const MOST_LEFT_OUT: usize = 20;

/// What was found in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Its kind: `pdf`, `docx`, …
    pub(crate) kind: String,
    pub(crate) title: Option<String>,
    pub(crate) parts: Vec<Part>,
    pub(crate) left_out: Vec<String>,
}

/// A document within it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Where it lies within the file; empty for the file itself.
    pub(crate) within: String,
    pub(crate) unit: Unit,
    /// Its text: a piece for each page and the like, or one.
    pub(crate) pieces: Vec<String>,
}

/// Why there is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Failure {
    Encrypted,
    TooLarge(String),
    Broken(String),
    Unknown(String),
    /// It says nothing of the document.
    NotNow(String),
}

impl Failure {
    pub(crate) fn broken(why: impl std::fmt::Display) -> Self {
        let said = why.to_string();
        Self::Broken(said.chars().filter(|c| !c.is_control()).take(200).collect())
    }

    /// In a few words, of a file within another.
    pub(crate) fn in_a_file(&self) -> String {
        match self {
            Self::Unknown(kind) => format!("nothing reads {kind}"),
            _ => format!("it {}", self.in_short()),
        }
    }

    /// What there is about it, after "it".
    pub(crate) fn in_short(&self) -> String {
        match self {
            Self::Encrypted => "is encrypted".to_owned(),
            Self::TooLarge(what) => format!("passes the limit of {what}"),
            Self::Broken(why) => format!("is broken: {why}"),
            Self::Unknown(kind) => format!("is of those that nothing reads: {kind}"),
            Self::NotNow(why) => format!("could not be read: {why}"),
        }
    }
}

impl From<Failure> for UnreadableDocument {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Encrypted => Self::Encrypted,
            Failure::TooLarge(what) => Self::TooLarge(what),
            Failure::Broken(why) | Failure::NotNow(why) => Self::Broken(why),
            Failure::Unknown(kind) => Self::UnknownKind(kind),
        }
    }
}

impl From<Failure> for ExtractFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Encrypted => Self::Encrypted,
            Failure::TooLarge(what) => Self::TooLarge(what),
            Failure::Broken(why) => Self::Broken(why),
            Failure::Unknown(_) => Self::Unknown,
            Failure::NotNow(why) => Self::NotNow(why),
        }
    }
}

impl Found {
    /// One text.
    pub(crate) fn text(kind: &str, text: String) -> Self {
        Self::of(kind, vec![Part::text(text)])
    }

    /// These documents.
    pub(crate) fn of(kind: &str, parts: Vec<Part>) -> Self {
        Self { kind: kind.to_owned(), parts, ..Self::default() }
    }

    /// A text in pieces that are cited by their numbers.
    pub(crate) fn cut(kind: &str, unit: Unit, pieces: Vec<String>) -> Self {
        Self::of(kind, vec![Part { within: String::new(), unit, pieces }])
    }

    /// Says of something that it was left out.
    pub(crate) fn leave_out(&mut self, why: impl Into<String>) {
        if self.left_out.len() < MOST_LEFT_OUT {
            self.left_out.push(why.into());
        } else if self.left_out.len() == MOST_LEFT_OUT {
            self.left_out.push("and more".to_owned());
        }
    }
}

impl Part {
    pub(crate) fn text(text: String) -> Self {
        Self { within: String::new(), unit: Unit::Line, pieces: vec![text] }
    }

    fn joined(self) -> String {
        if self.unit.is_cut() { cut_into(&self.pieces) } else { self.pieces.concat() }
    }
}

impl From<Found> for Extracted {
    fn from(found: Found) -> Self {
        let document = |part: Part| ExtractedDocument {
            within: part.within.clone(),
            unit: part.unit,
            text: part.joined(),
        };
        Self { documents: found.parts.into_iter().map(document).collect(), left_out: found.left_out }
    }
}

impl From<Found> for DocumentText {
    fn from(found: Found) -> Self {
        let mut parts = Vec::new();
        for part in found.parts {
            if !part.unit.is_cut() {
                parts.push(DocumentPart { place: part.within.clone(), text: part.joined() });
                continue;
            }
            for (number, text) in (1u64..).zip(part.pieces) {
                let place = match part.within.as_str() {
                    "" => number.to_string(),
                    within => format!("{within}:{number}"),
                };
                parts.push(DocumentPart { place, text });
            }
        }
        Self { kind: found.kind, title: found.title, parts, left_out: found.left_out }
    }
}
