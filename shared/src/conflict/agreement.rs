//! Whether two say the same with all that they claim.

use std::collections::BTreeMap;

use super::compare::{Comparison, Tolerance, compare};
use super::subject::Subject;
use crate::flow::{Claim, ClaimValue};

/// Compares what two claim of the subjects that both speak of: they differ if they contradict each other in one of them,
/// and agree if they agree in one at least. Where they speak of no common subject, or only in words that no rule can
/// compare, it is unclear. Both orders give the same.
#[must_use]
pub fn agreement(one: &[Claim], other: &[Claim], tolerance: Tolerance) -> Comparison {
    let (ones, others) = (by_subject(one, tolerance), by_subject(other, tolerance));
    let common = ones.iter().filter_map(|(subject, value)| {
        others.get(subject).map(|of_other| compare(value, of_other, tolerance))
    });
    common.fold(Comparison::Unclear, |so_far, next| match (so_far, next) {
        (Comparison::Differ, _) | (_, Comparison::Differ) => Comparison::Differ,
        (Comparison::Agree, _) | (_, Comparison::Agree) => Comparison::Agree,
        (Comparison::Unclear, Comparison::Unclear) => Comparison::Unclear,
    })
}

/// What is claimed of each subject, by the surest claim. Who claims of a subject what does not agree with itself speaks
/// of several things by one name, and that counts for nothing.
fn by_subject(claims: &[Claim], tolerance: Tolerance) -> BTreeMap<Subject, &ClaimValue> {
    let mut subjects: BTreeMap<Subject, Vec<&Claim>> = BTreeMap::new();
    for claim in claims {
        if let Some(subject) = Subject::of(&claim.subject) {
            subjects.entry(subject).or_default().push(claim);
        }
    }
    let single = |(subject, claims)| Some((subject, single(claims, tolerance)?));
    subjects.into_iter().filter_map(single).collect()
}

fn single(mut claims: Vec<&Claim>, tolerance: Tolerance) -> Option<&ClaimValue> {
    claims.sort_by_key(|claim| (std::cmp::Reverse(claim.confidence), claim.value.to_string()));
    let first = &claims.first().copied()?.value;
    let agrees = |claim: &&Claim| compare(first, &claim.value, tolerance) == Comparison::Agree;
    claims.iter().all(agrees).then_some(first)
}
