//! Who of a group is of one mind, by what they say. Rules about language: decisions ask them by the reader.

use muster_shared::conflict::{Comparison, Tolerance, agreement, same_statement};
use muster_shared::flow::View;

/// Those who agree, by letter of their first. Within a tolerance, to agree is not handed on from one to the next: each
/// camp stands around the view that most agree with, as positions in a conflict do.
pub(in crate::decide) fn camps(views: &[View], tolerance: Tolerance) -> Vec<Vec<u32>> {
    let mut left: Vec<&View> = views.iter().collect();
    left.sort_by_cached_key(|view| (said(view), view.member.clone()));
    let mut camps: Vec<Vec<&View>> = Vec::new();
    while let Some(centre) = centre(&left, tolerance) {
        let (mut with, without): (Vec<&View>, Vec<&View>) =
            left.into_iter().partition(|view| view.member == centre.member || agree(centre, view, tolerance));
        with.sort_by(|one, other| one.member.cmp(&other.member));
        camps.push(with);
        left = without;
    }
    camps.sort_by(|one, other| {
        one.first().map(|view| &view.member).cmp(&other.first().map(|view| &view.member))
    });
    let place = |view: &View| views.iter().position(|other| other.member == view.member);
    let placed = |camp: Vec<&View>| places(camp.into_iter().filter_map(place));
    camps.into_iter().map(placed).collect()
}

fn places(at: impl Iterator<Item = usize>) -> Vec<u32> {
    at.filter_map(|at| u32::try_from(at).ok()).collect()
}

/// The view that most agree with; among equals the first by what it says, so that letters make no difference.
fn centre<'a>(sorted: &[&'a View], tolerance: Tolerance) -> Option<&'a View> {
    let with = |view: &View| sorted.iter().filter(|other| agree(view, other, tolerance)).count();
    sorted.iter().copied().min_by_key(|view| std::cmp::Reverse(with(view)))
}

/// What a view says, for an order that does not depend on whose it is.
fn said(view: &View) -> (Vec<(String, String)>, String) {
    let claims = view.claims.iter().map(|claim| (plain(&claim.subject), claim.value.to_string()));
    let mut claims: Vec<(String, String)> = claims.collect();
    claims.sort();
    (claims, plain(&view.conclusion))
}

/// Whether two say the same: by what both make claims about, where a rule can tell, else by their conclusions.
fn agree(one: &View, other: &View, tolerance: Tolerance) -> bool {
    match agreement(&one.claims, &other.claims, tolerance) {
        Comparison::Agree => true,
        Comparison::Differ => false,
        Comparison::Unclear => {
            plain(&one.conclusion) == plain(&other.conclusion)
                || same_statement(&one.conclusion, &other.conclusion)
        }
    }
}

/// A text as it is compared: words alone, in small letters.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '%')).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}
