//! Who is right, by each of the ways to tell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::compare::Tolerance;
use super::next::Word;
use super::position::{Position, positions};
use super::side::Side;
use crate::flow::{Citation, ClaimValue, ConflictStep};
use crate::ids::TaskIndex;

/// Most places that a verdict names.
const MOST_EVIDENCE: usize = 8;

/// What a side counts that does not say how sure it is, in percent.
const UNSAID: u32 = 50;

/// By how much the surest position must be ahead of the next, in percent of it.
const LEAD: u32 = 150;

/// Who is right, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConflictVerdict {
    /// What holds.
    pub value: ClaimValue,
    /// How it was found out.
    pub by: ConflictStep,
    /// Why, in a sentence.
    pub why: String,
    /// Those who claimed it.
    pub winners: Vec<TaskIndex>,
    /// Those who claimed something else.
    pub losers: Vec<TaskIndex>,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Citation>,
}

/// The position that more than half of the sides hold.
#[must_use]
pub fn by_majority(sides: &[Side], tolerance: Tolerance) -> Option<ConflictVerdict> {
    let most = positions(sides, tolerance).into_iter().next()?;
    let (with, all) = (most.sides.len(), sides.len());
    (with * 2 > all && with > 1)
        .then(|| verdict(sides, &most, ConflictStep::Majority, format!("{with} of {all} claim it")))
}

/// The position whose sides are clearly surer, taken together, than those of any other.
#[must_use]
pub fn by_confidence(sides: &[Side], tolerance: Tolerance) -> Option<ConflictVerdict> {
    let weight = |position: &Position| -> u32 {
        let sure = position.sides.iter().map(|side| u32::from(side.claim.confidence));
        sure.map(|percent| if percent == 0 { UNSAID } else { percent }).sum()
    };
    let mut weighed: Vec<(u32, Position)> =
        positions(sides, tolerance).into_iter().map(|position| (weight(&position), position)).collect();
    weighed.sort_by_cached_key(|(weight, position)| (std::cmp::Reverse(*weight), position.value.to_string()));
    let next = weighed.get(1).map_or(0, |(weight, _)| *weight);
    let (best, position) = weighed.into_iter().next()?;
    (best * 100 >= next * LEAD).then(|| {
        let why = format!("its sides are {best} % sure taken together, those of the next {next} %");
        verdict(sides, &position, ConflictStep::Confidence, why)
    })
}

/// The position with the best source: what stands first in the ranks wins. A rank is a role (`role:validator`), or a
/// pattern for places that evidence names (`official/*`).
#[must_use]
pub fn by_authority(sides: &[Side], ranks: &[String], tolerance: Tolerance) -> Option<ConflictVerdict> {
    let rank = |side: &Side| ranks.iter().position(|rank| stands_on(side, rank)).unwrap_or(ranks.len());
    let of = |position: &Position| position.sides.iter().map(rank).min().unwrap_or(ranks.len());
    let mut ranked: Vec<(usize, Position)> =
        positions(sides, tolerance).into_iter().map(|position| (of(&position), position)).collect();
    ranked.sort_by_cached_key(|(rank, position)| (*rank, position.value.to_string()));
    let next = ranked.get(1).map(|(rank, _)| *rank);
    let (best, position) = ranked.into_iter().next()?;
    let name = ranks.get(best)?;
    next.is_none_or(|next| next > best).then(|| {
        verdict(sides, &position, ConflictStep::Authority, format!("it stands on {name}, which counts more"))
    })
}

fn stands_on(side: &Side, rank: &str) -> bool {
    match rank.strip_prefix("role:") {
        Some(role) => side.role.as_ref().is_some_and(|own| own.to_string() == role.trim()),
        None => side.claim.evidence.iter().any(|place| fits(rank.trim(), &place.path)),
    }
}

/// Whether a text fits a pattern in which `*` stands for anything; a pattern that ends with `/` for all below it.
fn fits(pattern: &str, text: &str) -> bool {
    let pattern = if pattern.ends_with('/') { format!("{pattern}*") } else { pattern.to_owned() };
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// What the sides are of one mind about once each has shown how it came to its value: who says another value now than
/// before has found its own mistake.
#[must_use]
pub fn by_methods(
    sides: &[Side],
    words: &BTreeMap<TaskIndex, Word>,
    tolerance: Tolerance,
) -> Option<ConflictVerdict> {
    let now = |side: &Side| match words.get(&side.task).and_then(|word| word.value.clone()) {
        Some(value) => Side { claim: crate::flow::Claim { value, ..side.claim.clone() }, ..side.clone() },
        None => side.clone(),
    };
    let now: Vec<Side> = sides.iter().map(now).collect();
    let agreed = match positions(&now, tolerance).as_slice() {
        [only] => only.value.clone(),
        [] | [_, ..] => return None,
    };
    let corrected: Vec<String> = sides
        .iter()
        .filter(|side| !tolerance.agrees(&side.claim.value, &agreed))
        .map(|side| {
            let method = words.get(&side.task).map_or("", |word| word.method.as_str());
            if method.is_empty() { side.task.to_string() } else { format!("{}: {method}", side.task) }
        })
        .collect();
    let why = format!(
        "having shown its method, who claimed something else corrected it ({})",
        corrected.join("; ")
    );
    as_said(sides, &agreed, (ConflictStep::Methods, why), tolerance)
}

/// What somebody said who was asked.
#[must_use]
pub fn as_said(
    sides: &[Side],
    value: &ClaimValue,
    (by, why): (ConflictStep, String),
    tolerance: Tolerance,
) -> Option<ConflictVerdict> {
    let with: Vec<Side> =
        sides.iter().filter(|side| tolerance.agrees(&side.claim.value, value)).cloned().collect();
    // A judge chooses among what is claimed; only who looks for himself may find another value.
    if with.is_empty() && by == ConflictStep::Arbiter {
        return None;
    }
    Some(verdict(sides, &Position { value: value.clone(), sides: with }, by, why))
}

fn verdict(sides: &[Side], right: &Position, by: ConflictStep, why: String) -> ConflictVerdict {
    let mut winners = right.tasks();
    winners.sort();
    let mut losers: Vec<TaskIndex> =
        sides.iter().map(|side| side.task.clone()).filter(|task| !winners.contains(task)).collect();
    losers.sort();
    let mut evidence: Vec<Citation> =
        right.sides.iter().flat_map(|side| side.claim.evidence.iter().cloned()).collect();
    evidence.sort();
    evidence.dedup();
    evidence.truncate(MOST_EVIDENCE);
    ConflictVerdict { value: right.value.clone(), by, why, winners, losers, evidence }
}
