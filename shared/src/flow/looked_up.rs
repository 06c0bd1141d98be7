//! What was found when places that a result cites were looked up in the documents (W8). It stands in the record, so that
//! decisions go by the record and never by the documents.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::counted;

/// Most places of one result that are looked up.
pub const MOST_PLACES: usize = 1_000;

/// One place that a result cites, and what was found there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LookedUp {
    /// The document, as it was cited.
    pub path: String,
    /// The line, as it was cited; 0 for what is no line.
    pub line: u32,
    /// By what a place is told from others on the same line: a digest of the words that are said to stand there.
    pub words: u32,
    /// What was found.
    pub found: PlaceFound,
}

/// What was found at a place that is cited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlaceFound {
    /// The words stand there, or near: then what is to be corrected is named.
    Stands(Standing),
    /// They stand in another document.
    Elsewhere {
        /// Which.
        path: String,
        /// On which line.
        line: u32,
    },
    /// There is no such document.
    NoFile {
        /// The one that may be meant; empty when none is near.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        nearest: String,
    },
    /// The document has no such line.
    NoLine {
        /// How many it has.
        lines: u32,
    },
    /// Something else stands there.
    Otherwise {
        /// What, in short.
        there: String,
        /// What is said and does not stand there, where the words that are quoted do: numbers, a name, a denial.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lacks: Vec<String>,
    },
}

/// Where the words stand, as far as that is not as it was cited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Standing {
    /// The document's path in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The words as they stand there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// The lines there, where somebody is to be shown them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl Standing {
    /// Whether it stands as it was cited.
    #[must_use]
    pub const fn is_as_cited(&self) -> bool {
        self.path.is_none() && self.line.is_none() && self.quote.is_none()
    }
}

impl PlaceFound {
    /// Where it stands, if it does.
    #[must_use]
    pub const fn standing(&self) -> Option<&Standing> {
        if let Self::Stands(standing) = self { Some(standing) } else { None }
    }
}

impl LookedUp {
    /// What is wrong with the place, in a sentence; nothing when it stands.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let Self { path, line, .. } = self;
        match &self.found {
            PlaceFound::Stands(_) => None,
            PlaceFound::Elsewhere { path: other, line: there } => {
                Some(format!("what is said does not stand at {path}:{line}; it stands at {other}:{there}"))
            }
            PlaceFound::NoFile { nearest } if nearest.is_empty() => {
                Some(format!("{path}:{line} is cited, and there is no document {path}"))
            }
            PlaceFound::NoFile { nearest } => Some(format!(
                "{path}:{line} is cited, and there is no document {path}; the nearest name is {nearest}"
            )),
            PlaceFound::NoLine { lines } => {
                Some(format!("{path}:{line} is cited, and {path} has {lines} lines"))
            }
            PlaceFound::Otherwise { there, lacks } if !lacks.is_empty() => Some(format!(
                "{} is said, and not by {path}:{line} or its section; there stands: {there}",
                lacks.iter().map(|said| format!("{said:?}")).collect::<Vec<_>>().join(", ")
            )),
            PlaceFound::Otherwise { there, .. } if there.is_empty() => {
                Some(format!("what is said does not stand at {path}:{line}, where nothing stands"))
            }
            PlaceFound::Otherwise { there, .. } => {
                Some(format!("what is said does not stand at {path}:{line}; there stands: {there}"))
            }
        }
    }

    /// What was corrected, in a few words; nothing when nothing was.
    #[must_use]
    pub fn correction(&self) -> Option<String> {
        let standing = self.found.standing().filter(|standing| !standing.is_as_cited())?;
        let path = standing.path.as_deref().unwrap_or(&self.path);
        let line = standing.line.unwrap_or(self.line);
        let same = path == self.path && line == self.line;
        let Self { path: cited, line: at, .. } = self;
        Some(if same {
            format!("{cited}:{at} (its words)")
        } else {
            format!("{cited}:{at} to {path}:{line}")
        })
    }
}

/// `4 cited places looked up: 2 stand, corrected a.md:3 to a.md:12; …`: what was found, in a line.
pub(super) fn counted_up(places: &[LookedUp]) -> String {
    /// Most places that are named.
    const NAMED: usize = 5;
    let corrected: Vec<String> = places.iter().filter_map(LookedUp::correction).collect();
    let faults: Vec<String> = places.iter().filter_map(LookedUp::fault).collect();
    let stand = places.len() - corrected.len() - faults.len();
    let mut said =
        format!("{} looked up: {stand} stand", counted(places.len(), "cited place", "cited places"));
    let named = |what: &[String]| what.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    if !corrected.is_empty() {
        said.push_str(&format!(", {} corrected ({})", corrected.len(), named(&corrected)));
    }
    if !faults.is_empty() {
        said.push_str(&format!(", {} not borne out ({})", faults.len(), named(&faults)));
    }
    said
}

/// FNV-1a in 32 bits, of what is said to stand at a place. It stands in records, so that it never changes.
#[must_use]
pub fn digest(words: &[&str]) -> u32 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0xff]));
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_said_in_a_line() {
        let place = |line, found| LookedUp { path: "a.md".into(), line, words: 0, found };
        let moved = Standing { line: Some(12), ..Standing::default() };
        let places = [
            place(1, PlaceFound::Stands(Standing::default())),
            place(3, PlaceFound::Stands(moved)),
            place(99, PlaceFound::NoLine { lines: 9 }),
        ];
        assert_eq!(
            counted_up(&places),
            "3 cited places looked up: 1 stand, 1 corrected (a.md:3 to a.md:12), 1 not borne out (a.md:99 is cited, and \
             a.md has 9 lines)"
        );
        assert_eq!(digest(&["ab", "c"]), 2_216_952_449, "records hold it");
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
    }
}
