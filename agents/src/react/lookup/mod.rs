//! Looking up what a result or a report cites before it counts (W8): which places are asked for, and what follows from
//! what was found. The look-up itself is carried out by whoever drives the task; what it gave stands in the record, as a
//! note of the step. Pure.

mod cited;
mod follow;
mod mend;
mod notes;
mod numbers;
mod scan;
mod seen;
#[cfg(test)]
mod tests;

use muster_corpus::CitedPlace;
use muster_shared::flow::looked_up::MOST_PLACES;
use muster_shared::flow::{Check, Fault, LookedUp, Note, PlaceFound, Standing, TaskOffered, Work};
use muster_shared::text::first_line;

use super::decide::{ChosenAction, StepContext};
use super::history::History;
use crate::roles::Submission;
use cited::{Cite, Spot, Text, cites};
pub use follow::looked_up;
pub(super) use follow::of_prose;
pub(super) use mend::{as_far_as_it_stands, corrected, left_out, without_false};
use notes::noted;
pub(super) use notes::{is_looked_up, not_looked_up};
pub use notes::{note_in, note_of};
pub(super) use numbers::{marked, not_from_results};
use scan::may_be_host;
use seen::{Evidence, Seen};

/// Most false places that a model is told of at once.
const MOST_TOLD: usize = 12;
/// Longest words of a statement that stand before what is wrong with its place, in characters.
const SAID: usize = 60;

/// What is known of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    /// It stands, as far as corrections do not say otherwise.
    Stands(Standing),
    /// It was seen in this task or by those before it.
    Seen,
    /// What is said does not stand, and why.
    False { of: Of, why: String },
    /// Nobody looked, or it is no place at all.
    Unknown,
}

/// What it is that does not stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The words that are quoted, or the place itself.
    Words,
    /// What is said beside words that stand.
    Statement,
}

/// A product's places, with what is known of each.
pub(super) struct Judged {
    cites: Vec<(Cite, Word)>,
}

impl Judged {
    /// Nothing is cited, or nobody asks.
    pub(super) const fn nothing() -> Self {
        Self { cites: Vec::new() }
    }
}

/// What comes of a submission before anything else is verified.
pub(super) enum Looked {
    /// These places have to be looked up.
    ToAsk(Vec<CitedPlace>),
    /// All is known that can be.
    Known(Judged),
}

/// The places that a text cites, with what it says for each. What may be a host with its port is none.
#[must_use]
pub fn cited_in(text: &str) -> Vec<CitedPlace> {
    let places = scan::places(text).into_iter().map(|found| found.place);
    places.filter(|place| !may_be_host(&place.path)).collect()
}

/// What is known of the places that a submission cites; asks for those in documents first.
pub(super) fn look(
    history: &History,
    notes: &[Note],
    submission: &Submission,
    offer: &TaskOffered,
) -> Looked {
    let may_cite = matches!(offer.work, Work::Execute { .. } | Work::Write { .. });
    let Some(product) = submission.product.as_ref().filter(|_| may_cite) else {
        return Looked::Known(Judged { cites: Vec::new() });
    };
    let evidence = Evidence::of(history, offer);
    let cites = cites(product);
    let has_documents = offer.corpus.is_some();
    if has_documents && !cites.is_empty() && !is_looked_up(notes) {
        let asked = cites.into_iter().map(|cite| without_known_numbers(cite.place, &evidence));
        return Looked::ToAsk(asked.take(MOST_PLACES).collect());
    }
    let judged = cites.into_iter().map(|cite| {
        let asked = without_known_numbers(cite.place.clone(), &evidence);
        let word = judge(&cite, noted(notes, &asked), has_documents, &evidence);
        (cite, word)
    });
    Looked::Known(Judged { cites: judged.collect() })
}

/// Numbers that tools gave, or results that cite the same place, are not looked for there; nor those of the goal beside
/// words that are quoted.
fn without_known_numbers(mut place: CitedPlace, evidence: &Evidence<'_>) -> CitedPlace {
    let numbers = muster_shared::text::numerals(&place.statement);
    if numbers.is_empty() {
        return place;
    }
    let mut known = evidence.numbers_beside(&place.path, place.line);
    if !place.quote.is_empty() {
        known.extend(evidence.numbers_asked());
    }
    for number in numbers.into_iter().rev().filter(|number| known.contains(&number.digits)) {
        place.statement.replace_range(number.at, "");
    }
    place
}

fn judge(cite: &Cite, found: Option<&LookedUp>, has_documents: bool, evidence: &Evidence<'_>) -> Word {
    let CitedPlace { path, line, quote, .. } = &cite.place;
    let is_text = cite.text.is_some();
    let of_evidence = || match evidence.seen(path, quote) {
        Seen::Yes => Some(Word::Seen),
        Seen::Otherwise => {
            Some(Word::of_words(format!("{path} was seen, and {:?} does not stand in it", brief(quote))))
        }
        Seen::Never => None,
    };
    match found.map(|looked| (looked, &looked.found)) {
        Some((_, PlaceFound::Stands(standing))) => Word::Stands(standing.clone()),
        Some((_, PlaceFound::Otherwise { .. } | PlaceFound::Elsewhere { .. }))
            if evidence.was_seen_in(&cite.place) =>
        {
            Word::Seen
        }
        Some((_, PlaceFound::Otherwise { .. })) if is_text && evidence.is_said_by_results(&cite.place) => {
            Word::Seen
        }
        Some((looked, PlaceFound::Otherwise { lacks, .. })) if !lacks.is_empty() => {
            Word::False { of: Of::Statement, why: looked.fault().unwrap_or_default() }
        }
        Some((looked, PlaceFound::NoFile { nearest })) => of_evidence().unwrap_or_else(|| {
            if is_text && nearest.is_empty() && may_be_host(path) {
                return Word::Unknown;
            }
            Word::of_words(looked.fault().unwrap_or_default())
        }),
        Some((
            looked,
            PlaceFound::Elsewhere { .. } | PlaceFound::NoLine { .. } | PlaceFound::Otherwise { .. },
        )) => Word::of_words(looked.fault().unwrap_or_default()),
        None if has_documents => Word::Unknown,
        None if is_text && may_be_host(path) => Word::Unknown,
        None => of_evidence().unwrap_or_else(|| {
            let place = if path.contains("://") { path.clone() } else { format!("{path}:{line}") };
            Word::of_words(format!(
                "{place} is cited, and {path} was never seen in this task or in what it builds on"
            ))
        }),
    }
}

impl Word {
    const fn of_words(why: String) -> Self {
        Self::False { of: Of::Words, why }
    }
}

impl Judged {
    /// What does not stand, as far as it is told.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let mut whys: Vec<String> = Vec::new();
        for (cite, word) in &self.cites {
            let Word::False { of, why } = word else { continue };
            let CitedPlace { quote, statement, .. } = &cite.place;
            let said = brief(if quote.is_empty() || *of == Of::Statement { statement } else { quote });
            let why = if said.is_empty() { why.clone() } else { format!("{said:?}: {why}") };
            if !whys.contains(&why) {
                whys.push(why);
            }
        }
        whys.into_iter().take(MOST_TOLD).map(|why| Fault { check: Check::Correctness, why }).collect()
    }

    /// The lines that are cited, as they stand, one each.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for (cite, word) in &self.cites {
            let Word::Stands(Standing { path, line, text, .. }) = word else { continue };
            let path = path.as_deref().unwrap_or(&cite.place.path);
            let shown = format!("{path}:{}| {text}", line.unwrap_or(cite.place.line));
            if !text.is_empty() && !lines.contains(&shown) {
                lines.push(shown);
            }
        }
        lines
    }
}

fn brief(words: &str) -> String {
    first_line(&muster_shared::text::normalise_space(words), SAID)
}

/// What the lines of a submission are, and what is known of them, for whoever is asked whether it holds.
pub(super) fn cited_lines(history: &History, chosen: &ChosenAction, case: &StepContext<'_>) -> Vec<String> {
    let Ok(submission) = case.rules.submission(case.offer, &chosen.action.arguments) else {
        return Vec::new();
    };
    match look(history, &chosen.notes, &submission, case.offer) {
        Looked::Known(judged) => judged.lines(),
        Looked::ToAsk(_) => Vec::new(),
    }
}
