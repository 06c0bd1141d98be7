//! One document, made ready to be looked up in.

use std::collections::HashMap;

use muster_shared::text::{normalise_space, numerals, within_bytes};

use super::flat::{Flat, Quote, Span};
use super::language;
use super::words::{chunks, is_name, number_of, stem, words_of};
use crate::{html, kind::DocumentKind};

/// Lines before and after one of running text that belong to the same sentence.
const REACH: u32 = 2;
/// Longest text of some lines that is shown, in bytes.
const SHOWN: usize = 400;

/// A document with what is looked for in it, by line.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) path: String,
    lines: Vec<String>,
    kinds: Vec<Kind>,
    /// The nearest heading at or above each line; 0 for none.
    headings: Vec<u32>,
    /// The words as they stand, and without tags and targets of links.
    flats: Vec<Flat>,
    words: HashMap<String, Vec<u32>>,
    names: HashMap<String, Vec<u32>>,
    numbers: HashMap<String, Vec<u32>>,
}

/// What a line is, as far as it says which others belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Heading,
    /// A row of a table, of a log: by itself.
    Row,
    Item,
    Running,
}

impl Page {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let plain = plain(path, text);
        let lines: Vec<String> = plain.lines().map(str::to_owned).collect();
        let rows = is_of_rows(path);
        let kinds: Vec<Kind> = lines.iter().map(|line| Kind::of(line, rows)).collect();
        let mut page = Self {
            path: path.to_owned(),
            headings: headings(&kinds),
            flats: vec![Flat::of(text.lines()), Flat::of(lines.iter().map(String::as_str))],
            words: HashMap::new(),
            names: HashMap::new(),
            numbers: HashMap::new(),
            kinds,
            lines,
        };
        page.index();
        page
    }

    fn index(&mut self) {
        for (number, line) in (1u32..).zip(&self.lines) {
            for chunk in chunks(line) {
                if is_name(chunk) {
                    note(&mut self.names, chunk.replace('_', "").to_lowercase(), number);
                }
                for word in words_of(chunk) {
                    if let Some(digits) = number_of(&word) {
                        note(&mut self.numbers, digits.to_owned(), number);
                    }
                    note(&mut self.words, stem(&word), number);
                }
            }
            for numeral in numerals(line) {
                if let Some(positive) = numeral.digits.strip_prefix('-') {
                    note(&mut self.numbers, positive.to_owned(), number);
                }
                note(&mut self.numbers, numeral.digits, number);
            }
            for joined in spaced_thousands(line) {
                note(&mut self.numbers, joined, number);
            }
        }
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn line(&self, number: u32) -> &str {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        at.and_then(|at| self.lines.get(at)).map_or("", String::as_str)
    }

    fn kind(&self, number: u32) -> Kind {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        at.and_then(|at| self.kinds.get(at)).copied().unwrap_or(Kind::Blank)
    }

    /// The heading that a line stands under; 0 for none.
    pub(super) fn heading_of(&self, number: u32) -> u32 {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        at.and_then(|at| self.headings.get(at)).copied().unwrap_or(0)
    }

    /// The language it is written in, as far as that can be told.
    pub(super) fn language(&self) -> Option<&'static str> {
        language::of(self.lines.iter().flat_map(|line| chunks(line)))
    }

    /// The lines that have this word, name or number.
    pub(super) fn with_word(&self, word: &str) -> &[u32] {
        self.words.get(word).map_or(&[], Vec::as_slice)
    }

    pub(super) fn with_name(&self, name: &str) -> &[u32] {
        self.names.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn with_number(&self, number: &str) -> &[u32] {
        self.numbers.get(number).map_or(&[], Vec::as_slice)
    }

    /// The lines that belong to the same sentence or entry as this one, first and last.
    pub(super) fn around(&self, line: u32) -> (u32, u32) {
        let goes_on = |kind: Kind| kind == Kind::Running;
        match self.kind(line) {
            Kind::Blank | Kind::Heading | Kind::Row => (line, line),
            Kind::Item => {
                let after = (line + 1..=line + REACH).take_while(|next| goes_on(self.kind(*next)));
                (line, after.last().unwrap_or(line))
            }
            Kind::Running => {
                let mut first = line;
                while line - first < REACH && first > 1 && goes_on(self.kind(first - 1)) {
                    first -= 1;
                }
                if line - first < REACH && first > 1 && self.kind(first - 1) == Kind::Item {
                    first -= 1;
                }
                let after = (line + 1..=line + REACH).take_while(|next| goes_on(self.kind(*next)));
                (first, after.last().unwrap_or(line))
            }
        }
    }

    /// Where a quote stands, in order.
    pub(super) fn places(&self, quotes: &[Quote]) -> Vec<Span> {
        let found = quotes.iter().flat_map(|quote| self.flats.iter().map(|flat| flat.places(quote)));
        found.into_iter().find(|places| !places.is_empty()).unwrap_or_default()
    }

    /// What stands on these lines, in short.
    pub(super) fn shown(&self, first: u32, last: u32) -> String {
        let text: Vec<&str> = (first..=last).map(|number| self.line(number).trim()).collect();
        within_bytes(&normalise_space(&text.join(" ")), SHOWN)
    }
}

fn note(index: &mut HashMap<String, Vec<u32>>, key: String, line: u32) {
    let lines = index.entry(key).or_default();
    if lines.last() != Some(&line) {
        lines.push(line);
    }
}

impl Kind {
    fn of(line: &str, rows: bool) -> Self {
        let text = line.trim_start();
        let is_item = || {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            text.starts_with(['-', '*', '+', '•'])
                || digits > 0 && (text[digits..].starts_with(". ") || text[digits..].starts_with(") "))
        };
        if text.trim_end().is_empty() {
            Self::Blank
        } else if text.starts_with('#') && text.trim_start_matches('#').starts_with(' ') {
            Self::Heading
        } else if rows || text.starts_with('|') {
            Self::Row
        } else if is_item() {
            Self::Item
        } else {
            Self::Running
        }
    }
}

fn headings(kinds: &[Kind]) -> Vec<u32> {
    let mut nearest = 0;
    let numbered = (1u32..).zip(kinds);
    numbered
        .map(|(number, kind)| {
            if *kind == Kind::Heading {
                nearest = number;
            }
            nearest
        })
        .collect()
}

/// Whether every line of a document stands for itself.
fn is_of_rows(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|known| ["csv", "tsv", "log", "jsonl", "ndjson"].contains(&known.as_str()))
}

/// The text without tags and targets of links, line by line.
pub(super) fn plain(path: &str, text: &str) -> String {
    match DocumentKind::of(path) {
        DocumentKind::Html => html::to_text(text),
        DocumentKind::Markdown | DocumentKind::Prose => html::to_text(&without_targets(text)),
        DocumentKind::Lines => text.to_owned(),
    }
}

/// `[the text](target)` as its text.
pub(super) fn without_targets(text: &str) -> String {
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

/// Numbers whose thousands are parted by plain spaces: `2 009`.
fn spaced_thousands(line: &str) -> Vec<String> {
    let digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let words: Vec<&str> =
        line.split(' ').map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).collect();
    let mut found = Vec::new();
    for at in 0..words.len() {
        let mut joined = words[at].to_owned();
        if !digits(&joined) || joined.len() > 3 {
            continue;
        }
        for next in words[at + 1..].iter().take_while(|next| digits(next) && next.len() == 3) {
            joined.push_str(next);
            found.push(joined.clone());
        }
    }
    found
}
