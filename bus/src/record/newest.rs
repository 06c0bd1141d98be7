//! The newest runs, found from the end of the record backwards: what ended long ago costs nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use muster_shared::ids::{RunId, Seq};
use muster_shared::time::Millis;

use super::Record;
use crate::backend::{FENCED_AFTER, OUTER_RUN, Stored};
use crate::error::BusError;
use crate::partition::Part;
use crate::subject::Subject;

/// Positions that are looked through at first for each run that is wanted: as many as a run of eight tasks takes.
const POSITIONS_PER_RUN: u64 = 100;
/// Maximum depth of child runs.
const MOST_LEVELS: usize = 20;
/// How much further it is looked each time that too few are found.
const FURTHER: u64 = 4;

/// The newest runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewestRuns {
    /// Newest first: by the entries that created them, not by their ids, which have the time of a client's clock. Runs that
    /// were begun for another one follow that one.
    pub runs: Vec<RunId>,
    /// Those found beside them of which the beginning is lost.
    pub fragments: Vec<RunId>,
}

/// What part of the record tells of runs.
#[derive(Debug, Default)]
struct Seen {
    /// Runs that were created here.
    begun: BTreeMap<RunId, Created>,
    /// Runs of which there are decisions that are no offers, as there are of each that is whole, with the first of them.
    decided: BTreeMap<RunId, Created>,
    /// All runs with a decision or an offer.
    named: BTreeSet<RunId>,
}

/// The entry that created a run.
#[derive(Debug, Clone, Copy)]
struct Created {
    seq: Seq,
    at: Millis,
    /// The parent run.
    outer: Option<RunId>,
}

impl Seen {
    /// What the heads of decisions and offers tell.
    fn of(heads: &[Stored]) -> Self {
        let mut seen = Self::default();
        for head in heads {
            let Ok(subject) = Subject::parse(&head.message.subject) else { continue };
            let Some(run) = subject.run() else { continue };
            seen.named.insert(run);
            if matches!(subject, Subject::Decided(_)) {
                let outer = head.message.headers.get(OUTER_RUN).and_then(|outer| outer.parse().ok());
                let created = Created { seq: head.seq, at: head.at, outer };
                let first = *seen.decided.entry(run).or_insert(created);
                // The first decision of a run is the one before which nothing stood.
                if head.message.headers.get(FENCED_AFTER) == Some("0") {
                    seen.begun.insert(run, first);
                }
            }
        }
        seen
    }

    /// The runs that began here, of the whole record: whoever wrote their beginning.
    fn of_all(self) -> Self {
        Self { begun: self.decided.clone(), ..self }
    }
}

/// The run, its parent, and so on, as far as they are known.
fn way(begun: &BTreeMap<RunId, Created>, run: RunId) -> impl Iterator<Item = &Created> {
    let outer = |created: &&Created| begun.get(&created.outer?);
    std::iter::successors(begun.get(&run), outer).take(MOST_LEVELS)
}

/// Place of a run among others: its outermost run, newest first, then the runs on the way to it.
fn path(begun: &BTreeMap<RunId, Created>, run: RunId) -> Vec<Reverse<(Millis, Seq)>> {
    let mut path: Vec<_> = way(begun, run).map(|created| Reverse((created.at, created.seq))).collect();
    path.reverse();
    path
}

impl Record {
    /// The newest runs, `limit` at most. Only as much of the record is looked through as they take.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn newest_runs(&self, limit: usize) -> Result<NewestRuns, BusError> {
        let (mut begun, mut is_whole) = (BTreeMap::new(), true);
        let mut fragments = BTreeSet::new();
        let parts = self.core.parts(None).await?;
        for part in parts.iter().copied() {
            let (seen, is_all) = self.newest_in(part, limit).await?;
            for run in seen.named.iter().filter(|run| !seen.begun.contains_key(run)).take(limit) {
                if !seen.decided.contains_key(run) && (is_all || self.is_fragment(*run).await?) {
                    fragments.insert(*run);
                }
            }
            // Partitions are compared by time, the runs of a single one by sequence number.
            let at = |at: Millis| if parts.len() > 1 { at } else { Millis(0) };
            let created = seen.begun.into_iter();
            begun.extend(created.map(|(run, created)| (run, Created { at: at(created.at), ..created })));
            is_whole &= is_all;
        }
        // A child of a run that is older than all these is not among the newest.
        let is_new =
            |run: &RunId| is_whole || way(&begun, *run).last().is_some_and(|last| last.outer.is_none());
        let mut runs: Vec<RunId> = begun.keys().copied().filter(is_new).collect();
        runs.sort_by_cached_key(|run| path(&begun, *run));
        runs.truncate(limit);
        Ok(NewestRuns { runs, fragments: fragments.into_iter().rev().collect() })
    }

    /// What the newest entries of a part tell, and whether these are all of it.
    async fn newest_in(&self, part: Part, limit: usize) -> Result<(Seen, bool), BusError> {
        let last = self.core.backend.state(part.stream(), None).await?.last;
        let mut span = POSITIONS_PER_RUN.saturating_mul(u64::try_from(limit).unwrap_or(u64::MAX)).max(1);
        loop {
            let after = Seq(last.0.saturating_sub(span));
            let seen = Seen::of(&self.core.heads_of(part, "run.>", after).await?);
            if after == Seq(0) {
                return Ok((seen.of_all(), true));
            }
            if seen.begun.values().filter(|created| created.outer.is_none()).count() >= limit {
                return Ok((seen, false));
            }
            span = span.saturating_mul(FURTHER);
        }
    }

    /// Whether a run has offers and no other decision.
    async fn is_fragment(&self, run: RunId) -> Result<bool, BusError> {
        Ok(self.core.last_of(run, Subject::Decided(run).to_string()).await?.is_none())
    }
}
