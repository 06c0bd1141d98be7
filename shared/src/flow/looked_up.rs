//! Results of the look-up of cited places, before a result is accepted. They are in the event log, so that decisions are
//! repeated without the documents.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::counted;

/// Most places of one result that are looked up.
pub const MOST_PLACES: usize = 1_000;

/// One cited place, and the result of its look-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LookedUp {
    /// The document, as it was cited.
    pub path: String,
    /// The first line, as it was cited; 0 if it is not a line.
    pub line: u32,
    /// Digest of quote, statement and last line: it distinguishes places with the same first line.
    pub words: u32,
    /// Result of the look-up.
    pub found: PlaceFound,
}

/// Result of the look-up of one place. All but `stands` are proven faults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlaceFound {
    /// The lines exist, and no rule objects.
    Stands(Standing),
    /// The document does not exist.
    NoFile {
        /// The nearest name; empty when none is near.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        nearest: String,
    },
    /// The document does not have the line.
    NoLine {
        /// Number of lines of the document.
        lines: u32,
    },
    /// The document does not contain the quote.
    NoQuote {
        /// The cited lines, in short.
        there: String,
    },
    /// The lines that the statement cites contain other values of the same kind.
    Contradicted {
        /// The values.
        values: Vec<ContradictedValue>,
        /// The cited lines, in short.
        there: String,
    },
}

/// A number, date or unit of a statement that its cited lines contradict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ContradictedValue {
    /// The value as written in the statement.
    pub stated: String,
    /// The value of the same kind in the lines.
    pub there: String,
}

/// Corrections of a place, and its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Standing {
    /// The whole path of the document, if another one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line that contains the quote, if another one was cited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The lines with their neighbors, if a model compares them with the statement.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl PlaceFound {
    /// Corrections of the place; `None` for a fault.
    #[must_use]
    pub const fn standing(&self) -> Option<&Standing> {
        if let Self::Stands(standing) = self { Some(standing) } else { None }
    }
}

impl LookedUp {
    /// The fault of the place, in a sentence; `None` without a fault.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let Self { path, line, .. } = self;
        match &self.found {
            PlaceFound::Stands(_) => None,
            PlaceFound::NoFile { nearest } if nearest.is_empty() => {
                Some(format!("{path}:{line} is cited; the document {path} does not exist"))
            }
            PlaceFound::NoFile { nearest } => Some(format!(
                "{path}:{line} is cited; the document {path} does not exist; the nearest name is {nearest}"
            )),
            PlaceFound::NoLine { lines } => Some(format!("{path}:{line} is cited; {path} has {lines} lines")),
            PlaceFound::NoQuote { there } => {
                Some(format!("{path} does not contain the quote; {path}:{line} is: {there}"))
            }
            PlaceFound::Contradicted { values, there } => {
                let value =
                    |value: &ContradictedValue| format!("{:?} instead of {:?}", value.stated, value.there);
                let values: Vec<String> = values.iter().map(value).collect();
                Some(format!("{}; {path}:{line} is: {there}", values.join(", ")))
            }
        }
    }

    /// `a.md:3 to a.md:12`: the correction of the place, if there is one.
    #[must_use]
    pub fn correction(&self) -> Option<String> {
        let Standing { path, line, .. } = self.found.standing()?;
        if path.is_none() && line.is_none() {
            return None;
        }
        let (path, line) = (path.as_deref().unwrap_or(&self.path), line.unwrap_or(self.line));
        Some(format!("{}:{} to {path}:{line}", self.path, self.line))
    }
}

/// `4 cited places looked up: 2 stand, 1 moved (a.md:3 to a.md:12), …`: the result in a line.
pub(super) fn counted_up(places: &[LookedUp]) -> String {
    /// Most places that are named.
    const NAMED: usize = 5;
    let moved: Vec<String> = places.iter().filter_map(LookedUp::correction).collect();
    let faults: Vec<String> = places.iter().filter_map(LookedUp::fault).collect();
    let stand = places.len() - moved.len() - faults.len();
    let mut text =
        format!("{} looked up: {stand} stand", counted(places.len(), "cited place", "cited places"));
    let named = |all: &[String]| all.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    if !moved.is_empty() {
        text.push_str(&format!(", {} moved ({})", moved.len(), named(&moved)));
    }
    if !faults.is_empty() {
        text.push_str(&format!(", {} wrong ({})", faults.len(), named(&faults)));
    }
    text
}

/// FNV-1a in 32 bits. Event logs contain it: it never changes.
#[must_use]
pub fn digest(words: &[&str]) -> u32 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0xff]));
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_up_is_summarized_in_a_line() {
        let place = |line, found| LookedUp { path: "a.md".into(), line, words: 0, found };
        let moved = Standing { line: Some(12), ..Standing::default() };
        let value = ContradictedValue { stated: "21 s".into(), there: "20 s".into() };
        let contradicted = PlaceFound::Contradicted { values: vec![value], there: "It takes 20 s.".into() };
        let places = [
            place(1, PlaceFound::Stands(Standing::default())),
            place(3, PlaceFound::Stands(moved)),
            place(7, contradicted),
        ];
        assert_eq!(
            counted_up(&places),
            "3 cited places looked up: 1 stand, 1 moved (a.md:3 to a.md:12), 1 wrong (\"21 s\" instead of \"20 s\"; a.md:7 \
             is: It takes 20 s.)"
        );
        assert_eq!(digest(&["ab", "c"]), 2_216_952_449, "event logs contain it");
    }
}
