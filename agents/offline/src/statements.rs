//! Single statements of a document, each with the line where it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::text::{normalise_space, sentences, stem_set, strip_markup, words};

mod blocks;
mod source;

use blocks::{RawBlock, RawKind};

pub(super) use source::{is_html, without_signs};

/// Longest statement, in characters; longer ones are left out or cut.
const MAX_CHARS: usize = 420;
/// Up to this many words a sentence may need the one before it to say something.
const SHORT_SENTENCE: usize = 6;
/// Longest quote, in characters.
const MAX_QUOTE: usize = 300;

/// What a statement was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StatementKind {
    /// A sentence of running text or of a comment.
    Sentence,
    /// A list item that is not a sentence.
    Item,
    /// A row of a table.
    Row,
    /// A line of code.
    Code,
}

/// Something that a document says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// The document.
    pub(super) path: String,
    /// The line where it begins.
    pub(super) line: u32,
    /// The line where it ends.
    pub(super) last_line: u32,
    /// The statement as it can be read on its own.
    pub(super) text: String,
    /// The words as they stand in the document.
    pub(super) quote: String,
    /// What it was made from.
    pub(super) kind: StatementKind,
    /// The heading, label or name it stands under.
    pub(super) heading: String,
    /// Which sentence of its paragraph it ends with, from 0.
    pub(super) order: usize,
    /// Stems of its own words.
    pub(super) stems: BTreeSet<String>,
    /// Stems of its own words without asides: what stands in brackets, and code of more than one word.
    pub(super) main: BTreeSet<String>,
    /// Stems of the path, headings and labels above it.
    pub(super) context: BTreeSet<String>,
    /// Stems of the rest of its paragraph.
    pub(super) around: BTreeSet<String>,
}

/// The statements in the lines seen of a document.
///
/// `trails` are the headings known to stand above a line of a document.
pub(super) fn statements(
    path: &str,
    lines: &BTreeMap<u32, String>,
    trails: &BTreeMap<(String, u32), Vec<String>>,
) -> Vec<Statement> {
    blocks::blocks(path, lines, trails).iter().flat_map(|block| of_block(path, block)).collect()
}

fn of_block(path: &str, block: &RawBlock) -> Vec<Statement> {
    let (joined, starts) = block.joined();
    let paragraph = stem_set(&strip_markup(&joined));
    let context = stem_set(&format!(
        "{path} {} {} {} {}",
        block.headings.join(" "),
        block.label,
        block.lead,
        block.header.join(" ")
    ));
    let line_at = |at: usize| {
        let piece = starts.partition_point(|start| *start <= at).saturating_sub(1);
        block.pieces.get(piece).map_or(0, |(line, _)| *line)
    };
    let make = |order: usize, start: usize, end: usize| -> Option<Statement> {
        let raw = joined.get(start..end)?;
        let text = readable(block, raw)?;
        let kind = kind_of(block, raw);
        Some(Statement {
            path: path.to_owned(),
            line: line_at(start),
            last_line: line_at(end.saturating_sub(1)),
            stems: stem_set(&text),
            main: stem_set(&ASIDE.replace_all(&text, " ")),
            text,
            quote: raw.chars().take(MAX_QUOTE).collect(),
            kind,
            heading: heading_of(block),
            order,
            context: context.clone(),
            around: paragraph.clone(),
        })
    };
    let ranges = match block.kind {
        RawKind::Row => std::iter::once(0..joined.len()).chain(telling_cells(&joined)).collect(),
        RawKind::Code => std::iter::once(0..joined.len()).collect::<Vec<_>>(),
        RawKind::Text | RawKind::Item => sentences(&joined),
    };
    let mut found = Vec::new();
    for (number, range) in ranges.iter().enumerate() {
        found.extend(make(number, range.start, range.end));
        if let Some(before) = number.checked_sub(1).and_then(|number| ranges.get(number))
            && block.kind != RawKind::Row
            && (leans_on_the_one_before(&joined[range.clone()])
                || words(&joined[range.clone()]).count() <= SHORT_SENTENCE)
            && range.end - before.start <= MAX_CHARS
        {
            found.extend(make(number, before.start, range.end));
        }
    }
    found
}

fn kind_of(block: &RawBlock, raw: &str) -> StatementKind {
    match block.kind {
        RawKind::Text => StatementKind::Sentence,
        RawKind::Item if ends_like_a_sentence(raw) => StatementKind::Sentence,
        RawKind::Item => StatementKind::Item,
        RawKind::Row => StatementKind::Row,
        RawKind::Code => StatementKind::Code,
    }
}

fn heading_of(block: &RawBlock) -> String {
    if block.label.is_empty() {
        block.headings.last().cloned().unwrap_or_default()
    } else {
        block.label.clone()
    }
}

/// The raw words as a statement that can be read on its own, or nothing when there is none in them.
fn readable(block: &RawBlock, raw: &str) -> Option<String> {
    let text = match block.kind {
        RawKind::Row if raw.contains('|') => row_text(&block.header, raw),
        RawKind::Row => strip_markup(raw),
        RawKind::Code => format!("`{}`", normalise_space(raw).replace('`', "")),
        RawKind::Text | RawKind::Item => strip_markup(&DEFINED.replace(raw, "$1$2:$3")),
    };
    let text =
        text.trim_start_matches(['-', '–', '—', ':', ',', ';', '•', '·', ' ']).trim_end_matches('·').trim();
    let text = text.strip_suffix(':').unwrap_or(text).trim();
    let count = words(text).filter(|word| word.text.chars().any(char::is_alphabetic)).count();
    if count < 2 || text.chars().count() > MAX_CHARS {
        return None;
    }
    Some(balanced(text))
}

/// What is said by the way: words in brackets, and code that is more than a name.
#[expect(clippy::expect_used, reason = "the pattern is a literal, checked by the tests")]
static ASIDE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\([^()]*\)|`[^`]*[\s=/][^`]*`").expect("a valid pattern"));

/// A term in bold before what it stands for, without a sign between.
#[expect(clippy::expect_used, reason = "the pattern is a literal, checked by the tests")]
static DEFINED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[·\s]*\*\*([^*]{2,40})\*\*(\s\([^)]*\))?(\s(?:an?|the|one|what|any|all|each|every|how|who|where)\s)")
        .expect("a valid pattern")
});

/// Closes what the cutting of a paragraph into sentences left open.
fn balanced(text: &str) -> String {
    let mut text = text.to_owned();
    if text.starts_with('(') && text.ends_with(')') && text.matches('(').count() == 1 {
        text = text[1..text.len() - 1].to_owned();
    } else if text.starts_with('(') && !text.contains(')') {
        text.remove(0);
    } else if text.matches('(').count() > text.matches(')').count() && text.ends_with('.') {
        text.insert(text.len() - 1, ')');
    } else if text.ends_with(')') && !text.contains('(') {
        text.pop();
    }
    if text.matches('`').count() % 2 == 1 {
        text = text.replace('`', "");
    }
    text
}

/// A row of a table as words: the first cell names what the others say; ids and marks are left out.
fn row_text(header: &[String], raw: &str) -> String {
    let cells: Vec<String> = cells(raw).into_iter().map(|cell| strip_markup(&cell)).collect();
    let column = |at: usize| header.get(at).map_or("", String::as_str);
    let mut said = cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| !cell.is_empty())
        .filter(|(at, cell)| *at > 0 || cells.len() < 3 || !is_id(column(0), cell))
        // Cells of one or two letters are marks for those who know the table.
        .filter(|(at, cell)| {
            *at == 0 || cell.chars().count() > 4 || cell.chars().any(|letter| letter.is_ascii_digit())
        });
    let Some((_, first)) = said.next() else { return String::new() };
    let rest: Vec<String> = said
        .enumerate()
        .map(|(number, (at, cell))| match column(at) {
            name if !name.is_empty() && (number > 0 || words(cell).count() < 3) && cells.len() > 2 => {
                format!("{name}: {cell}")
            }
            _ => cell.clone(),
        })
        .collect();
    match rest.as_slice() {
        [] => first.clone(),
        rest if is_short(first) => format!("{first}: {}", rest.join("; ")),
        rest => format!("{} ({})", first.trim_end_matches('.'), rest.join("; ")),
    }
}

/// Whether a cell is read as a name or a value rather than as a statement.
fn is_short(cell: &str) -> bool {
    words(cell).count() <= 5
}

/// Whether the first cell of a row only numbers it.
fn is_id(column: &str, cell: &str) -> bool {
    matches!(column.to_lowercase().as_str(), "id" | "#" | "no" | "no." | "nr" | "nr." | "")
        && ID.is_match(cell)
}

#[expect(clippy::expect_used, reason = "the pattern is a literal, checked by the tests")]
static ID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[A-Za-z]{0,4}[-.]?\d{1,4}[a-z]?\.?$").expect("a valid pattern"));

/// The cells of a row that make a statement of their own, as bytes of the row.
fn telling_cells(raw: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for piece in raw.split_inclusive('|') {
        let cell = piece.trim_end_matches('|');
        let trimmed = cell.trim();
        let begin = start + (cell.len() - cell.trim_start().len());
        start += piece.len();
        if words(trimmed).count() >= 6 && !raw.contains("\\|") {
            found.push(begin..begin + trimmed.len());
        }
    }
    found
}

fn cells(raw: &str) -> Vec<String> {
    let inner = raw.trim().trim_start_matches('|').trim_end_matches('|');
    inner
        .replace("\\|", "\u{1}")
        .split('|')
        .map(|cell| cell.replace('\u{1}', "|").trim().to_owned())
        .collect()
}

/// Whether a sentence cannot be understood without the one before it.
fn leans_on_the_one_before(sentence: &str) -> bool {
    let plain = strip_markup(sentence);
    let first = words(&plain).next().map(|word| word.text.to_lowercase()).unwrap_or_default();
    matches!(
        first.as_str(),
        "it" | "its"
            | "it's"
            | "they"
            | "them"
            | "their"
            | "this"
            | "these"
            | "those"
            | "that"
            | "he"
            | "she"
            | "such"
            | "otherwise"
            | "instead"
            | "then"
            | "here"
            | "so"
            | "therefore"
            | "thus"
            | "both"
            | "neither"
            | "however"
            | "but"
            | "and"
    )
}

/// Whether words end as a sentence does.
pub(super) fn ends_like_a_sentence(text: &str) -> bool {
    text.trim_end_matches(['*', '_', '"', '”', ')', '`', '\'']).ends_with(['.', '!', '?'])
}

/// Whether a statement begins with a word that points to what stood before it.
pub(super) fn begins_with_a_pointer(text: &str) -> bool {
    leans_on_the_one_before(text)
}

#[cfg(test)]
#[path = "statements_tests.rs"]
mod tests;
