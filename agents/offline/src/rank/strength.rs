//! How much of a term a statement has, in its own words, by those of like meaning, and by what it stands under.

use super::super::question::{ParsedQuestion, Term};
use super::super::statements::Statement;
use super::super::text::{is_stop_word, stem_set, words};

/// How much a term counts when it stands elsewhere than in the statement itself.
const BY_SYNONYM: f64 = 0.75;
/// Share of it when it stands in brackets or within code.
const ASIDE: f64 = 0.6;
const IN_HEADING: f64 = 0.6;
const SYNONYM_IN_HEADING: f64 = 0.4;
pub(super) const AROUND: f64 = 0.3;
const SYNONYM_AROUND: f64 = 0.25;
const NEAR: f64 = 0.25;
const IN_OPENING: f64 = 0.65;
/// How much a term counts in a whole list, table or piece of code: where it introduces it, and where its parts have it.
const INTRODUCES: f64 = 0.95;
const IN_A_PART: f64 = 0.55;

pub(super) fn own_strength(term: &Term, statement: &Statement) -> f64 {
    // A name in capitals is not the word that it looks like.
    let named =
        term.capitals && !statement.text.contains(&term.word) && !statement.heading.contains(&term.word);
    if named { strength_of(term, statement) * ASIDE } else { strength_of(term, statement) }
}

fn strength_of(term: &Term, statement: &Statement) -> f64 {
    if statement.kind.is_whole() {
        return whole_strength(term, statement);
    }
    let aside = if term.identifier { 1.0 } else { ASIDE };
    first_that_holds([
        (statement.main.contains(&term.stem), 1.0),
        (!term.near.is_disjoint(&statement.main), BY_SYNONYM),
        (statement.stems.contains(&term.stem), aside),
        (!term.near.is_disjoint(&statement.stems), aside * BY_SYNONYM),
    ])
}

fn first_that_holds(strengths: [(bool, f64); 4]) -> f64 {
    strengths.into_iter().find(|(holds, _)| *holds).map_or(0.0, |(_, strength)| strength)
}

/// The share of a question that the heading right above has, where that is a question itself, as in lists of those that are
/// often asked.
pub(super) fn asked_above(
    question: &ParsedQuestion,
    weights: &[f64],
    total: f64,
    statement: &Statement,
) -> f64 {
    if !statement.heading.ends_with('?') {
        return 0.0;
    }
    let title = stem_set(&statement.heading);
    let is_there = |term: &Term| title.contains(&term.stem) || !term.near.is_disjoint(&title);
    let there = question.terms.iter().zip(weights).filter(|(term, _)| is_there(term));
    there.map(|(_, weight)| weight).sum::<f64>() / total
}

fn whole_strength(term: &Term, statement: &Statement) -> f64 {
    first_that_holds([
        (statement.main.contains(&term.stem), INTRODUCES),
        (!term.near.is_disjoint(&statement.main), INTRODUCES * BY_SYNONYM),
        (statement.stems.contains(&term.stem), if term.identifier { INTRODUCES } else { IN_A_PART }),
        (!term.near.is_disjoint(&statement.stems), IN_A_PART * BY_SYNONYM),
    ])
}

/// Whether the heading right above a statement asks the question: it has all its telling words and few others.
pub(super) fn is_titled(question: &ParsedQuestion, statement: &Statement) -> bool {
    let telling: Vec<&Term> = question.terms.iter().filter(|term| term.tells()).collect();
    let title = stem_set(&statement.heading);
    let said = words(&statement.heading).filter(|word| !is_stop_word(word.text)).count();
    !telling.is_empty()
        && telling.iter().all(|term| title.contains(&term.stem))
        && said <= telling.len() + usize::from(telling.len() > 1)
}

pub(super) fn strength(term: &Term, statement: &Statement, own: bool) -> f64 {
    let heading = if statement.context.contains(&term.stem) {
        IN_HEADING
    } else if !term.near.is_disjoint(&statement.context) {
        SYNONYM_IN_HEADING
    } else {
        0.0
    };
    let around = if statement.around.contains(&term.stem) {
        AROUND
    } else if !term.near.is_disjoint(&statement.around) {
        SYNONYM_AROUND
    } else {
        0.0
    };
    let near = if statement.near.contains(&term.stem) { NEAR } else { 0.0 };
    let opening = if own && statement.opening.contains(&term.stem) { IN_OPENING } else { 0.0 };
    own_strength(term, statement).max(heading).max(around).max(near).max(opening)
}
