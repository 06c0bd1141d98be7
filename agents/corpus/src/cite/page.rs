//! One document, made ready to be looked up in.

use std::collections::HashMap;

use muster_shared::text::{normalise_space, numerals, within_bytes};

use super::flat::{Flat, Quote, Span};
use super::language;
use super::words::{chunks, is_name, number_of, stem, words_of};
use crate::html;
use crate::kind::{DocumentKind, is_sheet};
use crate::unit::{Cuts, Unit};

/// Lines before and after one of running text that belong to the same sentence.
const REACH: u32 = 2;
/// Longest text of some lines that is shown, in bytes.
const SHOWN: usize = 400;

/// Most lines before and after one that are of its section.
const MOST_OF_SECTION: usize = 200;
/// The same in a document without headings.
const MOST_WITHOUT_HEADINGS: usize = 40;

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
    /// Where its pages are, if these are cited.
    cuts: Option<Cuts>,
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
    pub(super) fn new(path: &str, text: &str, unit: Unit) -> Self {
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
            cuts: unit.is_cut().then(|| Cuts::of(text)),
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
                    if let Some(value) = number_of(&word) {
                        note(&mut self.numbers, value.to_string(), number);
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
            for joined in spaced_thousands(line).into_iter().chain(in_several_words(line)) {
                note(&mut self.numbers, joined, number);
            }
        }
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// Where its pages are, if these are cited.
    pub(super) const fn cuts(&self) -> Option<&Cuts> {
        self.cuts.as_ref()
    }

    /// The number by which a line is cited: its own, or that of its page.
    pub(super) fn number_of(&self, line: u32) -> u32 {
        self.cuts.as_ref().map_or(line, |cuts| cuts.number_of(line))
    }

    /// How many lines, or pages and the like, there are.
    pub(super) fn count(&self) -> u32 {
        self.cuts.as_ref().map_or(self.len(), Cuts::count)
    }

    pub(super) fn line(&self, number: u32) -> &str {
        of_line(&self.lines, number).map_or("", String::as_str)
    }

    fn kind(&self, number: u32) -> Kind {
        of_line(&self.kinds, number).copied().unwrap_or(Kind::Blank)
    }

    /// The heading that a line stands under; 0 for none.
    pub(super) fn heading_of(&self, number: u32) -> u32 {
        of_line(&self.headings, number).copied().unwrap_or(0)
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
        // No sentence is looked for across the end of a page: it would be cited by two.
        let begins = |line: u32| self.cuts.as_ref().is_some_and(|cuts| cuts.begins(line));
        let goes_on_at = |next: &u32| goes_on(self.kind(*next)) && !begins(*next);
        match self.kind(line) {
            Kind::Blank | Kind::Heading | Kind::Row => (line, line),
            Kind::Item => {
                let after = (line + 1..=line + REACH).take_while(goes_on_at);
                (line, after.last().unwrap_or(line))
            }
            Kind::Running => {
                let mut first = line;
                while line - first < REACH && first > 1 && goes_on(self.kind(first - 1)) && !begins(first) {
                    first -= 1;
                }
                if line - first < REACH && first > 1 && self.kind(first - 1) == Kind::Item && !begins(first) {
                    first -= 1;
                }
                let after = (line + 1..=line + REACH).take_while(goes_on_at);
                (first, after.last().unwrap_or(line))
            }
        }
    }

    /// The lines under the same heading as these; of a document without headings, those near.
    pub(super) fn section_of(&self, first: u32, last: u32) -> (u32, u32) {
        let has_headings = self.headings.last().is_some_and(|last| *last > 0);
        let most = if has_headings { MOST_OF_SECTION } else { MOST_WITHOUT_HEADINGS };
        let is_same = |line: &u32| self.heading_of(*line) == self.heading_of(first);
        let above = (1..=first).rev().take_while(is_same).take(most).last();
        let below = (last..=self.len()).take_while(|line| self.heading_of(*line) == self.heading_of(last));
        (above.unwrap_or(first), below.take(most).last().unwrap_or(last))
    }

    /// Whether a line is a row of a table, of a log: one of others for other things.
    pub(super) fn is_row(&self, line: u32) -> bool {
        self.kind(line) == Kind::Row
    }

    /// The header of the table that a line is a row of, or the first line of a document of rows; 0 for none.
    pub(super) fn header_of(&self, line: u32) -> u32 {
        match self.kind(line) {
            Kind::Row if is_of_rows(&self.path) => 1,
            Kind::Row => {
                (1..=line).rev().take_while(|above| self.kind(*above) == Kind::Row).last().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// How many items or rows each list or table on these lines has, a table without its header too.
    pub(super) fn runs(&self, first: u32, last: u32) -> Vec<usize> {
        let (mut found, mut items, mut rows) = (Vec::new(), 0_usize, 0_usize);
        for line in first..=last.saturating_add(1) {
            match if line > last { Kind::Heading } else { self.kind(line) } {
                Kind::Item => items += 1,
                Kind::Row => rows += 1,
                // An item goes on below, and a list may be broken by empty lines.
                Kind::Blank | Kind::Running => {}
                Kind::Heading => {
                    found.extend([items, rows, rows.saturating_sub(1), rows.saturating_sub(2)]);
                    (items, rows) = (0, 0);
                }
            }
        }
        found
    }

    /// Whether a word stands anywhere in the document, as a name or as a word.
    pub(super) fn has_word(&self, word: &str) -> bool {
        let name = word.replace('_', "").to_lowercase();
        self.names.contains_key(&name)
            || !is_name(word) && words_of(word).all(|part| self.words.contains_key(&stem(&part)))
            || self.path.to_lowercase().contains(&word.to_lowercase())
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
    is_sheet(path)
        || extension.is_some_and(|known| ["csv", "tsv", "log", "jsonl", "ndjson"].contains(&known.as_str()))
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

/// The element of a line. Lines are numbered from 1.
fn of_line<T>(all: &[T], number: u32) -> Option<&T> {
    all.get(usize::try_from(number).ok()?.checked_sub(1)?)
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

/// Numbers of several words: "twenty-five", "three hundred".
fn in_several_words(line: &str) -> Vec<String> {
    let words: Vec<String> = chunks(line).map(str::to_lowercase).collect();
    let pair = |pair: &[String]| match (number_of(&pair[0])?, number_of(&pair[1])?) {
        (tens @ 20..=90, unit @ 1..=9) if tens % 10 == 0 => Some(tens + unit),
        (some @ 1..=999, many @ (100 | 1_000 | 1_000_000)) => Some(some * many),
        _ => None,
    };
    words.windows(2).filter_map(pair).map(|number| number.to_string()).collect()
}
