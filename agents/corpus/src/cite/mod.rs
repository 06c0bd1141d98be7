//! Citations: whether the cited lines exist, contain the quote, and state the same values as the statement.
//!
//! Rules check typed facts only: paths, lines, quotes, and values. The prose of a statement proves nothing.

#[cfg(test)]
mod any_tests;
mod flat;
mod library;
mod page;
mod quotation;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use muster_shared::facts::{CitedText, contradictions};
use muster_shared::flow::{ContradictedValue, PlaceFound, Standing};
use muster_shared::text::nearest_name;

use self::flat::Quote;
use self::library::{AtHand, Indexed};
use self::page::{Lines, Page};
pub use self::quotation::{last_quote, longest_quote};
use crate::CorpusError;
use crate::index::Index;
use crate::pack::PackFolder;
use crate::readable::Readable;

/// Shortest quote that moves a citation if the document contains it several times, in letters and digits.
const DISTINCT_QUOTE: usize = 8;
/// Longest statement whose values are compared, in bytes.
const MAX_STATEMENT: usize = 4_000;

/// A place in a document that a statement cites.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CitedPlace {
    /// Path of the document.
    pub path: String,
    /// The first line, from 1; in paged documents the page, slide or cell. 0: not a line.
    pub line: u32,
    /// The last line. A value below `line` means one line.
    pub last: u32,
    /// The quote of the lines; may be empty.
    pub quote: String,
    /// The statement that cites the place; may be empty.
    pub statement: String,
    /// Places with the same number are cited together for one statement.
    pub group: u32,
}

/// The documents, as far as citations need them.
trait Library {
    fn page(&self, path: &str) -> Result<Option<Rc<Page>>, CorpusError>;
    fn paths(&self) -> Result<Rc<Vec<String>>, CorpusError>;
}

/// Looks places up in the documents of an index, in their order. `shows`: with the lines and their neighbors.
pub(super) fn look_up_in(
    index: &Index,
    readable: &Readable,
    packs: &PackFolder,
    asked: &[CitedPlace],
    shows: bool,
) -> Result<Vec<PlaceFound>, CorpusError> {
    look_up(&Indexed::new(index, packs, readable), asked, shows)
}

/// Looks places up in documents in memory, by path.
///
/// # Errors
/// None at present: documents in memory are readable.
pub fn look_up_among(
    documents: &BTreeMap<String, String>,
    asked: &[CitedPlace],
) -> Result<Vec<PlaceFound>, CorpusError> {
    look_up(&AtHand::new(documents), asked, false)
}

fn look_up(
    library: &impl Library,
    asked: &[CitedPlace],
    shows: bool,
) -> Result<Vec<PlaceFound>, CorpusError> {
    let located = asked.iter().map(|place| locate(library, place)).collect::<Result<Vec<_>, _>>()?;
    let mut compared: HashMap<(u32, &str), Vec<ContradictedValue>> = HashMap::new();
    let mut found = Vec::with_capacity(asked.len());
    for (place, one) in asked.iter().zip(&located) {
        let cited = match one {
            Located::Lines(cited) => cited,
            Located::Missing(missing) => {
                found.push(missing.clone());
                continue;
            }
        };
        let together = || {
            let pairs = asked.iter().zip(&located).filter(|(other, _)| other.group == place.group);
            pairs.filter_map(|(_, one)| if let Located::Lines(cited) = one { Some(cited) } else { None })
        };
        let page = &cited.page;
        if cited.quote == QuoteFound::Nowhere && !is_quoted_together(place, asked, &located) {
            found.push(PlaceFound::NoQuote { there: page.shown(cited.lines) });
            continue;
        }
        let values = compared
            .entry((place.group, place.statement.as_str()))
            .or_insert_with(|| contradicted(&place.statement, &together().collect::<Vec<_>>()));
        found.push(if values.is_empty() {
            let number = page.number_of(cited.lines.first);
            let line = (cited.is_moved && number != place.line).then_some(number);
            let text = if shows { page.shown_with_neighbors(cited.lines) } else { String::new() };
            PlaceFound::Stands(Standing { path: cited.path.clone(), line, text })
        } else {
            PlaceFound::Contradicted { values: values.clone(), there: page.shown(cited.lines) }
        });
    }
    Ok(found)
}

/// Whether another place of the same statement contains the same quote.
fn is_quoted_together(place: &CitedPlace, asked: &[CitedPlace], located: &[Located]) -> bool {
    let mut others = asked.iter().zip(located);
    others.any(|(other, one)| {
        other.group == place.group
            && other.quote == place.quote
            && matches!(one, Located::Lines(Cited { quote: QuoteFound::There, .. }))
    })
}

/// Result of a look into one document.
enum Located {
    Lines(Cited),
    /// The file or the line does not exist.
    Missing(PlaceFound),
}

/// Lines that a place cites.
struct Cited {
    page: Rc<Page>,
    /// The whole path, if another one was written.
    path: Option<String>,
    lines: Lines,
    /// Whether the lines are those of the quote rather than the cited ones.
    is_moved: bool,
    quote: QuoteFound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteFound {
    /// The quote is empty, or too short to select one of several places.
    Unknown,
    There,
    Nowhere,
}

fn locate(library: &impl Library, place: &CitedPlace) -> Result<Located, CorpusError> {
    let (page, path) = match page_of(library, &place.path)? {
        Ok(found) => found,
        Err(nearest) => return Ok(Located::Missing(PlaceFound::NoFile { nearest })),
    };
    let cited = page.lines_of(place.line, place.last);
    let quotes = quotes(&place.quote);
    let mut spans = page.places(&quotes);
    let at = |lines, is_moved, quote| {
        Located::Lines(Cited { page: Rc::clone(&page), path: path.clone(), lines, is_moved, quote })
    };
    if let Some(lines) = cited.filter(|lines| spans.iter().any(|span| span.overlaps(*lines))) {
        return Ok(at(lines, false, QuoteFound::There));
    }
    let near = cited.map_or(place.line, |lines| lines.first);
    spans.sort_by_key(|span| (span.first.abs_diff(near), span.first));
    let is_distinct = spans.len() == 1 || quotes.first().is_some_and(|quote| quote.len() >= DISTINCT_QUOTE);
    Ok(match (spans.first(), cited) {
        (Some(span), _) if is_distinct => at(*span, true, QuoteFound::There),
        (None, Some(lines)) if !quotes.is_empty() => at(lines, false, QuoteFound::Nowhere),
        (_, Some(lines)) => at(lines, false, QuoteFound::Unknown),
        (_, None) => Located::Missing(PlaceFound::NoLine { lines: page.count() }),
    })
}

/// Values of a statement that all lines that it cites together contradict. Neighboring lines can only clear a value.
fn contradicted(statement: &str, together: &[&Cited]) -> Vec<ContradictedValue> {
    if statement.is_empty() || statement.len() > MAX_STATEMENT {
        return Vec::new();
    }
    // The header describes the other rows, which are compared.
    let rows: Vec<&Cited> =
        together.iter().copied().filter(|cited| !cited.page.is_header(cited.lines)).collect();
    let together = if rows.is_empty() { together } else { rows.as_slice() };
    let values = |text: &dyn Fn(&Cited) -> String| {
        let texts: Vec<String> = together.iter().map(|cited| text(cited)).collect();
        let cited = together.iter().zip(&texts);
        let cited = cited.map(|(Cited { page, lines, .. }, text)| CitedText {
            text,
            header: page.header_of(lines.first),
            path: &page.path,
        });
        contradictions(statement, &cited.collect::<Vec<_>>())
    };
    let mut found = values(&|cited: &Cited| cited.page.text(cited.lines));
    if !found.is_empty() {
        // A passage of several lines is cited by its first line. Headings, fences and separators may be left out of it.
        let more = match statement.trim().lines().count() {
            0 | 1 => 0,
            lines => u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1),
        };
        let around = values(&|cited: &Cited| cited.page.text_around(cited.lines, more));
        found.retain(|value| around.iter().any(|other| other.stated == value.stated));
    }
    found.into_iter().map(|value| ContradictedValue { stated: value.stated, there: value.there }).collect()
}

/// The document of a path, with its whole path if another one was written; else the nearest name.
type Found = Result<(Rc<Page>, Option<String>), String>;

fn page_of(library: &impl Library, path: &str) -> Result<Found, CorpusError> {
    if let Some(page) = library.page(path)? {
        return Ok(Ok((page, None)));
    }
    Ok(match resolved(library, path)? {
        Resolved::As(path) => library.page(&path)?.map(|page| (page, Some(path.clone()))).ok_or(path),
        Resolved::Near(nearest) => Err(nearest),
    })
}

/// The quote in each form in which a document may contain it.
fn quotes(quote: &str) -> Vec<Quote> {
    let unnumbered = without_line_numbers(quote);
    let texts = [quote.to_owned(), unnumbered.clone(), page::without_markup(&unnumbered)];
    let whole = texts.iter().filter_map(|text| Quote::whole(text));
    let parts = texts.iter().filter_map(|text| Quote::shortened(text));
    let mut forms: Vec<Quote> = Vec::new();
    for form in whole.chain(parts) {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Tools show lines with their numbers, and some quotes contain them.
fn without_line_numbers(quote: &str) -> String {
    let line = |line: &str| {
        let text = line.trim_start();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        match text[digits..].strip_prefix('|') {
            Some(rest) if digits > 0 => rest.to_owned(),
            Some(_) | None => line.to_owned(),
        }
    };
    quote.lines().map(line).collect::<Vec<_>>().join("\n")
}

enum Resolved {
    /// The only document that the path can mean.
    As(String),
    /// None; the nearest name, which may be empty.
    Near(String),
}

/// The document of a path in other case, or with fewer or more of its directories.
fn resolved(library: &impl Library, path: &str) -> Result<Resolved, CorpusError> {
    let paths = library.paths()?;
    let wanted = path.trim_start_matches("./").trim_start_matches('/').to_lowercase();
    let is_end_of = |whole: &str, end: &str| {
        whole == end
            || whole.strip_suffix(end).is_some_and(|before| before.ends_with(['/', ' ']) && !end.is_empty())
    };
    let mut meant = paths.iter().filter(|known| {
        let known = known.to_lowercase();
        is_end_of(&known, &wanted) || is_end_of(&wanted, &known)
    });
    Ok(match (meant.next(), meant.next()) {
        (Some(only), None) => Resolved::As(only.clone()),
        _ => Resolved::Near(
            nearest_name(path, paths.iter().map(String::as_str)).unwrap_or_default().to_owned(),
        ),
    })
}
