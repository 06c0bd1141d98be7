//! Claims that may speak of the same in other words: no rule tells, and a model is asked about all of them at once.

use std::collections::BTreeSet;

use super::compare::{Comparison, Tolerance, compare};
use super::detect::{by_subject, documents_differ};
use super::side::Side;
use super::subject::Subject;
use crate::ids::TaskIndex;

/// Most pairs of a run that a model is asked about.
pub const MOST_PAIRS: usize = 12;

/// Most subjects that are held against each other; in a run that speaks of more, the first.
const MOST_SUBJECTS: usize = 400;

/// How much of all their words two subjects have in common at least that are near, in percent.
const IN_COMMON: usize = 50;

/// Two claims that contradict each other if they speak of the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near {
    /// One of them.
    pub one: Side,
    /// The other.
    pub other: Side,
}

struct Named<'a> {
    subject: &'a Subject,
    words: BTreeSet<&'a str>,
    /// Names that its claims hold: words that begin with a capital letter within a text.
    names: BTreeSet<String>,
    sides: &'a [&'a Side],
}

/// The pairs of claims that are near each other, by subject, as many as a model is asked about, without those that
/// `was_asked` says it was asked about before.
#[must_use]
pub fn near(sides: &[Side], tolerance: Tolerance, was_asked: impl Fn(&Near) -> bool) -> Vec<Near> {
    let subjects = by_subject(sides);
    let named: Vec<Named<'_>> = subjects
        .iter()
        .take(MOST_SUBJECTS)
        .map(|(subject, sides)| Named {
            subject,
            words: subject.words().collect(),
            names: sides.iter().flat_map(|side| names(&side.claim.subject)).collect(),
            sides,
        })
        .collect();
    let pairs = (0..named.len()).flat_map(|at| (at + 1..named.len()).map(move |other| (at, other)));
    let near =
        pairs.map(|(at, other)| (&named[at], &named[other])).filter(|(one, other)| are_near(one, other));
    let differing = near.filter_map(|(one, other)| differing(one, other, tolerance));
    differing.filter(|pair| !was_asked(pair)).take(MOST_PAIRS).collect()
}

fn are_near(one: &Named<'_>, other: &Named<'_>) -> bool {
    let shared = one.words.intersection(&other.words).count();
    let all = one.words.union(&other.words).count();
    let is_part = shared == one.words.len().min(other.words.len());
    let close = shared * 100 >= all * IN_COMMON;
    shared >= 2 && (is_part || close) && !tells_apart(one, other)
}

/// Whether each names something that the other does not: a number, a day, a name.
fn tells_apart(one: &Named<'_>, other: &Named<'_>) -> bool {
    let own = |one: &Named<'_>, other: &Named<'_>| {
        let number = one.words.difference(&other.words).any(|word| word.contains(char::is_numeric));
        number || one.names.difference(&other.names).next().is_some()
    };
    own(one, other) && own(other, one)
}

/// Two claims of different tasks, or documents, whose values differ.
fn differing(one: &Named<'_>, other: &Named<'_>, tolerance: Tolerance) -> Option<Near> {
    let pairs = one.sides.iter().flat_map(|side| other.sides.iter().map(move |of_other| (*side, *of_other)));
    let apart = |one: &Side, other: &Side| {
        one.task != other.task || documents_differ(&one.claim.evidence, &other.claim.evidence)
    };
    let key = |side: &Side| -> (TaskIndex, String) { (side.task.clone(), side.claim.value.to_string()) };
    let differ = pairs.filter(|(a, b)| {
        apart(a, b) && compare(one.subject, &a.claim.value, &b.claim.value, tolerance) == Comparison::Differ
    });
    let first = differ.min_by_key(|(a, b)| (key(a), key(b)));
    first.map(|(one, other)| Near { one: one.clone(), other: other.clone() })
}

/// Names in a text: words with a capital letter, but for the first, whose letter says nothing.
fn names(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.skip(1).filter(|word| word.starts_with(char::is_uppercase)).map(str::to_lowercase)
}
