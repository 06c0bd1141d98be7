//! What documents give: passages, lines, headings, how often terms occur.

use serde::{Deserialize, Serialize};

use super::MAX_LINES;

/// Most bytes that one read gives.
const MAX_READ_BYTES: usize = 24 * 1024;

/// Longest line that a read shows in full, in bytes.
const MAX_LINE_BYTES: usize = 2_000;

/// A passage that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The document, as cited.
    pub path: String,
    /// First line of the passage, from 1.
    pub start_line: u64,
    /// Last line of the passage.
    pub end_line: u64,
    /// The headings above the passage, outermost first, as `A > B`; may be empty.
    pub heading: String,
    /// The passage; line n of it is line `start_line + n` of the document, tags of HTML removed.
    pub text: String,
    /// How well it fits; higher is better, comparable within one search only.
    pub score: f64,
}

impl Hit {
    /// The citation of the passage's first line.
    #[must_use]
    pub fn citation(&self) -> String {
        format!("{}:{}", self.path, self.start_line)
    }
}

/// Lines of a document as they are in the original file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The document.
    pub path: String,
    /// Number of the first line given, from 1.
    pub from: u64,
    /// How many lines the document has.
    pub total: u64,
    /// The lines; very long ones are cut and end in `…`.
    pub lines: Vec<String>,
    /// Whether fewer lines are given than were asked for, because of a limit.
    pub cut: bool,
}

impl Lines {
    /// Number of the last line given.
    #[must_use]
    pub fn to(&self) -> u64 {
        (self.from + self.lines.len() as u64).saturating_sub(1)
    }
}

/// A document with its length and its headings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    /// The document.
    pub path: String,
    /// How many lines it has.
    pub lines: u64,
    /// Its headings with those above them, as `A > B`, in order.
    pub headings: Vec<String>,
}

/// How words are looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// By its words, the best passages first.
    #[default]
    Words,
    /// By the very text, whatever its case, in the order of the documents.
    Exact,
    /// By a regular expression, in the order of the documents.
    Regex,
}

/// In how many passages terms occur.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermStatistics {
    /// How many passages the corpus has.
    pub passages: u64,
    /// How many documents the corpus has.
    pub documents: u64,
    /// Per term asked for, in the same order, how many passages have it in text or heading.
    pub frequencies: Vec<u64>,
}

impl TermStatistics {
    /// Inverse document frequency of the term at `index`, as BM25 uses it but never below zero.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn idf(&self, index: usize) -> f64 {
        let with = self.frequencies.get(index).copied().unwrap_or(0) as f64;
        (1.0 + (self.passages as f64 - with + 0.5).max(0.0) / (with + 0.5)).ln()
    }
}

/// A line as a read shows it: a very long one is cut, around these words if they stand in it.
fn shown(line: &str, find: Option<&str>) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    let at = find.map(str::trim).filter(|words| !words.is_empty()).and_then(|words| line.find(words));
    let start = line.floor_char_boundary(at.unwrap_or(0).saturating_sub(MAX_LINE_BYTES / 4));
    let end = line.floor_char_boundary((start + MAX_LINE_BYTES).min(line.len()));
    let before = if start > 0 { "…" } else { "" };
    let after = if end < line.len() { "…" } else { "" };
    format!("{before}{}{after}", &line[start..end])
}

pub(super) fn lines(text: &str, path: String, from: u64, to: u64, total: u64, find: Option<&str>) -> Lines {
    let wanted = to - from + 1;
    let mut room = MAX_READ_BYTES;
    let mut taken = Vec::new();
    for line in text
        .lines()
        .skip(usize::try_from(from - 1).unwrap_or(usize::MAX))
        .take(wanted.min(MAX_LINES) as usize)
    {
        let shown = shown(line, find);
        if shown.len() > room && !taken.is_empty() {
            break;
        }
        room = room.saturating_sub(shown.len() + 1);
        taken.push(shown);
    }
    Lines { path, from, total, cut: (taken.len() as u64) < wanted, lines: taken }
}
