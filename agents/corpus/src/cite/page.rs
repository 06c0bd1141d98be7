//! One document, prepared for the look-up of citations.

use muster_shared::text::{normalise_space, within_bytes};

use super::flat::{Flat, Quote};
use crate::html;
use crate::kind::{DocumentKind, is_sheet};
use crate::unit::{Cuts, Unit};

/// Lines before and after cited ones that may belong to the same sentence.
const REACH: u32 = 2;
/// Longest text of cited lines that a fault shows, in bytes.
const SHOWN: usize = 400;
/// Longest text of cited lines with their neighbors, in bytes.
const SHOWN_WITH_NEIGHBORS: usize = 1_600;

/// Lines of a document, first and last, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Lines {
    pub(super) const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A document by line.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) path: String,
    /// The lines as tools show them to a model.
    lines: Vec<String>,
    /// The lines of HTML without tags; `None` for other formats.
    plain: Option<Vec<String>>,
    /// The text as it is, and without markup.
    flats: Vec<Flat>,
    /// Pages of the document, if citations name them.
    cuts: Option<Cuts>,
}

impl Page {
    pub(super) fn new(path: &str, text: &str, unit: Unit) -> Self {
        let owned = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let lines = owned(text);
        let plain = (DocumentKind::of(path) == DocumentKind::Html).then(|| owned(&html::to_text(text)));
        let unmarked = plain.clone().unwrap_or_else(|| owned(&without_markup(text)));
        Self {
            path: path.to_owned(),
            flats: vec![
                Flat::of(lines.iter().map(String::as_str)),
                Flat::of(unmarked.iter().map(String::as_str)),
            ],
            lines,
            plain,
            cuts: unit.is_cut().then(|| Cuts::of(text)),
        }
    }

    fn len(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// The lines that a citation means; `None` if the first does not exist.
    pub(super) fn lines_of(&self, first: u32, last: u32) -> Option<Lines> {
        let last = last.max(first);
        if let Some(cuts) = &self.cuts {
            let (first, _) = cuts.lines_of(first)?;
            let end = cuts.lines_of(last.min(cuts.count())).map_or(first, |(_, end)| end);
            return Some(Lines { first, last: end.min(self.len()) });
        }
        (1..=self.len()).contains(&first).then(|| Lines { first, last: last.min(self.len()) })
    }

    /// The number by which a line is cited: its own, or that of its page.
    pub(super) fn number_of(&self, line: u32) -> u32 {
        self.cuts.as_ref().map_or(line, |cuts| cuts.number_of(line))
    }

    /// Number of lines, or of pages.
    pub(super) fn count(&self) -> u32 {
        self.cuts.as_ref().map_or(self.len(), Cuts::count)
    }

    fn line(&self, number: u32) -> &str {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        at.and_then(|at| self.lines.get(at)).map_or("", String::as_str)
    }

    /// Positions of a quote, in order.
    pub(super) fn places(&self, quotes: &[Quote]) -> Vec<Lines> {
        let found = quotes.iter().flat_map(|quote| self.flats.iter().map(|flat| flat.places(quote)));
        found.into_iter().find(|places| !places.is_empty()).unwrap_or_default()
    }

    /// The text of lines, without the tags of HTML.
    pub(super) fn text(&self, lines: Lines) -> String {
        joined(self.plain.as_ref().unwrap_or(&self.lines), lines)
    }

    /// The text of lines and of so many lines after them, with the rest of their sentence; the tags of HTML too.
    pub(super) fn text_around(&self, lines: Lines, more: u32) -> String {
        let around = self.around(Lines { last: lines.last.saturating_add(more).min(self.len()), ..lines });
        let tagged = if self.plain.is_some() { joined(&self.lines, around) } else { String::new() };
        format!("{}\n{tagged}", self.text(around))
    }

    /// The paragraph or item of the lines, as far as it is near. A row has no neighbors.
    fn around(&self, Lines { mut first, mut last }: Lines) -> Lines {
        let (least, most) = (first.saturating_sub(REACH).max(1), last.saturating_add(REACH).min(self.len()));
        while first > least && self.continues(first) && self.kind(first - 1).is_sentence() {
            first -= 1;
        }
        while last < most && self.kind(last).is_sentence() && self.continues(last + 1) {
            last += 1;
        }
        Lines { first, last }
    }

    /// Whether a line continues the sentence of the line above.
    fn continues(&self, line: u32) -> bool {
        self.kind(line) == Kind::Running && !self.cuts.as_ref().is_some_and(|cuts| cuts.begins(line))
    }

    fn kind(&self, line: u32) -> Kind {
        if self.has_rows() {
            return Kind::Row;
        }
        match Kind::of(self.line(line)) {
            // A comment of source code belongs to the line that it describes.
            Kind::Heading if DocumentKind::of(&self.path) != DocumentKind::Markdown => Kind::Running,
            kind => kind,
        }
    }

    /// Whether every line of the document is a row or an entry.
    fn has_rows(&self) -> bool {
        self.is_table() || ["log", "jsonl", "ndjson"].contains(&ending(&self.path).as_str())
    }

    /// The header of the table that has this line as a row.
    pub(super) fn header_of(&self, line: u32) -> Option<&str> {
        self.header_line(line).map(|header| self.line(header))
    }

    /// Whether the lines are only the header of a table.
    pub(super) fn is_header(&self, lines: Lines) -> bool {
        self.is_table() && lines.last == 1
    }

    fn is_table(&self) -> bool {
        is_sheet(&self.path) || ["csv", "tsv", "tab"].contains(&ending(&self.path).as_str())
    }

    fn header_line(&self, line: u32) -> Option<u32> {
        if self.is_table() {
            return (line > 1).then_some(1);
        }
        let is_row = |line: &u32| self.kind(*line) == Kind::Row;
        let above = (1..line).rev().take_while(is_row).last();
        above.filter(|_| is_row(&line) && !self.has_rows())
    }

    /// Lines in short.
    pub(super) fn shown(&self, lines: Lines) -> String {
        within_bytes(&normalise_space(&joined(&self.lines, lines)), SHOWN)
    }

    /// Lines with their neighbors and the header of their table, each with its number.
    pub(super) fn shown_with_neighbors(&self, Lines { first, last }: Lines) -> String {
        let (from, to) = (first.saturating_sub(REACH).max(1), last.saturating_add(REACH).min(self.len()));
        let header = self.header_line(first).filter(|header| *header < from);
        let numbered = |line: u32| format!("{line}| {}", self.line(line).trim_end());
        let shown: Vec<String> = header.into_iter().chain(from..=to).map(numbered).collect();
        within_bytes(&shown.join("\n"), SHOWN_WITH_NEIGHBORS)
    }
}

fn joined(all: &[String], Lines { first, last }: Lines) -> String {
    let at = |line: u32| usize::try_from(line).unwrap_or(usize::MAX);
    let lines = all.get(at(first).saturating_sub(1)..at(last).min(all.len()));
    lines.unwrap_or_default().join("\n")
}

fn ending(path: &str) -> String {
    path.rsplit_once('.').map_or_else(String::new, |(_, ending)| ending.to_ascii_lowercase())
}

/// Kind of a line, as far as it shows which lines belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Heading,
    /// A row of a table, or an entry of a log.
    Row,
    Item,
    Running,
}

impl Kind {
    fn of(line: &str) -> Self {
        let text = line.trim();
        let is_item = || {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            text.starts_with(['-', '*', '+', '•'])
                || digits > 0 && (text[digits..].starts_with(". ") || text[digits..].starts_with(") "))
        };
        if text.is_empty() {
            Self::Blank
        } else if text.starts_with('#') && text.trim_start_matches('#').starts_with(' ') {
            Self::Heading
        } else if text.starts_with('|') {
            Self::Row
        } else if is_item() {
            Self::Item
        } else {
            Self::Running
        }
    }

    const fn is_sentence(self) -> bool {
        matches!(self, Self::Item | Self::Running)
    }
}

/// The text without targets of links and, line by line, without tags. A tag in code affects only its own line.
pub(super) fn without_markup(text: &str) -> String {
    without_targets(text).lines().map(html::to_text).collect::<Vec<_>>().join("\n")
}

/// `[the text](target)` as its text.
fn without_targets(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("](") {
        let (before, target) = (&rest[..at], &rest[at + 1..]);
        match before.rfind('[') {
            Some(open) => out.extend([&before[..open], &before[open + 1..]]),
            None => out.push_str(before),
        }
        let end = target.find([')', '\n']).filter(|end| target[*end..].starts_with(')'));
        rest = end.map_or(&target[1..], |end| &target[end + 1..]);
    }
    out.push_str(rest);
    out
}
