//! How far the record goes, or was read: a position in each of its parts. Pure.

use muster_shared::ids::{RunId, Seq};
use serde::{Deserialize, Serialize};

use crate::partition::{Part, Partitions};

/// A position in each part of the record. Of a record in one part, it is written as that position alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Places(Vec<Seq>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    One(Seq),
    Each(Vec<Seq>),
}

impl From<Written> for Places {
    fn from(written: Written) -> Self {
        match written {
            Written::One(seq) => Self(vec![seq]),
            Written::Each(places) => Self(places),
        }
    }
}

impl From<Places> for Written {
    fn from(Places(places): Places) -> Self {
        match places[..] {
            [one] => Self::One(one),
            _ => Self::Each(places),
        }
    }
}

/// The position of one stream, for whoever reads that one only; or the beginning of all.
impl From<Seq> for Places {
    fn from(seq: Seq) -> Self {
        Self(vec![seq])
    }
}

impl FromIterator<Seq> for Places {
    fn from_iter<I: IntoIterator<Item = Seq>>(places: I) -> Self {
        Self(places.into_iter().collect())
    }
}

impl Default for Places {
    fn default() -> Self {
        Self::from(Seq(0))
    }
}

impl Places {
    /// The position in one part. One that stands alone holds for every part.
    #[must_use]
    pub fn in_part(&self, part: Part) -> Seq {
        match self.0[..] {
            [one] => one,
            _ => self.0.get(part.at()).copied().unwrap_or_default(),
        }
    }

    /// Whether an entry of a run stands at or before this.
    #[must_use]
    pub fn covers(&self, run: RunId, seq: Seq) -> bool {
        seq <= self.of_run(run)
    }

    /// Goes on to an entry of a run, unless it is there already.
    pub fn reach(&mut self, run: RunId, seq: Seq) {
        let at = self.part_of(run).map_or(0, Part::at);
        if let Some(place) = self.0.get_mut(at) {
            *place = seq.max(*place);
        }
    }

    /// Goes on to these, in each part where they are further.
    pub fn reach_all(&mut self, others: &Self) {
        let count = self.0.len().max(others.0.len());
        let at = |places: &Self, n: usize| places.0.get(n).copied().unwrap_or_default();
        *self = (0..count).map(|n| at(self, n).max(at(others, n))).collect();
    }

    /// The earliest of these in each part; nothing when there are none.
    #[must_use]
    pub fn earliest<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        all.into_iter().cloned().reduce(|one, other| {
            // What one of them does not know of begins at its beginning.
            let count = one.0.len().max(other.0.len());
            let at = |places: &Self, n: usize| places.0.get(n).copied().unwrap_or_default();
            (0..count).map(|n| at(&one, n).min(at(&other, n))).collect()
        })
    }

    /// Whether nothing stands before this in any part.
    #[must_use]
    pub fn is_beginning(&self) -> bool {
        self.0.iter().all(|place| *place == Seq(0))
    }

    fn of_run(&self, run: RunId) -> Seq {
        self.part_of(run)
            .map_or_else(|| self.0.first().copied().unwrap_or_default(), |part| self.in_part(part))
    }

    fn part_of(&self, run: RunId) -> Option<Part> {
        Some(Partitions::of_count(self.0.len())?.part_of(run))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn run(n: u128) -> RunId {
        RunId::from_uuid(Uuid::from_u128(n))
    }

    fn places(of: [u64; 4]) -> Places {
        of.map(Seq).into_iter().collect()
    }

    #[test]
    fn one_place_is_written_as_it_always_was() {
        assert_eq!(serde_json::to_string(&Places::from(Seq(7))).unwrap(), "7");
        assert_eq!(serde_json::from_str::<Places>("7").unwrap(), Places::from(Seq(7)));
        let four = places([1, 2, 3, 4]);
        assert_eq!(serde_json::to_string(&four).unwrap(), "[1,2,3,4]");
        assert_eq!(serde_json::from_str::<Places>("[1,2,3,4]").unwrap(), four);
    }

    #[test]
    fn what_a_place_covers_depends_on_the_part_of_the_run() {
        // Runs 0 and 1 are in the parts 1 and 2 of four.
        let four = places([0, 10, 20, 0]);
        assert!(four.covers(run(0), Seq(10)) && !four.covers(run(0), Seq(11)));
        assert!(four.covers(run(1), Seq(20)) && !four.covers(run(1), Seq(21)));
        let one = Places::from(Seq(10));
        assert!(one.covers(run(0), Seq(10)) && !one.covers(run(1), Seq(11)));
    }

    #[test]
    fn places_go_on_and_never_back() {
        let mut four = places([0, 10, 20, 0]);
        four.reach(run(0), Seq(12));
        four.reach(run(1), Seq(7));
        assert_eq!(four, places([0, 12, 20, 0]));
        four.reach_all(&places([5, 1, 30, 0]));
        assert_eq!(four, places([5, 12, 30, 0]));
        let mut unknown = Places::default();
        unknown.reach_all(&four);
        assert_eq!(unknown, four);
    }

    #[test]
    fn the_earliest_of_several_misses_nothing_of_any() {
        let all = [places([5, 12, 30, 4]), places([6, 11, 30, 3])];
        assert_eq!(Places::earliest(&all), Some(places([5, 11, 30, 3])));
        assert_eq!(Places::earliest(&[]), None);
        assert!(Places::default().is_beginning() && !all[0].is_beginning());
    }
}
