//! Of what a question asks by its name, and what several documents say of one thing.

use std::collections::BTreeSet;

use muster_shared::text::{number_in_words, numerals};

use super::super::question::{ParsedQuestion, Term};
use super::super::statements::Statement;
use super::super::text::{stem_set, words};

/// How much a statement counts that is of another subject than the one named.
const OF_ANOTHER: f64 = 0.6;

/// Names in a question by which documents are called: "the Loom", in `loom-pattern.md`.
#[derive(Debug, Default)]
pub(super) struct Subjects<'a>(Vec<&'a Term>);

impl<'a> Subjects<'a> {
    /// Those by which some of what was seen is called, and not all.
    pub(super) fn of(question: &'a ParsedQuestion, pool: &[Statement]) -> Self {
        let names: Vec<&Term> = question.terms.iter().filter(|term| term.name && term.tells()).collect();
        let telling = question.terms.iter().filter(|term| term.tells()).count();
        // Where each word begins with a capital, none is a name by that.
        if names.is_empty() || names.len() == telling && telling > 2 {
            return Self::default();
        }
        let titled = |term: &Term, statement: &Statement| {
            statement.opening.contains(&term.stem) || stem_set(&statement.path).contains(&term.stem)
        };
        let is_subject = |term: &&Term| {
            pool.iter().any(|one| titled(term, one)) && !pool.iter().all(|one| titled(term, one))
        };
        Self(names.into_iter().filter(is_subject).collect())
    }

    /// Less where a statement neither has the name nor stands anywhere where it is named.
    pub(super) fn weight(&self, statement: &Statement) -> f64 {
        let places =
            [&statement.stems, &statement.context, &statement.around, &statement.near, &statement.opening];
        let is_named = |term: &&Term| places.iter().any(|stems| stems.contains(&term.stem));
        if self.0.iter().all(is_named) { 1.0 } else { OF_ANOTHER }
    }
}

/// Whether two statements give other figures, as those of two documents on one thing do.
pub(super) fn says_another_value(left: &str, right: &str) -> bool {
    let (left, right) = (values(left), values(right));
    !left.is_empty() && !right.is_empty() && left != right
}

fn values(text: &str) -> BTreeSet<String> {
    let in_words = words(text).map(|word| word.text.to_lowercase()).filter(|word| is_number(word));
    numerals(text).into_iter().map(|number| number.digits).chain(in_words).collect()
}

/// Whether a word is a number. "One" is an article as often.
fn is_number(word: &str) -> bool {
    number_in_words(word).is_some_and(|number| number > 1)
}
