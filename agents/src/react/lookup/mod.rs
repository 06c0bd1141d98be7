//! Looking up what a result or a report cites before it counts (W8): which places are asked for, and what follows from
//! what was found. The look-up itself is carried out by whoever drives the task; what it gave stands in the record, as a
//! note of the step. Pure.

mod mend;
mod numbers;
mod scan;
mod seen;
#[cfg(test)]
mod tests;

use muster_corpus::CitedPlace;
use muster_shared::flow::looked_up::{MOST_PLACES, digest};
use muster_shared::flow::{
    Action, Check, Fault, LookedUp, Note, PlaceFound, Product, Standing, Step, TaskOffered, Thought, Work,
};
use muster_shared::text::first_line;
use serde_json::Value;

use super::decide::{ChosenAction, NextStep, StepContext, taken_as_it_is};
use super::history::History;
use super::loop_detection::refused;
use super::verify::verified;
use crate::roles::Submission;
pub(super) use mend::{as_far_as_it_stands, corrected, left_out, without_false};
pub(super) use numbers::{marked, not_from_results};
use scan::{TextPlace, may_be_host};
use seen::{Evidence, Seen};

/// Most false places that a model is told of at once.
const MOST_TOLD: usize = 12;
/// Most text of cited lines that one note holds, in bytes.
const MOST_TEXT: usize = 48 * 1024;
/// Longest words of a statement that stand before what is wrong with its place, in characters.
const SAID: usize = 60;

/// Where a product cites a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot {
    /// The citation of a finding, by their places.
    Finding(usize, usize),
    /// The evidence of a claim.
    Claim(usize, usize),
    /// Its texts.
    Text(Text),
}

/// A text in which places are cited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Conclusion,
    Body,
    Finding(usize),
    Report,
}

/// A place that a product cites.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cite {
    spot: Spot,
    /// What is cited, and for what.
    place: CitedPlace,
    /// Where it stands in a text.
    text: Option<TextPlace>,
}

/// What is known of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    /// It stands, as far as corrections do not say otherwise.
    Stands(Standing),
    /// It was seen in this task or by those before it.
    Seen,
    /// It does not stand, and why.
    False(String),
    /// Nobody looked, or it is no place at all.
    Unknown,
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

/// What a product cites, in an order that is always the same.
fn cites(product: &Product) -> Vec<Cite> {
    let mut all = Vec::new();
    match product {
        Product::Result(result) => {
            for (at, finding) in result.findings.iter().enumerate() {
                add_text(&mut all, Text::Finding(at), &finding.text);
                let group = next_group(&all);
                for (of, citation) in finding.citations.iter().enumerate() {
                    let place = CitedPlace {
                        path: citation.path.clone(),
                        line: citation.line,
                        quote: citation.quote.clone(),
                        statement: without_places(&finding.text),
                        group,
                    };
                    all.push(Cite { spot: Spot::Finding(at, of), place, text: None });
                }
            }
            add_text(&mut all, Text::Conclusion, &result.conclusion);
            add_text(&mut all, Text::Body, &result.body);
            for (at, claim) in result.claims.iter().enumerate() {
                let group = next_group(&all);
                for (of, citation) in claim.evidence.iter().enumerate() {
                    let place = CitedPlace {
                        path: citation.path.clone(),
                        line: citation.line,
                        quote: citation.quote.clone(),
                        statement: String::new(),
                        group,
                    };
                    all.push(Cite { spot: Spot::Claim(at, of), place, text: None });
                }
            }
        }
        Product::Report(report) => add_text(&mut all, Text::Report, &report.body),
        Product::Plan(_) | Product::Reflection(_) | Product::Refinement(_) | Product::DraftReview(_) => {}
    }
    all
}

fn next_group(all: &[Cite]) -> u32 {
    all.iter().map(|cite| cite.place.group).max().unwrap_or(0) + 1
}

fn add_text(all: &mut Vec<Cite>, of: Text, text: &str) {
    let before = next_group(all) - 1;
    for mut found in scan::places(text) {
        found.place.group += before;
        all.push(Cite { spot: Spot::Text(of), place: found.place.clone(), text: Some(found) });
    }
}

/// A statement without the places that stand in it: their numbers are not said of anything.
fn without_places(text: &str) -> String {
    let mut said = text.to_owned();
    for place in scan::places(text).iter().rev() {
        said.replace_range(place.at.clone(), "");
    }
    said
}

/// By what a place is told from others on the same line.
fn words(place: &CitedPlace) -> u32 {
    digest(&[&place.quote, &place.statement])
}

/// What the note of a step says of a place.
fn noted<'a>(notes: &'a [Note], place: &CitedPlace) -> Option<&'a LookedUp> {
    let words = words(place);
    let same =
        |known: &&LookedUp| known.path == place.path && known.line == place.line && known.words == words;
    looks(notes).rev().find_map(|(places, _)| places.iter().find(same))
}

/// What each look-up of a step gave, and why it gave nothing.
fn looks(notes: &[Note]) -> impl DoubleEndedIterator<Item = (&[LookedUp], &str)> {
    notes.iter().filter_map(|note| match note {
        Note::LookedUp { places, failed } => Some((places.as_slice(), failed.as_str())),
        Note::Spin { .. }
        | Note::Reconsidered
        | Note::Closed { .. }
        | Note::Declined { .. }
        | Note::Verified { .. }
        | Note::NotChecked { .. }
        | Note::GoalChecked { .. } => None,
    })
}

/// Whether the places of a step were looked up.
pub(super) fn is_looked_up(notes: &[Note]) -> bool {
    looks(notes).next().is_some()
}

/// Why they could not be, if so.
pub(super) fn not_looked_up(notes: &[Note]) -> Option<&str> {
    looks(notes).map(|(_, failed)| failed).find(|failed| !failed.is_empty())
}

/// What is known of the places that a submission cites; asks for those in documents first.
pub(super) fn look(
    history: &History,
    notes: &[Note],
    submission: &Submission,
    offer: &TaskOffered,
) -> Looked {
    let Some(product) = submission.product.as_ref().filter(|_| is_of_leaf_or_report(&offer.work)) else {
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

const fn is_of_leaf_or_report(work: &Work) -> bool {
    match work {
        Work::Execute { .. } | Work::Write { .. } => true,
        Work::Plan { .. } | Work::Reflect { .. } | Work::Refine { .. } | Work::DraftReview { .. } => false,
    }
}

/// Numbers that tools gave, or results that cite the same place, are not looked for there.
fn without_known_numbers(mut place: CitedPlace, evidence: &Evidence<'_>) -> CitedPlace {
    let numbers = muster_shared::text::numerals(&place.statement);
    if !place.quote.is_empty() || numbers.is_empty() {
        return place;
    }
    let known = evidence.numbers_beside(&place.path, place.line);
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
            Some(Word::False(format!("{path} was seen, and {:?} does not stand in it", brief(quote))))
        }
        Seen::Never => None,
    };
    match found.map(|looked| (looked, &looked.found)) {
        Some((_, PlaceFound::Stands(standing))) => Word::Stands(standing.clone()),
        Some((_, PlaceFound::Otherwise { .. })) if is_text && evidence.is_said_by_results(&cite.place) => {
            Word::Seen
        }
        Some((looked, PlaceFound::NoFile { nearest })) => of_evidence().unwrap_or_else(|| {
            if is_text && nearest.is_empty() && may_be_host(path) {
                return Word::Unknown;
            }
            Word::False(looked.fault().unwrap_or_default())
        }),
        Some((
            looked,
            PlaceFound::Elsewhere { .. } | PlaceFound::NoLine { .. } | PlaceFound::Otherwise { .. },
        )) => Word::False(looked.fault().unwrap_or_default()),
        None if has_documents => Word::Unknown,
        None if is_text && may_be_host(path) => Word::Unknown,
        None => of_evidence().unwrap_or_else(|| {
            let place = if path.contains("://") { path.clone() } else { format!("{path}:{line}") };
            Word::False(format!(
                "{place} is cited, and {path} was never seen in this task or in what it builds on"
            ))
        }),
    }
}

impl Judged {
    /// What does not stand, as far as it is told.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let mut whys: Vec<String> = Vec::new();
        for (cite, word) in &self.cites {
            let Word::False(why) = word else { continue };
            let CitedPlace { quote, statement, .. } = &cite.place;
            let said = brief(if quote.is_empty() { statement } else { quote });
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

/// What was found of the places that were asked for, as the note of a step.
#[must_use]
pub fn note_of(asked: &[CitedPlace], found: Result<Vec<PlaceFound>, String>) -> Note {
    match found {
        Ok(found) => {
            let place = |(asked, found): (&CitedPlace, PlaceFound)| LookedUp {
                path: asked.path.clone(),
                line: asked.line,
                words: words(asked),
                found,
            };
            let places = within_room(asked.iter().zip(found).map(place).collect());
            Note::LookedUp { places, failed: String::new() }
        }
        Err(failed) => Note::LookedUp { places: Vec::new(), failed: first_line(&failed, 200) },
    }
}

/// The same with no more text than the record has room for.
fn within_room(mut places: Vec<LookedUp>) -> Vec<LookedUp> {
    let mut room = MOST_TEXT;
    for place in &mut places {
        let text = match &mut place.found {
            PlaceFound::Stands(standing) => &mut standing.text,
            PlaceFound::Otherwise { there } => there,
            PlaceFound::Elsewhere { .. } | PlaceFound::NoFile { .. } | PlaceFound::NoLine { .. } => continue,
        };
        if text.len() > room {
            text.clear();
        }
        room -= text.len();
    }
    places
}

/// What follows once the places are looked up, and the note of that stands with what was chosen.
#[must_use]
pub fn looked_up(history: &History, chosen: ChosenAction, case: &StepContext<'_>) -> NextStep {
    if chosen.action.arguments.is_null() {
        let prose = chosen.thought.text.clone();
        let taken = taken_as_it_is(&prose, case.limits.max_asks, case);
        return match taken {
            Some(submission) => concluded(history, chosen, submission, case),
            None => NextStep::Refuse { chosen, observation: refused(String::new()) },
        };
    }
    match case.rules.submission(case.offer, &chosen.action.arguments) {
        Ok(submission) => verified(history, chosen, submission, case),
        Err(faults) => NextStep::Refuse { chosen, observation: refused(faults.join("; ")) },
    }
}

/// What becomes of plain text that is taken for a result: what it cites is looked up too, and left out where it does not
/// stand.
pub(super) fn of_prose(
    history: &History,
    prose: &str,
    submission: Submission,
    case: &StepContext<'_>,
) -> NextStep {
    let thought = Thought { text: prose.to_owned(), ..Thought::default() };
    let action = Action { name: Action::SUBMIT.to_owned(), arguments: Value::Null };
    concluded(
        history,
        ChosenAction { thought, action, more: Vec::new(), notes: Vec::new() },
        submission,
        case,
    )
}

fn concluded(
    history: &History,
    chosen: ChosenAction,
    submission: Submission,
    case: &StepContext<'_>,
) -> NextStep {
    if case.limits.checks == 0 || !submission.ending.is_success() {
        return NextStep::Conclude { submission, notes: chosen.notes };
    }
    match look(history, &chosen.notes, &submission, case.offer) {
        Looked::ToAsk(asked) => NextStep::LookUp { chosen, asked, shows: false },
        Looked::Known(judged) => {
            NextStep::Conclude { submission: left_out(submission, &judged), notes: chosen.notes }
        }
    }
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

/// The note of a step that its places were looked up.
#[must_use]
pub fn note_in(step: &Step) -> Option<&Note> {
    step.notes.iter().rev().find(|note| matches!(note, Note::LookedUp { .. }))
}
