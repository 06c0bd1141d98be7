//! Who is of one mind.

use super::compare::Tolerance;
use super::side::Side;
use crate::flow::ClaimValue;
use crate::ids::TaskIndex;

/// A value, and those who claim it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The value.
    pub value: ClaimValue,
    /// The sides that hold it, by their place among those given in order of their tasks.
    pub sides: Vec<Side>,
}

impl Position {
    /// Whose it is.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskIndex> {
        self.sides.iter().map(|side| side.task.clone()).collect()
    }
}

/// Parts sides by what they hold: the value that most agree with first. Within a tolerance to agree is not handed on
/// from one to the next, so each position stands around one value.
#[must_use]
pub fn positions(sides: &[Side], tolerance: Tolerance) -> Vec<Position> {
    let mut left: Vec<Side> = sides.to_vec();
    left.sort_by_cached_key(|side| (side.task.clone(), side.claim.value.to_string()));
    let mut found = Vec::new();
    while let Some(centre) = centre(&left, tolerance) {
        let (with, without): (Vec<Side>, Vec<Side>) =
            left.into_iter().partition(|side| agree(&centre, side, tolerance));
        found.push(Position { value: centre.claim.value.clone(), sides: with });
        left = without;
    }
    found
}

/// The side that most agree with; among equals the one whose value comes first.
fn centre(sides: &[Side], tolerance: Tolerance) -> Option<Side> {
    let with = |side: &Side| sides.iter().filter(|other| agree(side, other, tolerance)).count();
    let key = |side: &&Side| (std::cmp::Reverse(with(side)), side.claim.value.to_string(), side.task.clone());
    sides.iter().min_by_key(key).cloned()
}

/// Whether two sides claim the same. One always agrees with itself.
fn agree(one: &Side, other: &Side, tolerance: Tolerance) -> bool {
    one.claim.value == other.claim.value || tolerance.agrees(&one.claim.value, &other.claim.value)
}
