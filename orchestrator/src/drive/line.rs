//! Who waits for a place of a queue: those of higher priority first, of the same whoever waited longest. Whoever was passed
//! over often enough is next, whatever its priority, so that nobody waits for ever.

use std::cmp::Reverse;
use std::collections::VecDeque;

use muster_shared::ids::RunId;

/// How often somebody is passed over by those of higher priority before it is next.
const MOST_PASSED_OVER: u32 = 16;

/// The runs that wait.
#[derive(Debug, Default)]
pub(super) struct Line(VecDeque<Waiting>);

#[derive(Debug)]
struct Waiting {
    run: RunId,
    priority: i8,
    passed_over: u32,
}

impl Waiting {
    const fn is_due(&self) -> bool {
        self.passed_over >= MOST_PASSED_OVER
    }
}

impl Line {
    /// Puts a run behind those that wait with the same priority or a higher one. One that waits keeps its place.
    pub(super) fn join(&mut self, run: RunId, priority: i8) {
        if !self.runs().any(|other| other == run) {
            let place = self.0.iter().position(|other| other.priority < priority).unwrap_or(self.0.len());
            self.0.insert(place, Waiting { run, priority, passed_over: 0 });
        }
    }

    /// A run does not wait any more.
    pub(super) fn leave(&mut self, run: RunId) {
        self.0.retain(|other| other.run != run);
    }

    /// Takes the next one out.
    pub(super) fn next(&mut self) -> Option<RunId> {
        let due = self.0.iter().enumerate().filter(|(_, waiting)| waiting.is_due());
        let due = due.max_by_key(|(at, waiting)| (waiting.passed_over, Reverse(*at)));
        let at = due.map_or(0, |(at, _)| at);
        let Waiting { run, priority, .. } = self.0.remove(at)?;
        self.pass_over(priority, 1);
        Some(run)
    }

    /// So many places went to somebody of this priority: those of a lower one wait on.
    pub(super) fn pass_over(&mut self, priority: i8, places: u32) {
        for other in self.0.iter_mut().filter(|other| other.priority < priority) {
            other.passed_over = other.passed_over.saturating_add(places);
        }
    }

    /// How many others come before a run of this priority, whether it waits or not.
    pub(super) fn before(&self, run: RunId, priority: i8) -> u32 {
        let comes = |other: &&Waiting| other.run != run && (other.priority >= priority || other.is_due());
        u32::try_from(self.0.iter().filter(comes).count()).unwrap_or(u32::MAX)
    }

    /// All that wait, in order.
    pub(super) fn runs(&self) -> impl Iterator<Item = RunId> + '_ {
        self.0.iter().map(|waiting| waiting.run)
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn run(n: u128) -> RunId {
        RunId::from_uuid(Uuid::from_u128(n))
    }

    proptest! {
        /// Whoever keeps coming with whatever priority: who waits gets its turn after so many that came before it, and so
        /// many that pass it over.
        #[test]
        fn nobody_waits_for_ever(
            before in prop::collection::vec(any::<i8>(), 0..20),
            own in any::<i8>(),
            later in prop::collection::vec(any::<i8>(), 100),
        ) {
            let mut line = Line::default();
            for (n, priority) in (10..).zip(&before) {
                line.join(run(n), *priority);
            }
            line.join(run(1), own);
            let most = 2 * (before.len() + MOST_PASSED_OVER as usize) + 1;
            let mut turns = 0;
            for (n, priority) in (100..).zip(later) {
                line.join(run(n), priority);
                turns += 1;
                if line.next() == Some(run(1)) {
                    break;
                }
            }
            prop_assert!(turns <= most, "{turns} turns, {most} are the most");
        }
    }
}
