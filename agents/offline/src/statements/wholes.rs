//! Lists, tables and pieces of code as a whole, each under what introduces it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::text::{stem_set, strip_markup, strip_tags};
use super::blocks::{RawBlock, RawKind};
use super::{MAX_QUOTE, Statement, StatementKind, source};

/// Most lines and characters of a whole.
const MAX_LINES: usize = 30;
const MAX_CHARS: usize = 2_400;
/// Most lines of a section that is shown as a whole.
const SECTION_LINES: usize = 16;
/// Fewest blocks of a whole.
const FEWEST: usize = 2;
/// Lines between two blocks of a whole: an empty one, and the marks of code.
const BETWEEN: u32 = 3;

/// The wholes among the blocks of a document.
///
/// `stems` are those of the blocks.
pub(super) fn wholes(
    path: &str,
    lines: &BTreeMap<u32, String>,
    blocks: &[RawBlock],
    stems: &[Arc<BTreeSet<String>>],
) -> Vec<Statement> {
    let document = Document { path, lines };
    let is_source = source::language(path) != source::Language::Prose;
    let mut found = Vec::new();
    let mut at = 0;
    while at < blocks.len() {
        let until = if is_source { end_of_code(blocks, at, lines) } else { end_of_run(blocks, at) };
        let group = &blocks[at..until];
        if group.len() >= FEWEST || (is_source && group.len() == 1) {
            let before = at.checked_sub(1).and_then(|before| blocks.get(before));
            found.extend(document.whole(group, before, &stems[at..until]));
        }
        at = until.max(at + 1);
    }
    if !is_source {
        found.extend(document.sections(blocks, stems));
    }
    found
}

/// The lines seen of a document.
struct Document<'a> {
    path: &'a str,
    lines: &'a BTreeMap<u32, String>,
}

impl Document<'_> {
    /// What stands under each heading, where that is short and more than one paragraph or sentence.
    fn sections(&self, blocks: &[RawBlock], stems: &[Arc<BTreeSet<String>>]) -> Vec<Statement> {
        let mut until = 0;
        let mut found = Vec::new();
        for group in blocks.chunk_by(|one, next| one.headings == next.headings) {
            let at = until;
            until += group.len();
            let has_text = group.iter().any(|block| block.kind == RawKind::Text);
            let is_short = group.iter().map(|block| block.pieces.len()).sum::<usize>() <= SECTION_LINES;
            let Some(first) =
                group.first().filter(|first| !first.headings.is_empty() && has_text && is_short)
            else {
                continue;
            };
            let section = self.whole(group, None, &stems[at..until]);
            found.extend(section.map(|whole| Statement {
                kind: StatementKind::Section,
                main: stem_set(first.headings.last().map_or("", String::as_str)),
                ..whole
            }));
        }
        found
    }

    fn whole(
        &self,
        group: &[RawBlock],
        before: Option<&RawBlock>,
        stems: &[Arc<BTreeSet<String>>],
    ) -> Option<Statement> {
        let (path, lines) = (self.path, self.lines);
        let (first, last) = (group.first()?, group.last()?);
        let kind = match first.kind {
            _ if source::language(path) != source::Language::Prose => StatementKind::Listing,
            RawKind::Item | RawKind::Text => StatementKind::List,
            RawKind::Row => StatementKind::Table,
            RawKind::Code | RawKind::Entry => StatementKind::Listing,
        };
        let mut span = span(kind, first.first(), last.last(), lines);
        if source::language(path) != source::Language::Prose {
            let is_filled = |number: &u32| lines.get(number).is_some_and(|line| !line.trim().is_empty());
            let end = (*span.end() + 1..).take_while(is_filled).last().unwrap_or(*span.end());
            span = *span.start()..=end;
        }
        let bare = |line: &str| {
            let line =
                if source::is_html(path) { strip_tags(line).trim().to_owned() } else { line.to_owned() };
            line.trim_end().to_owned()
        };
        let shown: Vec<String> = lines.range(span.clone()).map(|(_, line)| bare(line)).collect();
        if shown.len() > MAX_LINES || shown.len() < 2 || shown.len() != span.clone().count() {
            return None;
        }
        let text = dedented(&shown);
        if text.chars().count() > MAX_CHARS {
            return None;
        }
        let introduction = before.filter(|before| {
            before.kind == RawKind::Text
                && before.headings == first.headings
                && before.last() + 3 >= *span.start()
                && kind != StatementKind::Listing
        });
        let lead = introduction.map(|block| strip_markup(&block.joined().0)).unwrap_or_default();
        let stems: BTreeSet<String> = stems.iter().flat_map(|stems| stems.iter().cloned()).collect();
        let quote: String = first.pieces.first()?.1.chars().take(MAX_QUOTE).collect();
        let heading = first.headings.last().cloned().unwrap_or_default();
        // "Payments > Fields": the last heading alone often names a part only.
        let above = first.headings[first.headings.len().saturating_sub(2).max(1).min(first.headings.len())..]
            .join(" ");
        let above = if above.is_empty() { heading.clone() } else { above };
        let label = group.iter().map(|block| &block.label).find(|label| !label.is_empty());
        let title = stem_set(&format!(
            "{above} {lead} {} {}",
            label.map_or("", String::as_str),
            first.header.join(" ")
        ));
        Some(Statement {
            path: path.to_owned(),
            line: first.first(),
            last_line: *span.end(),
            text,
            quote,
            kind,
            heading: match (heading.is_empty(), kind) {
                (true, StatementKind::Listing) => label.cloned().unwrap_or_default(),
                (true, _) => lead.clone(),
                (false, _) => heading,
            },
            order: 0,
            main: title,
            stems: Arc::new(stems),
            context: Arc::new(stem_set(&format!("{path} {}", first.headings.join(" ")))),
            around: Arc::new(stem_set(&lead)),
            near: Arc::default(),
            opening: Arc::default(),
            defines: false,
            parts: group.len(),
        })
    }
}

/// Where the list, the table or the code that begins at a block ends.
fn end_of_run(blocks: &[RawBlock], at: usize) -> usize {
    let first = &blocks[at];
    let goes_on = |before: &RawBlock, next: &RawBlock| {
        let near = next.first() <= before.last() + BETWEEN && next.headings == first.headings;
        let fits = match first.kind {
            RawKind::Item => matches!(next.kind, RawKind::Item | RawKind::Code),
            RawKind::Row => next.kind == RawKind::Row && next.header == first.header,
            RawKind::Code => next.kind == RawKind::Code && next.first() <= before.last() + 2,
            RawKind::Text => first.defines && next.defines && next.kind == RawKind::Text,
            RawKind::Entry => false,
        };
        near && fits
    };
    let more = blocks[at..].windows(2).take_while(|pair| goes_on(&pair[0], &pair[1])).count();
    at + 1 + more
}

/// Where the lines of code without an empty one between them end.
fn end_of_code(blocks: &[RawBlock], at: usize, lines: &BTreeMap<u32, String>) -> usize {
    let is_filled = |number: u32| lines.get(&number).is_some_and(|line| !line.trim().is_empty());
    let together = |pair: &[RawBlock]| (pair[0].last() + 1..pair[1].first()).all(is_filled);
    let more = blocks[at..].windows(2).take_while(|pair| together(pair)).count();
    at + 1 + more
}

/// The lines of a whole, with the head of a table and the marks around code.
fn span(
    kind: StatementKind,
    first: u32,
    last: u32,
    lines: &BTreeMap<u32, String>,
) -> std::ops::RangeInclusive<u32> {
    let (mut first, mut last) = (first, last);
    let line = |number: u32| lines.get(&number).map_or("", |line| line.trim());
    let is_fence = |number: u32| line(number).starts_with("```") || line(number).starts_with("~~~");
    if kind == StatementKind::Table {
        while first > 1 && !line(first - 1).is_empty() && last - first < MAX_LINES as u32 {
            first -= 1;
        }
    }
    if kind == StatementKind::Listing && first > 1 && is_fence(first - 1) {
        first -= 1;
    }
    let opened = (first..=last).filter(|number| is_fence(*number)).count() % 2 == 1;
    if opened && is_fence(last + 1) {
        last += 1;
    }
    first..=last
}

/// Lines without the indentation that they share.
fn dedented(lines: &[String]) -> String {
    let indent = |line: &String| line.len() - line.trim_start().len();
    let shared = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min();
    let cut = |line: &String| line.get(shared.unwrap_or(0)..).unwrap_or_default().to_owned();
    lines.iter().map(cut).collect::<Vec<_>>().join("\n")
}
