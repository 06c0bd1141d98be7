//! Which claims contradict each other.

use std::collections::BTreeMap;

use super::compare::{Comparison, Tolerance, compare};
use super::side::Side;
use super::subject::Subject;

/// Claims about one subject that cannot all be true, or may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The subject.
    pub subject: Subject,
    /// All that is claimed of it, by task; those that agree with each other too.
    pub sides: Vec<Side>,
    /// Whether a rule says that they contradict each other. Else they are words that only a model can compare.
    pub certain: bool,
}

/// Finds the subjects of which different tasks claim what contradicts each other, by subject. What a task claims of a
/// subject in more than one way counts for nothing: it speaks of several things by one name.
#[must_use]
pub fn detect(sides: &[Side], tolerance: Tolerance) -> Vec<Found> {
    let mut subjects: BTreeMap<Subject, Vec<&Side>> = BTreeMap::new();
    for side in sides {
        if let Some(subject) = Subject::of(&side.claim.subject) {
            subjects.entry(subject).or_default().push(side);
        }
    }
    subjects.into_iter().filter_map(|(subject, sides)| contradiction(subject, &sides, tolerance)).collect()
}

fn contradiction(subject: Subject, sides: &[&Side], tolerance: Tolerance) -> Option<Found> {
    let sides = one_each(&subject, sides, tolerance);
    let pairs = || (0..sides.len()).flat_map(|at| (at + 1..sides.len()).map(move |other| (at, other)));
    let is = |wanted: Comparison| {
        pairs().any(|(at, other)| {
            compare(&subject, &sides[at].claim.value, &sides[other].claim.value, tolerance) == wanted
        })
    };
    let certain = is(Comparison::Differ);
    (certain || is(Comparison::Unclear)).then_some(Found { subject, sides, certain })
}

/// One claim of each task, in the order of tasks.
fn one_each(subject: &Subject, sides: &[&Side], tolerance: Tolerance) -> Vec<Side> {
    let mut tasks: BTreeMap<_, Vec<&Side>> = BTreeMap::new();
    for side in sides {
        tasks.entry(&side.task).or_default().push(side);
    }
    let single = |mut of_task: Vec<&Side>| {
        of_task.sort_by_key(|side| (std::cmp::Reverse(side.claim.confidence), side.claim.value.to_string()));
        let first = of_task.first().copied()?;
        let agrees = |side: &&Side| {
            compare(subject, &first.claim.value, &side.claim.value, tolerance) == Comparison::Agree
        };
        of_task.iter().all(agrees).then(|| first.clone())
    };
    tasks.into_values().filter_map(single).collect()
}
