//! Looking citations up: whether the words that somebody cites stand where they are said to stand, by rule.
//!
//! A quote has to stand there as it is, whatever its markup, case, white space and punctuation; a number that differs is
//! another quote. What is said without a quote has to have its numbers and names there, and enough of its telling words.

#[cfg(test)]
mod any_tests;
mod beside;
mod by_page;
mod flat;
mod language;
mod library;
mod page;
mod reworded;
mod same;
mod sources;
mod statement;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::rc::Rc;

use muster_shared::flow::{PlaceFound, Standing};
use muster_shared::text::nearest_name;

use self::beside::{Borne, not_borne_out};
use self::flat::Quote;
use self::library::{AtHand, Indexed};
use self::page::{Page, plain, without_targets};
use self::reworded::reworded;
use self::statement::{CLEARLY, Match};
use self::words::Telling;
use crate::CorpusError;
use crate::index::Index;
use crate::pack::PackFolder;
use crate::readable::Readable;

/// Shortest quote that is looked for in other documents, in letters and digits.
const TELLING_QUOTE: usize = 16;
/// Shortest quote by which a line is corrected where the words stand more than once.
const TELLING_LINE: usize = 8;
/// Most questions to the index in one look-up.
const MOST_SEARCHES: usize = 200;

/// A place that somebody cites, and what they say stands there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CitedPlace {
    /// The document.
    pub path: String,
    /// The line, from 1, or the page and the like where these are cited; 0 for what is none.
    pub line: u32,
    /// The words there, as they are said to stand; may be empty.
    pub quote: String,
    /// What is said, for which the place is cited; looked for where there is no quote.
    pub statement: String,
    /// Places with the same number are cited together for one statement.
    pub group: u32,
}

/// The documents, as far as citations need them.
trait Library {
    fn page(&self, path: &str) -> Result<Option<Rc<Page>>, CorpusError>;
    fn paths(&self) -> Result<Rc<Vec<String>>, CorpusError>;
    /// Documents in which these words may stand, the likeliest first, each with a line.
    fn likely(&self, words: &str) -> Result<Vec<(String, u32)>, CorpusError>;
}

/// Looks places up in the documents of an index, in their order. `shows`: with the lines where they stand.
pub(super) fn look_up_in(
    index: &Index,
    readable: &Readable,
    packs: &PackFolder,
    asked: &[CitedPlace],
    shows: bool,
) -> Result<Vec<PlaceFound>, CorpusError> {
    look_up(&Indexed::new(index, packs, readable), asked, shows)
}

/// Looks places up in documents that are at hand, by path.
///
/// # Errors
/// None of now: what is at hand can be read.
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
    let mut found = Vec::with_capacity(asked.len());
    let mut searches = MOST_SEARCHES;
    let by_line =
        asked.iter().map(|place| by_page::in_lines(library, place)).collect::<Result<Vec<_>, _>>()?;
    for (place, cited) in by_line.iter().zip(asked) {
        let others =
            by_line.iter().zip(asked).filter(|(_, other)| other.group == cited.group && *other != cited);
        let others: Vec<&CitedPlace> = others.map(|(other, _)| other).collect();
        found.push(match page_of(library, &place.path)? {
            Ok((page, meant)) => {
                let found =
                    look_up_one(library, &page, meant.as_deref(), place, &others, shows, &mut searches)?;
                by_page::told(library, &page, cited.line, found)?
            }
            Err(nearest) => PlaceFound::NoFile { nearest },
        });
    }
    Ok(found)
}

/// The document of a path, with its whole path where another one was written; else the nearest name.
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

fn look_up_one(
    library: &impl Library,
    page: &Page,
    meant: Option<&str>,
    place: &CitedPlace,
    others: &[&CitedPlace],
    shows: bool,
    searches: &mut usize,
) -> Result<PlaceFound, CorpusError> {
    let quotes = quotes(page, &place.quote);
    let looked = match quotes.first() {
        Some(quote) => by_quote(page, place, &quotes, quote.len()),
        None => by_statement(library, page, place, others, searches)?,
    };
    if let Some((first, last)) = looked.lines().filter(|_| !place.statement.is_empty()) {
        let quote = if quotes.is_empty() { "" } else { place.quote.as_str() };
        let is_whole = place.statement.trim().contains('\n');
        let own = Borne { page, first, last, quote, is_whole };
        let lacks = said_beside(library, own, place, others)?;
        if !lacks.is_empty() {
            return Ok(PlaceFound::Otherwise { there: page.shown(first, last), lacks });
        }
    }
    let stands = |first: u32, last: u32, line: Option<u32>, quote: Option<String>| {
        let text = if shows { page.shown(first, last) } else { String::new() };
        PlaceFound::Stands(Standing { path: meant.map(str::to_owned), line, quote, text })
    };
    Ok(match looked {
        Looked::Here(first, last) => stands(first, last, None, None),
        Looked::At(line, last) => stands(line, last, Some(line), None),
        Looked::Reworded(first, last) => {
            let line = (first != place.line).then_some(first);
            stands(first, last, line, Some(page.shown(first, last)))
        }
        Looked::Not => {
            let elsewhere = elsewhere(library, &page.path, place, &quotes, searches)?;
            let is_line = (1..=page.len()).contains(&place.line);
            match elsewhere {
                Some((path, line)) => PlaceFound::Elsewhere { path, line },
                None if is_line => {
                    PlaceFound::Otherwise { there: page.shown(place.line, place.line + 1), lacks: Vec::new() }
                }
                None => PlaceFound::NoLine { lines: page.len() },
            }
        }
    })
}

/// What a look into one document gave.
enum Looked {
    /// It stands there, on these lines.
    Here(u32, u32),
    /// It stands on these lines instead.
    At(u32, u32),
    /// Nearly the words stand there, on these lines.
    Reworded(u32, u32),
    Not,
}

impl Looked {
    /// Where it stands, if it does.
    const fn lines(&self) -> Option<(u32, u32)> {
        match self {
            Self::Here(first, last) | Self::At(first, last) | Self::Reworded(first, last) => {
                Some((*first, *last))
            }
            Self::Not => None,
        }
    }
}

/// What is said of a place that stands, and is borne out neither by it nor by those that are cited with it.
fn said_beside(
    library: &impl Library,
    own: Borne<'_>,
    place: &CitedPlace,
    others: &[&CitedPlace],
) -> Result<Vec<String>, CorpusError> {
    let mut pages: Vec<(Rc<Page>, &CitedPlace)> = Vec::new();
    for other in others {
        if let Some(page) = library.page(&other.path)? {
            pages.push((page, *other));
        }
    }
    let is_whole = own.is_whole;
    let mut places = vec![own];
    for (page, other) in &pages {
        let spans = page.places(&quotes(page, &other.quote));
        let near = spans.into_iter().min_by_key(|span| span.first.abs_diff(other.line));
        let (first, last) = near.map_or((other.line, other.line), |span| (span.first, span.last));
        // Words that do not stand there bear nothing out.
        let quote = if near.is_some() { other.quote.as_str() } else { "" };
        if (1..=page.len()).contains(&first) {
            places.push(Borne { page, first, last, quote, is_whole });
        }
    }
    Ok(not_borne_out(&place.statement, &places))
}

/// The quote in each form in which it may stand.
fn quotes(page: &Page, quote: &str) -> Vec<Quote> {
    let unnumbered = without_line_numbers(quote);
    let texts = [quote.to_owned(), unnumbered.clone(), plain(&page.path, &without_targets(&unnumbered))];
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

/// Tools show lines with their numbers, and some are quoted with them.
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

fn by_quote(page: &Page, place: &CitedPlace, quotes: &[Quote], length: usize) -> Looked {
    let mut places = page.places(quotes);
    if let Some(here) = places.iter().find(|span| (span.first..=span.last).contains(&place.line)) {
        return Looked::Here(here.first, here.last);
    }
    places.sort_by_key(|span| (span.first.abs_diff(place.line), span.first));
    match places.as_slice() {
        [only] => return Looked::At(only.first, only.last),
        [nearest, ..] if length >= TELLING_LINE => return Looked::At(nearest.first, nearest.last),
        [] | [_, ..] => {}
    }
    if !(1..=page.len()).contains(&place.line) {
        return Looked::Not;
    }
    match reworded(page, place.line, &place.quote) {
        Some((first, last)) => Looked::Reworded(first, last),
        None => Looked::Not,
    }
}

fn by_statement(
    library: &impl Library,
    page: &Page,
    place: &CitedPlace,
    others: &[&CitedPlace],
    searches: &mut usize,
) -> Result<Looked, CorpusError> {
    let telling = Telling::of(&place.statement);
    let is_line = (1..=page.len()).contains(&place.line);
    if telling.is_empty() {
        let (first, last) = page.around(place.line);
        return Ok(if is_line { Looked::Here(first, last) } else { Looked::Not });
    }
    let matched = Match::new(page, &telling);
    let best = matched.best(place.line);
    if is_line {
        let mut fit = matched.at(place.line);
        for other in others {
            if fit.missing.is_empty() {
                break;
            }
            if let Some(there) = library.page(&other.path)? {
                let missing = Match::new(&there, &telling).at(other.line).missing;
                fit.missing.retain(|number| missing.contains(number));
            }
        }
        let is_poor = others.is_empty() && matched.is_poor(&fit);
        let better = is_poor
            && (best.is_some_and(|(at, share)| at.abs_diff(place.line) > 10 && share >= CLEARLY)
                || best.is_none() && stands_elsewhere(library, &page.path, &place.statement, searches)?);
        let foreign = || page.language().zip(language::of(words::chunks(&place.statement)));
        let has_words = fit.has_words(!others.is_empty())
            || fit.has_names && foreign().is_some_and(|(one, other)| one != other);
        if fit.missing.is_empty() && has_words && !better {
            let (first, last) = page.around(place.line);
            let is_beside = |(at, share): &(u32, f64)| {
                let own = matched.of_sentence(place.line);
                !(first..=last).contains(at) && *share >= CLEARLY && own * 2.0 < *share
            };
            // Near what is meant is not there: whoever looks is to find it.
            return Ok(match best.filter(|best| others.is_empty() && is_beside(best)) {
                Some((at, _)) => Looked::At(page.around(at).0, page.around(at).1),
                None => Looked::Here(first, last),
            });
        }
    }
    Ok(best.map_or(Looked::Not, |(at, _)| Looked::At(page.around(at).0, page.around(at).1)))
}

/// Whether a statement stands clearly in another document.
fn stands_elsewhere(
    library: &impl Library,
    but: &str,
    statement: &str,
    searches: &mut usize,
) -> Result<bool, CorpusError> {
    if *searches == 0 {
        return Ok(false);
    }
    *searches -= 1;
    let telling = Telling::of(statement);
    for (path, line) in library.likely(statement)?.into_iter().filter(|(path, _)| path != but) {
        let Some(page) = library.page(&path)? else { continue };
        if Match::new(&page, &telling).best(line).is_some_and(|(_, share)| share >= CLEARLY) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Another document in which the words stand.
fn elsewhere(
    library: &impl Library,
    but: &str,
    place: &CitedPlace,
    quotes: &[Quote],
    searches: &mut usize,
) -> Result<Option<(String, u32)>, CorpusError> {
    let is_telling = quotes.first().is_none_or(|quote| quote.len() >= TELLING_QUOTE);
    if *searches == 0 || !is_telling {
        return Ok(None);
    }
    *searches -= 1;
    let words = if quotes.is_empty() { &place.statement } else { &place.quote };
    for (path, line) in library.likely(words)?.into_iter().filter(|(path, _)| path != but) {
        let Some(page) = library.page(&path)? else { continue };
        let at = if quotes.is_empty() {
            let telling = Telling::of(&place.statement);
            Match::new(&page, &telling).best(line).map(|(at, _)| page.around(at).0)
        } else {
            page.places(quotes).first().map(|span| span.first)
        };
        if let Some(at) = at {
            return Ok(Some((path, at)));
        }
    }
    Ok(None)
}

enum Resolved {
    /// There is one that is certainly meant.
    As(String),
    /// There is none; the nearest name, which may be empty.
    Near(String),
}

/// The document that a path means that is none: in other case, or with less or more of its folders.
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
