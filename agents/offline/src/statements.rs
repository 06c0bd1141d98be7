//! Single statements of a document, each with the line where it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use regex::Regex;

use super::text::{normalise_space, sentences, stem_set, strip_markup, words};

mod blocks;
mod rows;
mod shapes;
mod source;
mod wholes;

use blocks::{RawBlock, RawKind};
use rows::{row_text, telling_cells};
use shapes::Columns;

pub(super) use shapes::is_plain_text;
pub(super) use source::{is_html, without_signs};

/// Longest statement, in characters; longer ones are left out or cut.
const MAX_CHARS: usize = 420;
/// Up to this many words a sentence may need the one before it to say something.
const SHORT_SENTENCE: usize = 6;
/// Most sentences of one paragraph that are read together.
const MOST_SENTENCES: usize = 3;
/// Lines at the beginning of a document that say what it is about.
const LINES_OF_OPENING: u32 = 5;
/// Up to how many lines away what stands before or after a paragraph is near it.
const LINES_NEAR: u32 = 4;
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
    /// A line of a log or of a timeline.
    Entry,
    /// A whole list, in its own lines.
    List,
    /// A whole table, in its own lines.
    Table,
    /// A whole piece of code, in its own lines.
    Listing,
    /// All that stands under a heading, in its own lines.
    Section,
}

impl StatementKind {
    /// Whether it is shown in the lines of the document.
    pub(super) const fn is_whole(self) -> bool {
        matches!(self, Self::List | Self::Table | Self::Listing | Self::Section)
    }
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
    pub(super) stems: Arc<BTreeSet<String>>,
    /// Stems of its own words without asides: what stands in brackets, and code of more than one word. Of a whole, those
    /// of what introduces it.
    pub(super) main: BTreeSet<String>,
    /// Stems of the path, headings and labels above it.
    pub(super) context: Arc<BTreeSet<String>>,
    /// Stems of the rest of its paragraph.
    pub(super) around: Arc<BTreeSet<String>>,
    /// Stems of what stands before and after its paragraph.
    pub(super) near: Arc<BTreeSet<String>>,
    /// Whether the heading is a term, and this says what it means.
    pub(super) defines: bool,
    /// Stems of the first lines of the document, and of its name, where they were seen.
    pub(super) opening: Arc<BTreeSet<String>>,
    /// Of how many parts it is made; 1 unless it is a whole.
    pub(super) parts: usize,
}

/// The statements in the lines seen of a document.
///
/// `trails` are the headings known to stand above a line of a document.
pub(super) fn statements(
    path: &str,
    lines: &BTreeMap<u32, String>,
    trails: &BTreeMap<(String, u32), Vec<String>>,
) -> Vec<Statement> {
    let blocks = blocks::blocks(path, lines, trails);
    let mut contexts = Contexts::default();
    let singles: Vec<Vec<Statement>> =
        blocks.iter().map(|block| singles(path, block, &contexts.of(path, block))).collect();
    let stems: Vec<Arc<BTreeSet<String>>> = singles.iter().map(|singles| Arc::new(union(singles))).collect();
    let opening = Arc::new(opening(lines));
    let wholes = wholes::wholes(path, lines, &blocks, &stems);
    let mut found = Vec::new();
    for (at, mut singles) in singles.into_iter().enumerate() {
        let near = Arc::new(near(&blocks, &stems, at));
        for single in &mut singles {
            single.around = Arc::clone(&stems[at]);
            single.near = Arc::clone(&near);
        }
        if matches!(blocks[at].kind, RawKind::Text | RawKind::Item) {
            let together = together(&singles);
            found.extend(singles);
            found.extend(together);
        } else {
            found.extend(singles);
        }
    }
    found.extend(wholes);
    for statement in &mut found {
        statement.opening = Arc::clone(&opening);
    }
    found
}

/// All stems of some statements.
fn union(statements: &[Statement]) -> BTreeSet<String> {
    match statements {
        [] => BTreeSet::new(),
        [one] => one.stems.as_ref().clone(),
        several => several.iter().flat_map(|one| one.stems.iter().cloned()).collect(),
    }
}

/// Stems of the paragraphs before and after one, where they are of the same part of the document.
fn near(blocks: &[RawBlock], stems: &[Arc<BTreeSet<String>>], at: usize) -> BTreeSet<String> {
    let block = &blocks[at];
    let beside = |other: usize| {
        let (next, stems) = blocks.get(other).zip(stems.get(other))?;
        let apart = next.first().abs_diff(block.last()).min(block.first().abs_diff(next.last()));
        (apart <= LINES_NEAR && next.headings == block.headings).then_some(stems)
    };
    let beside = [at.checked_sub(1), at.checked_add(1)].into_iter().flatten().filter_map(beside);
    beside.flat_map(|stems| stems.iter().cloned()).collect()
}

/// Stems of what blocks stand under: mostly that of the block before.
#[derive(Default)]
struct Contexts {
    last: Option<(String, Arc<BTreeSet<String>>)>,
}

impl Contexts {
    fn of(&mut self, path: &str, block: &RawBlock) -> Arc<BTreeSet<String>> {
        let (headings, header) = (block.headings.join(" "), block.header.join(" "));
        let words = format!("{path} {headings} {} {} {header}", block.label, block.lead);
        match &self.last {
            Some((known, stems)) if *known == words => Arc::clone(stems),
            _ => {
                let stems = Arc::new(stem_set(&words));
                self.last = Some((words, Arc::clone(&stems)));
                stems
            }
        }
    }
}

/// Sentences of one paragraph that are read together, each range of them once.
fn together(singles: &[Statement]) -> Vec<Statement> {
    let mut found = Vec::new();
    for end in 1..singles.len() {
        for parts in 2..=MOST_SENTENCES {
            let Some(group) = (end + 1).checked_sub(parts).map(|first| &singles[first..=end]) else { break };
            let text = group.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join(" ");
            let (Some(first), Some(last)) = (group.first(), group.last()) else { break };
            if text.chars().count() > MAX_CHARS {
                break;
            }
            let leans = leans_on_the_one_before(&last.text) || words(&last.text).count() <= SHORT_SENTENCE;
            found.push(Statement {
                last_line: last.last_line,
                stems: Arc::new(union(group)),
                main: group.iter().flat_map(|one| one.main.iter().cloned()).collect(),
                text,
                kind: last.kind,
                order: last.order,
                // What leans on the sentence before says nothing without it.
                parts: if leans && parts == 2 { 1 } else { parts },
                ..first.clone()
            });
        }
    }
    found
}

/// What the first lines of a document say it is about.
fn opening(lines: &BTreeMap<u32, String>) -> BTreeSet<String> {
    let first: Vec<&str> = lines
        .range(1..=LINES_OF_OPENING)
        .map(|(_, line)| &line[..line.floor_char_boundary(MAX_QUOTE)])
        .collect();
    stem_set(&strip_markup(&first.join(" ")))
}

/// The statements of a block that stand by themselves.
fn singles(path: &str, block: &RawBlock, context: &Arc<BTreeSet<String>>) -> Vec<Statement> {
    let (joined, starts) = block.joined();
    let line_at = |at: usize| {
        let piece = starts.partition_point(|start| *start <= at).saturating_sub(1);
        block.pieces.get(piece).map_or(0, |(line, _)| *line)
    };
    let make = |order: usize, start: usize, end: usize| -> Option<Statement> {
        let raw = joined.get(start..end)?;
        let text = readable(block, raw)?;
        let defined = if block.defines && order == 0 { format!("{}: ", block.label) } else { String::new() };
        let kind = kind_of(block, raw);
        Some(Statement {
            path: path.to_owned(),
            line: line_at(start),
            last_line: line_at(end.saturating_sub(1)),
            // A comment is about the name below it.
            stems: Arc::new(stem_set(&if block.label.starts_with('`') {
                format!("{} {text}", block.label)
            } else {
                format!("{defined}{text}")
            })),
            main: if kind == StatementKind::Code {
                stem_set(&text)
            } else {
                stem_set(&ASIDE.replace_all(&format!("{defined}{text}"), " "))
            },
            text,
            quote: raw.chars().take(MAX_QUOTE).collect(),
            kind,
            heading: heading_of(block),
            order,
            context: Arc::clone(context),
            around: Arc::default(),
            near: Arc::default(),
            opening: Arc::default(),
            defines: block.defines && order == 0,
            parts: 1,
        })
    };
    let ranges = match block.kind {
        RawKind::Row => std::iter::once(0..joined.len()).chain(telling_cells(&joined)).collect(),
        RawKind::Code | RawKind::Entry => std::iter::once(0..joined.len()).collect::<Vec<_>>(),
        RawKind::Text | RawKind::Item => sentences(&joined),
    };
    ranges.iter().enumerate().filter_map(|(number, range)| make(number, range.start, range.end)).collect()
}

fn kind_of(block: &RawBlock, raw: &str) -> StatementKind {
    match block.kind {
        RawKind::Text => StatementKind::Sentence,
        RawKind::Item if ends_like_a_sentence(raw) => StatementKind::Sentence,
        RawKind::Item => StatementKind::Item,
        RawKind::Row => StatementKind::Row,
        RawKind::Code => StatementKind::Code,
        RawKind::Entry => StatementKind::Entry,
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
        RawKind::Row if block.columns != Columns::Pipes || raw.contains('|') => row_text(block, raw),
        RawKind::Row => strip_markup(raw),
        RawKind::Entry => normalise_space(raw),
        RawKind::Code => format!("`{}`", normalise_space(raw).replace('`', "")),
        RawKind::Text | RawKind::Item => strip_markup(&DEFINED.replace(raw, "$1$2:$3")),
    };
    let text =
        text.trim_start_matches(['-', '–', '—', ':', ',', ';', '•', '·', ' ']).trim_end_matches('·').trim();
    let text = text.strip_suffix(':').unwrap_or(text).trim();
    let text = match block.kind {
        RawKind::Text if !block.value.is_empty() => {
            &format!("{} (`{}`)", text.trim_end_matches('.'), block.value.replace('`', ""))
        }
        _ => text,
    };
    let count = words(text).filter(|word| word.text.chars().any(char::is_alphabetic)).count();
    let gives = text.trim_end_matches('`').trim_end_matches(':').contains([':', '=']);
    let is_setting = block.kind == RawKind::Code && gives && count > 0;
    if (count < 2 && !is_setting) || text.chars().count() > MAX_CHARS {
        return None;
    }
    Some(balanced(text))
}

pattern!(
    POINTS_BACK,
    r"(?i)^(?:after (?:that|this)|before (?:that|this)|in (?:that|this) case|for (?:that|this) reason|as a result|because of (?:that|this)|the (?:first|second|last|other|others|rest|same|former|latter)\b|if (?:not|so)\b|until then)"
);

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

/// Whether a sentence cannot be understood without the one before it.
fn leans_on_the_one_before(sentence: &str) -> bool {
    let plain = strip_markup(sentence);
    if POINTS_BACK.is_match(&plain) {
        return true;
    }
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
            | "afterwards"
            | "meanwhile"
            | "later"
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
