//! Claims that contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::{Comparison, Tolerance, compare};
use super::side::Side;
use super::subject::Subject;
use crate::flow::Citation;

/// Claims about one subject that cannot all be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedConflict {
    /// The subject, as the first side wrote it.
    pub subject: String,
    /// All claims about it, by task, including claims that agree with each other.
    pub sides: Vec<Side>,
}

/// Finds the subjects about which different tasks, or different documents, claim values that contradict each other.
/// If a task claims several values of a subject from no document or from one, its claims are ignored: it uses one name for
/// several things.
#[must_use]
pub fn detect(sides: &[Side], tolerance: Tolerance) -> Vec<DetectedConflict> {
    let mut subjects: BTreeMap<Subject, Vec<&Side>> = BTreeMap::new();
    for side in sides {
        if let Some(subject) = Subject::of(&side.claim.subject) {
            subjects.entry(subject).or_default().push(side);
        }
    }
    subjects.into_values().filter_map(|sides| contradiction(&sides, tolerance)).collect()
}

fn contradiction(sides: &[&Side], tolerance: Tolerance) -> Option<DetectedConflict> {
    let mut sides = one_each(sides, tolerance);
    let pairs = || (0..sides.len()).flat_map(|at| (at + 1..sides.len()).map(move |other| (at, other)));
    let differ = pairs().any(|(at, other)| {
        compare(&sides[at].claim.value, &sides[other].claim.value, tolerance) == Comparison::Differ
    });
    if !differ {
        return None;
    }
    sides.sort_by_cached_key(|side| {
        (side.task.clone(), side.claim.value.to_string(), side.claim.subject.clone())
    });
    let subject = sides.first()?.claim.subject.clone();
    Some(DetectedConflict { subject, sides })
}

/// One claim of each task, in the order of tasks; if a task claims different values from different documents, each of them.
fn one_each(sides: &[&Side], tolerance: Tolerance) -> Vec<Side> {
    let mut tasks: BTreeMap<_, Vec<&Side>> = BTreeMap::new();
    for side in sides {
        tasks.entry(&side.task).or_default().push(side);
    }
    let of_task = |mut of_task: Vec<&Side>| -> Vec<Side> {
        of_task.sort_by_key(|side| (std::cmp::Reverse(side.claim.confidence), side.claim.value.to_string()));
        let Some(first) = of_task.first().copied() else { return Vec::new() };
        let with_first = |side: &&Side| compare(&first.claim.value, &side.claim.value, tolerance);
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

/// Whether two claims cite documents, and no document in common.
fn documents_differ(one: &[Citation], other: &[Citation]) -> bool {
    let paths = |places: &[Citation]| places.iter().map(|place| place.path.clone()).collect::<BTreeSet<_>>();
    let (one, other) = (paths(one), paths(other));
    !one.is_empty() && !other.is_empty() && one.is_disjoint(&other)
}
