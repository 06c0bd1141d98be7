//! Places that are cited by page, slide or cell: looked up by the line of it that is meant, and told by its number again.

use muster_shared::flow::{PlaceFound, Standing};

use super::page::Page;
use super::statement::Match;
use super::words::Telling;
use super::{CitedPlace, Library, page_of, quotes};
use crate::CorpusError;

/// Most lines of one page that are compared with what is said.
const MOST_LINES: u32 = 2_000;

/// A place by the line that is meant, where it is cited by page and the like.
pub(super) fn in_lines(library: &impl Library, place: &CitedPlace) -> Result<CitedPlace, CorpusError> {
    let page = page_of(library, &place.path)?;
    let line = page.map_or(place.line, |(page, _)| line_meant(&page, place));
    Ok(CitedPlace { line, ..place.clone() })
}

/// The line of a document that a place means: its own, or of a page the one where what is said of it stands best.
fn line_meant(page: &Page, place: &CitedPlace) -> u32 {
    let Some(cuts) = page.cuts() else { return place.line };
    let Some((first, last)) = cuts.lines_of(place.line) else { return 0 };
    let last = last.min(first.saturating_add(MOST_LINES)).min(page.len());
    let spans = page.places(&quotes(page, &place.quote));
    let here = spans.iter().filter(|span| span.first <= last && span.last >= first);
    if let Some(line) = here.map(|span| span.first.max(first)).min() {
        return line;
    }
    let telling = Telling::of(if place.statement.is_empty() { &place.quote } else { &place.statement });
    let matched = Match::new(page, &telling);
    let scored = (first..=last).map(|line| {
        let fit = matched.at(line);
        (fit.missing.is_empty(), fit.has_words(false), matched.of_sentence(line), line)
    });
    // Of those that are as good, the first.
    let best = scored.max_by(|one, other| {
        (one.0, one.1).cmp(&(other.0, other.1)).then(one.2.total_cmp(&other.2)).then(other.3.cmp(&one.3))
    });
    best.map_or(first, |(_, _, _, line)| line)
}

/// What was found of a place, told by page and the like where these are cited.
pub(super) fn told(
    library: &impl Library,
    page: &Page,
    cited: u32,
    found: PlaceFound,
) -> Result<PlaceFound, CorpusError> {
    Ok(match found {
        PlaceFound::Stands(standing) if page.cuts().is_some() => {
            let line = standing.line.map(|line| page.number_of(line)).filter(|number| *number != cited);
            // Words that stand on another line of the same page stand as they were cited.
            PlaceFound::Stands(Standing { line, ..standing })
        }
        PlaceFound::Elsewhere { path, line } => {
            let line = library.page(&path)?.map_or(line, |other| other.number_of(line));
            PlaceFound::Elsewhere { path, line }
        }
        PlaceFound::NoLine { .. } => PlaceFound::NoLine { lines: page.count() },
        _ => found,
    })
}
