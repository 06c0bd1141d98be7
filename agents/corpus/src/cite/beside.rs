//! What is said beside a quote that stands: its numbers have to stand in the quote, near it or in its section, or to follow
//! from what stands there; and it must not say the same sentence with a denial more or less, or of another name.
//!
//! Cautious: whatever may be a count, a sum, a rounded number or a name of a place is let pass.

use muster_shared::text::numerals;

use super::page::Page;
use super::same::{self, Differs};
use super::sources::{Sources, spelt_out};
use super::words::{chunks, is_name};
use crate::figures::{Known, is_marker, joined};

/// Rows before and after one whose numbers may be meant.
const ROWS_NEAR: u32 = 4;
/// Lines in which a list or a table ends that is said as a whole.
const MOST_OF_WHOLE: u32 = 60;
/// Most numbers and names that are told.
const MOST_TOLD: usize = 4;
/// Longest text that is said of a place, in bytes; what is longer is no statement.
const LONGEST: usize = 4_000;

/// Words before a number that names a place in a document.
const NAMING: [&str; 17] = [
    "line",
    "page",
    "p",
    "pp",
    "l",
    "article",
    "clause",
    "appendix",
    "para",
    "paragraph",
    "row",
    "column",
    "entry",
    "point",
    "issue",
    "rfc",
    "note",
];

/// Lines of a document that are cited, and stand.
pub(super) struct Borne<'a> {
    pub(super) page: &'a Page,
    pub(super) first: u32,
    pub(super) last: u32,
    /// The words that are quoted from there.
    pub(super) quote: &'a str,
    /// Whether more is said than one statement: a list or a table as a whole, which may go on under other headings.
    pub(super) is_whole: bool,
}

impl Borne<'_> {
    /// The sentences or entries that the lines belong to.
    pub(super) fn sentences(&self) -> (u32, u32) {
        (self.page.around(self.first).0, self.page.around(self.last).1)
    }

    pub(super) fn text_of(&self, (first, last): (u32, u32)) -> String {
        (first..=last).map(|line| self.page.line(line)).collect::<Vec<_>>().join("\n")
    }

    /// The lines of the section, those of other rows only where they are near.
    pub(super) fn section(&self) -> impl Iterator<Item = u32> {
        let (page, (from, to)) = (self.page, self.page.section_of(self.first, self.last));
        let (rows, most) = if self.is_whole { (MOST_OF_WHOLE, MOST_OF_WHOLE) } else { (ROWS_NEAR, 0) };
        let to = to.max(self.last.saturating_add(most).min(page.len()));
        let near = self.first.saturating_sub(rows)..=self.last.saturating_add(rows);
        (from..=to).filter(move |line| near.contains(line) || !page.is_row(*line))
    }

    /// The section of the lines, with the title of the document, the heading, and the header of a table.
    fn known(&self) -> String {
        let page = self.page;
        let above = [1, page.heading_of(self.first), page.header_of(self.first)];
        let above: Vec<&str> = above.into_iter().map(|line| page.line(line)).collect();
        let section: Vec<&str> = self.section().map(|line| page.line(line)).collect();
        format!("{}\n{}\n{}\n{}", page.path, above.join("\n"), self.quote, section.join("\n"))
    }
}

/// What a statement says that is not borne out by the places that are cited for it: its numbers, a name, a denial. The first
/// place is the one whose quote is asked about; the others are cited with it.
pub(super) fn not_borne_out(statement: &str, places: &[Borne<'_>]) -> Vec<String> {
    let Some(own) = places.first().filter(|_| statement.len() <= LONGEST) else { return Vec::new() };
    // Without a quote, its numbers and names were looked for where it is said to stand.
    let has_quote = !own.quote.is_empty();
    let mut found = if has_quote { numbers(statement, places) } else { Vec::new() };
    let sentences = own.text_of(own.sentences());
    let is_anywhere = |name: &str| places.iter().any(|place| place.page.has_word(name));
    // What the section says elsewhere, in the same words, is no slip.
    let differs =
        same::differs(statement, &sentences).filter(|_| same::differs(statement, &own.known()).is_some());
    match differs {
        Some(Differs::Denial { said }) => found.push(said),
        Some(Differs::Number { said }) if found.iter().all(|told| !told.contains(&said)) => found.push(said),
        Some(Differs::Name { said }) if !is_anywhere(&said) => found.push(said),
        Some(Differs::Name { .. } | Differs::Number { .. }) | None => {}
    }
    if let [only] = places
        && has_quote
    {
        found.extend(misspelt(statement, only));
    }
    found.truncate(MOST_TOLD);
    found
}

/// Names of a program that stand nowhere in the document, and are nearly one of the cited sentence.
fn misspelt(statement: &str, place: &Borne<'_>) -> Vec<String> {
    let sentences = place.text_of(place.sentences());
    let there: Vec<&str> = chunks(&sentences).filter(|chunk| is_name(chunk)).collect();
    let is_other = |name: &&str| {
        is_name(name)
            && !name.chars().any(|c| c.is_ascii_digit())
            && !place.page.has_word(name)
            && muster_shared::text::nearest_name(name, there.iter().copied()).is_some()
    };
    chunks(statement).filter(is_other).map(|name| format!("`{name}`")).collect()
}

/// The numbers of a statement that neither stand there nor follow from what does.
fn numbers(statement: &str, places: &[Borne<'_>]) -> Vec<String> {
    let said = readable(statement);
    let sections: Vec<String> = places.iter().map(|place| readable(&place.known())).collect();
    let mut texts: Vec<String> = sections.iter().map(|text| spelt_out(text)).collect();
    texts.extend(sections);
    let (known, figures) = (Known::of(&texts).with_exact_decimals(), Known::in_figures(&texts));
    let sources = Sources { places, texts: &texts, known: &known };
    let mut missing: Vec<String> = Vec::new();
    for number in joined(&said, numerals(&said), &known) {
        let is_told = is_marker(&said, &number) || names_a_place(&said, number.at.start);
        let value = number.value().map(f64::abs);
        let in_pairs = || value.is_some_and(|value| sources.follows(&said, value, number.decimals()));
        let is_there = || known.has(&said, &number) || sources.has_digits(&number.digits) || in_pairs();
        let is_time_of_day = ["am", "pm"].contains(&number.suffix.as_str());
        let is_let_pass = is_told || is_time_of_day || is_of_address(&said, number.at.start);
        if is_let_pass || is_there() && !figures.is_in_another_unit(&said, &number) {
            continue;
        }
        let after: String = said[number.at.end..].chars().take_while(|c| !" ,;.)".contains(*c)).collect();
        let percent = if said[number.at.end..].starts_with(" %") { " %" } else { "" };
        missing.push(format!("{}{after}{percent}", &statement[number.at.clone()]));
    }
    missing.extend(sources.missing_words(&said));
    missing.extend(missing_dates(statement, &sources.texts.join("\n")));
    missing.dedup();
    missing
}

/// Days that a statement names as `2031-04-11`, where the documents have others in that form.
fn missing_dates(statement: &str, known: &str) -> Vec<String> {
    let known = dates(known);
    let missing = dates(statement).into_iter().filter(|date| !known.is_empty() && !known.contains(date));
    missing.map(str::to_owned).collect()
}

fn dates(text: &str) -> Vec<&str> {
    let is_date = |at: usize| {
        let date = text.get(at..at + 10)?;
        let digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
        let fits = date.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        (fits && !digit(at + 10) && !at.checked_sub(1).is_some_and(digit)).then_some(date)
    };
    (0..text.len()).filter_map(is_date).collect()
}

/// A text of the same length in which numbers are told from letters before them: `v1.2` and `2024-05-17T10:02`.
pub(super) fn readable(text: &str) -> String {
    let mut bytes: Vec<u8> = text.bytes().collect();
    let is_digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_digit);
    for at in 0..bytes.len() {
        let (before, after) = (at.checked_sub(1).and_then(|at| bytes.get(at)), bytes.get(at + 1));
        let is_version = matches!(bytes[at], b'v' | b'V')
            && !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let is_time = bytes[at] == b'T' && is_digit(before);
        if (is_version || is_time) && is_digit(after) {
            bytes[at] = b' ';
        }
    }
    // Only letters of ASCII were replaced, by spaces.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Whether a number is said of a place in a document: "line 12".
fn names_a_place(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '.', '§', '-', '–']);
    let word = before.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    text[..at].trim_end().ends_with('§') || NAMING.contains(&word.trim_end_matches('s'))
}

/// Whether a number is part of an address or a path.
fn is_of_address(text: &str, at: usize) -> bool {
    let from = text[..at].rfind(char::is_whitespace).map_or(0, |space| space + 1);
    let word = text[from..].split(char::is_whitespace).next().unwrap_or_default();
    word.contains("://") || word.contains('@') || word.contains('/') && word.contains(char::is_alphabetic)
}
