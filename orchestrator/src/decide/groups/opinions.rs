//! Members of a group by typed agreement: values of their claims, or conclusions that are a value. Prose is not compared.

use muster_shared::conflict::{Comparison, Tolerance, agreement, compare};
use muster_shared::flow::{ClaimValue, View};

/// Groups the views that agree, by the letter of their first member. Each group has the view at its center that most agree with,
/// since agreement within a tolerance is not transitive.
pub(super) fn camps(views: &[View], tolerance: Tolerance) -> Vec<Vec<&View>> {
    let mut left: Vec<&View> = views.iter().collect();
    left.sort_by_cached_key(|view| (sort_key(view), view.member.clone()));
    let mut camps: Vec<Vec<&View>> = Vec::new();
    while let Some(centre) = centre(&left, tolerance) {
        let agrees = |view: &&View| compared(centre, view, tolerance) == Comparison::Agree;
        let (mut with, without): (Vec<&View>, Vec<&View>) =
            left.into_iter().partition(|view| view.member == centre.member || agrees(view));
        with.sort_by(|one, other| one.member.cmp(&other.member));
        camps.push(with);
        left = without;
    }
    camps.sort_by(|one, other| {
        one.first().map(|view| &view.member).cmp(&other.first().map(|view| &view.member))
    });
    camps
}

/// The view that most agree with; among equals the first by its values, so that letters make no difference.
fn centre<'a>(sorted: &[&'a View], tolerance: Tolerance) -> Option<&'a View> {
    let agrees = |one: &View, other: &View| compared(one, other, tolerance) == Comparison::Agree;
    let with = |view: &View| sorted.iter().filter(|other| agrees(view, other)).count();
    sorted.iter().copied().min_by_key(|view| std::cmp::Reverse(with(view)))
}

fn sort_key(view: &View) -> (Vec<(String, String)>, String) {
    let claims = view.claims.iter().map(|claim| (claim.subject.clone(), claim.value.to_string()));
    let mut claims: Vec<(String, String)> = claims.collect();
    claims.sort();
    (claims, view.conclusion.clone())
}

/// Compares two views: by the subjects that both claim, by their only claims, or by conclusions that are nothing but a value.
fn compared(one: &View, other: &View, tolerance: Tolerance) -> Comparison {
    let by_subject = agreement(&one.claims, &other.claims, tolerance);
    match (by_subject, one.claims.as_slice(), other.claims.as_slice()) {
        (Comparison::Agree | Comparison::Differ, ..) => by_subject,
        // Members do one task, so that a single claim answers it under any subject.
        (Comparison::Unclear, [one], [other]) => compare(&one.value, &other.value, tolerance),
        (Comparison::Unclear, _, _) => {
            let value = |view: &View| ClaimValue::Text(view.conclusion.clone());
            compare(&value(one), &value(other), tolerance)
        }
    }
}
