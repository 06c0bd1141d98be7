//! Which claims contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::{Comparison, Tolerance, compare};
use super::meant;
use super::read::read_value;
use super::side::Side;
use super::subject::Subject;
use crate::flow::{Citation, ClaimValue};
use crate::text::unit::{self, Dimension};

/// Claims about one subject that cannot all be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The subject.
    pub subject: Subject,
    /// All that is claimed of it, by task; those that agree with each other too.
    pub sides: Vec<Side>,
}

impl Found {
    /// The subject in the words of a claim.
    #[must_use]
    pub fn in_words(&self) -> String {
        let same = |side: &&Side| Subject::of(&side.claim.subject).as_ref() == Some(&self.subject);
        let named = self.sides.iter().find(same).or(self.sides.first());
        named.map(|side| side.claim.subject.clone()).unwrap_or_default()
    }
}

/// Finds the subjects of which different tasks, or different documents, claim what contradicts each other, by subject.
/// What a task claims of a subject in more than one way, from no document or one, counts for nothing: it speaks of several
/// things by one name.
#[must_use]
pub fn detect(sides: &[Side], tolerance: Tolerance) -> Vec<Found> {
    let subjects = by_subject(sides);
    let denied = verdicts(sides, &subjects, tolerance);
    let found = subjects.into_iter().filter_map(|(subject, sides)| {
        let denied = denied.get(&subject).map(Vec::as_slice).unwrap_or_default();
        contradiction(subject, &sides, denied, tolerance)
    });
    found.collect()
}

/// What is claimed, by subject.
pub(super) fn by_subject(sides: &[Side]) -> BTreeMap<Subject, Vec<&Side>> {
    let mut subjects: BTreeMap<Subject, Vec<&Side>> = BTreeMap::new();
    for side in sides {
        if let Some(subject) = Subject::of(&side.claim.subject) {
            subjects.entry(subject).or_default().push(side);
        }
    }
    with_places_joined(subjects)
}

/// "Rain in Paris, France" is "rain in Paris", unless there is a Paris elsewhere too.
fn with_places_joined(subjects: BTreeMap<Subject, Vec<&Side>>) -> BTreeMap<Subject, Vec<&Side>> {
    let mut placed: BTreeMap<Subject, BTreeSet<&Subject>> = BTreeMap::new();
    for (subject, sides) in &subjects {
        let country = sides.first().and_then(|side| meant::country_after_place(&side.claim.subject));
        let bare = country.and_then(|country| subject.without(|word| word == country));
        if let Some(bare) = bare.filter(|bare| bare != subject) {
            placed.entry(bare).or_default().insert(subject);
        }
    }
    let joined: BTreeMap<Subject, Subject> = placed
        .into_iter()
        .filter(|(bare, placed)| placed.len() == 1 && subjects.contains_key(bare))
        .flat_map(|(bare, placed)| {
            placed.into_iter().map(move |full| (full.clone(), bare.clone())).collect::<Vec<_>>()
        })
        .collect();
    let mut all: BTreeMap<Subject, Vec<&Side>> = BTreeMap::new();
    for (subject, sides) in subjects {
        let subject = joined.get(&subject).cloned().unwrap_or(subject);
        all.entry(subject).or_default().extend(sides);
    }
    all
}

fn contradiction(subject: Subject, sides: &[&Side], denied: &[&Side], tolerance: Tolerance) -> Option<Found> {
    let mut sides = one_each(&subject, sides, tolerance);
    let pairs = || (0..sides.len()).flat_map(|at| (at + 1..sides.len()).map(move |other| (at, other)));
    let differ = pairs().any(|(at, other)| {
        compare(&subject, &sides[at].claim.value, &sides[other].claim.value, tolerance) == Comparison::Differ
    });
    if !differ && (denied.is_empty() || sides.is_empty()) {
        return None;
    }
    for side in denied {
        if !sides.contains(side) {
            sides.push((*side).clone());
        }
    }
    sides.sort_by_cached_key(|side| {
        (side.task.clone(), side.claim.value.to_string(), side.claim.subject.clone())
    });
    Some(Found { subject, sides })
}

/// One claim of each task, in the order of tasks; of one that claims different things from different documents, each.
fn one_each(subject: &Subject, sides: &[&Side], tolerance: Tolerance) -> Vec<Side> {
    let mut tasks: BTreeMap<_, Vec<&Side>> = BTreeMap::new();
    for side in sides {
        tasks.entry(&side.task).or_default().push(side);
    }
    let of_task = |mut of_task: Vec<&Side>| -> Vec<Side> {
        of_task.sort_by_key(|side| (std::cmp::Reverse(side.claim.confidence), side.claim.value.to_string()));
        let Some(first) = of_task.first().copied() else { return Vec::new() };
        let with_first = |side: &&Side| compare(subject, &first.claim.value, &side.claim.value, tolerance);
        let differ: Vec<&Side> =
            of_task.iter().copied().filter(|side| with_first(side) != Comparison::Agree).collect();
        if differ.is_empty() {
            return vec![first.clone()];
        }
        let stands_apart = |side: &&Side| {
            with_first(side) == Comparison::Differ
                && documents_differ(&first.claim.evidence, &side.claim.evidence)
        };
        if !differ.iter().all(stands_apart) {
            return Vec::new();
        }
        std::iter::once(first).chain(differ).cloned().collect()
    };
    tasks.into_values().flat_map(of_task).collect()
}

/// Whether two claims stand in documents, and in none together.
pub(super) fn documents_differ(one: &[Citation], other: &[Citation]) -> bool {
    let paths =
        |places: &[Citation]| places.iter().map(|place| place.path.clone()).collect::<BTreeSet<String>>();
    let (one, other) = (paths(one), paths(other));
    !one.is_empty() && !other.is_empty() && one.is_disjoint(&other)
}

/// Claims that something is so or is not which name a number, as "opened in 1890: no", by the subject of which others claim
/// a number that this contradicts.
fn verdicts<'a>(
    sides: &'a [Side],
    subjects: &BTreeMap<Subject, Vec<&'a Side>>,
    tolerance: Tolerance,
) -> BTreeMap<Subject, Vec<&'a Side>> {
    let mut found: BTreeMap<Subject, Vec<&Side>> = BTreeMap::new();
    let bare = |subject: &Subject| subject.without(meant::is_time);
    let asked = sides.iter().filter_map(|side| {
        let ClaimValue::Verdict(so) = side.claim.value else { return None };
        let (rest, value) = number_within(&side.claim.subject)?;
        Some((side, so, value, bare(&Subject::of(&rest)?)?.key().to_owned()))
    });
    let asked: Vec<_> = asked.collect();
    if asked.is_empty() {
        return found;
    }
    let mut by_key: BTreeMap<String, Vec<(&Subject, &Vec<&Side>)>> = BTreeMap::new();
    for (subject, others) in subjects {
        if let Some(about) = bare(subject) {
            by_key.entry(about.key().to_owned()).or_default().push((subject, others));
        }
    }
    for (side, so, value, about) in asked {
        for (subject, others) in by_key.get(&about).into_iter().flatten() {
            let contradicts = |other: &&Side| {
                let of_others =
                    other.task != side.task || documents_differ(&other.claim.evidence, &side.claim.evidence);
                let verdict = compare(subject, &other.claim.value, &value, tolerance);
                of_others && verdict == if so { Comparison::Differ } else { Comparison::Agree }
            };
            if others.iter().any(contradicts) {
                found.entry((*subject).clone()).or_default().push(side);
            }
        }
    }
    found
}

/// The only number that a text names, with its unit, and the text without it.
fn number_within(text: &str) -> Option<(String, ClaimValue)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain =
        |word: &str| word.trim_end_matches(['.', ',', ';', ':', '?', ')']).trim_start_matches('(').to_owned();
    let is_number = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit());
    let mut at = words.iter().enumerate().filter(|(_, word)| is_number(word)).map(|(at, _)| at);
    let (first, None) = (at.next()?, at.next()) else { return None };
    let next = words.get(first + 1).map(|word| plain(word)).unwrap_or_default();
    let has_unit = !matches!(unit::read(&next).dimension, Dimension::None | Dimension::Other(_));
    let written = if has_unit { format!("{} {next}", plain(words[first])) } else { plain(words[first]) };
    let value = read_value(&written, "")?;
    let until = first + 1 + usize::from(has_unit);
    let rest = words[..first].iter().chain(words.get(until..).unwrap_or_default());
    let rest = rest.copied().collect::<Vec<_>>().join(" ");
    matches!(value, ClaimValue::Number { .. } | ClaimValue::Date(_)).then_some((rest, value))
}
