//! What documents give: passages, lines, headings, how often terms occur.

use serde::{Deserialize, Serialize};

use super::{
    MAX_LINES,
    unit::{Cuts, Unit, without_breaks},
};

/// Most bytes that one read gives.
const MAX_READ_BYTES: usize = 24 * 1024;

/// Longest line that a read shows in full, in bytes.
const MAX_LINE_BYTES: usize = 2_000;

/// A passage that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The document, as cited.
    pub path: String,
    /// First line of the passage, from 1; of what is cited by pages and the like, the first of these.
    pub start_line: u64,
    /// Last line of the passage, or page and the like.
    pub end_line: u64,
    /// What is cited: lines, pages, …
    #[serde(default, skip_serializing_if = "Unit::is_line")]
    pub unit: Unit,
    /// The page and the like of each line of the text; empty where lines are cited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<u64>,
    /// The headings above the passage, outermost first, as `A > B`; may be empty.
    pub heading: String,
    /// The passage, tags of HTML removed. [`Hit::numbered`] says where each of its lines stands.
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

    /// The lines of the passage, each with the number by which it is cited.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &str)> {
        numbered(self.start_line, &self.numbers, self.text.lines())
    }
}

/// Lines with their numbers: those given, or one after the other from the first.
fn numbered<'a>(
    first: u64,
    numbers: &'a [u64],
    lines: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = (u64, &'a str)> {
    lines.enumerate().map(move |(at, line)| (numbers.get(at).copied().unwrap_or(first + at as u64), line))
}

/// Lines of a document as they are in the original file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The document.
    pub path: String,
    /// Number of the first line given, from 1; of what is cited by pages and the like, of the first of these.
    pub from: u64,
    /// How many lines, or pages and the like, the document has.
    pub total: u64,
    /// What is cited: lines, pages, …
    #[serde(default, skip_serializing_if = "Unit::is_line")]
    pub unit: Unit,
    /// The page and the like of each line; empty where lines are cited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<u64>,
    /// The lines; very long ones are cut and end in `…`.
    pub lines: Vec<String>,
    /// Whether fewer lines are given than were asked for, because of a limit.
    pub cut: bool,
}

impl Lines {
    /// Number of the last line given, or of the last page and the like.
    #[must_use]
    pub fn to(&self) -> u64 {
        match self.numbers.last() {
            Some(last) => *last,
            None => (self.from + self.lines.len() as u64).saturating_sub(1),
        }
    }

    /// The lines given, each with the number by which it is cited.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &str)> {
        numbered(self.from, &self.numbers, self.lines.iter().map(String::as_str))
    }
}

/// A document with its length and its headings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    /// The document.
    pub path: String,
    /// How many lines it has, or pages and the like.
    pub lines: u64,
    /// What is counted.
    #[serde(default, skip_serializing_if = "Unit::is_line")]
    pub unit: Unit,
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

/// What is to be read of a document.
pub(super) struct Asked<'a> {
    pub(super) path: String,
    /// The first line, or page and the like, from 1.
    pub(super) from: u64,
    /// The last one, which there is.
    pub(super) to: u64,
    /// How many there are.
    pub(super) total: u64,
    pub(super) unit: Unit,
    /// Words around which very long lines and pages are shown.
    pub(super) find: Option<&'a str>,
}

/// The lines asked for, as far as limits let them pass.
pub(super) fn lines(text: &str, asked: Asked<'_>) -> Lines {
    if asked.unit.is_cut() {
        return pages(text, asked);
    }
    let Asked { path, from, to, total, unit, find } = asked;
    let wanted = to - from + 1;
    let skipped = usize::try_from(from - 1).unwrap_or(usize::MAX);
    let most = wanted.min(MAX_LINES) as usize;
    let taken = within_room(text.lines().skip(skipped).take(most), find);
    Lines { path, from, total, unit, numbers: Vec::new(), cut: (taken.len() as u64) < wanted, lines: taken }
}

/// As many of these lines as may be given at once, at least one.
fn within_room<'a>(lines: impl Iterator<Item = &'a str>, find: Option<&str>) -> Vec<String> {
    let mut room = MAX_READ_BYTES;
    let mut taken = Vec::new();
    for line in lines {
        let shown = shown(line, find);
        if shown.len() > room && !taken.is_empty() {
            break;
        }
        room = room.saturating_sub(shown.len() + 1);
        taken.push(shown);
    }
    taken
}

/// The pages asked for. One that is too long is given around the words that are looked for, or from its beginning.
fn pages(text: &str, asked: Asked<'_>) -> Lines {
    /// Lines before the words that are looked for.
    const BEFORE: usize = 8;
    let Asked { path, from, to, total, unit, find } = asked;
    let cuts = Cuts::of(text);
    let place = |number: u64| u32::try_from(number).ok().and_then(|number| cuts.lines_of(number));
    let (first, last) = (place(from).map_or(1, |(first, _)| first), place(to).map_or(1, |(_, last)| last));
    let all: Vec<(u64, &str)> = (1u32..)
        .zip(text.lines())
        .skip(first as usize - 1)
        .take((last - first) as usize + 1)
        .map(|(line, text)| (u64::from(cuts.number_of(line)), text))
        .collect();
    let bytes: usize = all.iter().map(|(_, line)| line.len() + 1).sum();
    let fits = bytes <= MAX_READ_BYTES && all.len() as u64 <= MAX_LINES;
    let words = find.map(str::trim).filter(|words| !words.is_empty() && !fits);
    let at = words.and_then(|words| all.iter().position(|(_, line)| line.contains(words)));
    let begin = at.unwrap_or(0).saturating_sub(BEFORE);
    let given = all[begin..].iter().take(MAX_LINES as usize).map(|(_, line)| *line);
    let mut lines = within_room(given, find);
    let mut numbers: Vec<u64> = all[begin..].iter().take(lines.len()).map(|(number, _)| *number).collect();
    let is_cut = begin + lines.len() < all.len();
    // Whole pages, so that whoever goes on from the next one misses nothing.
    if let Some((next, _)) = all.get(begin + lines.len())
        && numbers.first().is_some_and(|first| first != next)
    {
        numbers.retain(|number| number != next);
        lines.truncate(numbers.len());
    }
    let lines = lines.iter().map(|line| without_breaks(line)).collect();
    Lines { path, from: numbers.first().copied().unwrap_or(from), total, unit, numbers, lines, cut: is_cut }
}
