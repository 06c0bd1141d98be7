//! Look-up of the places that a result or a report cites, before it is accepted: the list of places, and the consequences of
//! each result. The driver of the task reads the documents; the event log has the results as a note of the step. Pure.

mod cited;
mod follow;
mod mend;
mod notes;
mod scan;
mod seen;
mod sheet;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use muster_corpus::CitedPlace;
use muster_shared::flow::looked_up::MOST_PLACES;
use muster_shared::flow::{Check, Fault, LookedUp, Note, PlaceFound, Standing, TaskOffered, Work};
use muster_shared::text::first_line;

use super::history::History;
use crate::roles::Submission;
use cited::{Cite, Spot, Text, cites};
pub use follow::looked_up;
pub(super) use follow::of_prose;
pub(super) use mend::{as_far_as_it_stands, corrected, left_out};
use notes::noted;
pub(super) use notes::{is_looked_up, not_looked_up};
pub use notes::{note_in, note_of};
use scan::may_be_host;
use seen::{Evidence, Seen};
pub(super) use sheet::{CitedStatement, cited_statements};

/// Most faults that a model receives at once.
const MOST_TOLD: usize = 12;
/// Longest part of a statement in a fault, in characters.
const SAID: usize = 60;

/// What is known of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// It is correct, apart from these corrections.
    Stands(Standing),
    /// It was seen in this task or in those that it builds on.
    Seen,
    /// A proven fault.
    False { why: String },
    /// It was not looked up, or is not a place.
    Unknown,
}

/// The places of a product, with the verdict on each.
pub(super) struct Judged {
    cites: Vec<(Cite, Verdict)>,
}

impl Judged {
    /// Nothing is cited.
    pub(super) const fn nothing() -> Self {
        Self { cites: Vec::new() }
    }
}

/// Result of a look at what a submission cites.
pub(super) enum Looked {
    /// The documents must be checked for these places first.
    ToAsk(Vec<CitedPlace>),
    /// Everything that can be known is known.
    Known(Judged),
}

/// The places that a text cites, with the statement of each. A possible host with its port is not a place.
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
        return Looked::Known(Judged::nothing());
    };
    let cites = cites(product);
    let has_documents = offer.corpus.is_some();
    if has_documents && !cites.is_empty() && !is_looked_up(notes) {
        return Looked::ToAsk(cites.into_iter().map(|cite| cite.place).take(MOST_PLACES).collect());
    }
    let evidence = Evidence::of(history, offer);
    let judged = cites.into_iter().map(|cite| {
        let verdict = judge(&cite, noted(notes, &cite.place), has_documents, &evidence);
        (cite, verdict)
    });
    Looked::Known(Judged { cites: judged.collect() })
}

fn judge(cite: &Cite, found: Option<&LookedUp>, has_documents: bool, evidence: &Evidence<'_>) -> Verdict {
    let CitedPlace { path, line, quote, .. } = &cite.place;
    let is_text = cite.text.is_some();
    let of_evidence = || match evidence.seen(path, quote) {
        Seen::Yes => Some(Verdict::Seen),
        Seen::Otherwise => {
            Some(Verdict::False { why: format!("{path} does not contain {:?}", brief(quote)) })
        }
        Seen::Never => None,
    };
    let Some(looked) = found else {
        if has_documents || is_text && may_be_host(path) {
            return Verdict::Unknown;
        }
        return of_evidence().unwrap_or_else(|| {
            let place = if path.contains("://") { path.clone() } else { format!("{path}:{line}") };
            let why = format!("{place} is cited; this task and its inputs contain no {path}");
            Verdict::False { why }
        });
    };
    let at_fault = || Verdict::False { why: looked.fault().unwrap_or_default() };
    let stands = |there: &str| Verdict::Stands(Standing { text: there.to_owned(), ..Standing::default() });
    match &looked.found {
        PlaceFound::Stands(standing) => Verdict::Stands(standing.clone()),
        PlaceFound::NoFile { nearest } => of_evidence().unwrap_or_else(|| {
            let is_host = is_text && nearest.is_empty() && may_be_host(path);
            if is_host { Verdict::Unknown } else { at_fault() }
        }),
        PlaceFound::NoLine { .. } => at_fault(),
        PlaceFound::NoQuote { .. } | PlaceFound::Contradicted { .. } if evidence.was_seen_in(&cite.place) => {
            Verdict::Seen
        }
        PlaceFound::NoQuote { there } if is_text && evidence.is_given(quote) => stands(there),
        PlaceFound::NoQuote { .. } => at_fault(),
        PlaceFound::Contradicted { values, there } => {
            let known = evidence.numbers_beside(path, *line);
            let is_given = |digits: &HashSet<String>| !digits.is_empty() && digits.is_subset(&known);
            let are_given = values.iter().all(|value| is_given(&seen::digits(&value.stated)));
            if are_given { stands(there) } else { at_fault() }
        }
    }
}

impl Judged {
    /// The proven faults, one for each statement and reason.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let mut whys: Vec<String> = Vec::new();
        for (cite, verdict) in &self.cites {
            let Verdict::False { why } = verdict else { continue };
            let CitedPlace { quote, statement, .. } = &cite.place;
            let said = brief(if statement.is_empty() { quote } else { statement });
            let why = if said.is_empty() { why.clone() } else { format!("{said:?}: {why}") };
            if !whys.contains(&why) {
                whys.push(why);
            }
        }
        whys.into_iter().take(MOST_TOLD).map(|why| Fault { check: Check::Correctness, why }).collect()
    }

    /// Citations that moved to the line that contains their quote: `a.md:3 to a.md:12`.
    pub(super) fn moves(&self) -> Vec<String> {
        let moved = self.cites.iter().filter_map(|(cite, verdict)| {
            let Verdict::Stands(Standing { path, line: Some(line), .. }) = verdict else { return None };
            let CitedPlace { path: cited, line: from, .. } = &cite.place;
            Some(format!("{cited}:{from} to {}:{line}", path.as_ref().unwrap_or(cited)))
        });
        moved.collect()
    }
}

fn brief(words: &str) -> String {
    first_line(&muster_shared::text::normalise_space(words), SAID)
}
