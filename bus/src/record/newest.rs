//! The newest runs, found from the end of the record backwards: what ended long ago costs nothing.

use std::collections::BTreeSet;

use muster_shared::ids::{RunId, Seq};

use super::Record;
use crate::backend::{FENCED_AFTER, Stored};
use crate::error::BusError;
use crate::partition::Part;
use crate::subject::Subject;

/// Positions that are looked through at first for each run that is wanted: as many as a run of eight tasks takes.
const POSITIONS_PER_RUN: u64 = 100;
/// How much further it is looked each time that too few are found.
const FURTHER: u64 = 4;

/// The newest runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewestRuns {
    /// Newest first.
    pub runs: Vec<RunId>,
    /// Those found beside them of which the beginning is lost.
    pub fragments: Vec<RunId>,
}

/// What part of the record tells of runs.
#[derive(Debug, Default)]
struct Seen {
    /// Runs that began here.
    begun: BTreeSet<RunId>,
    /// Runs of which there are decisions that are no offers, as there are of each that is whole.
    decided: BTreeSet<RunId>,
    /// All runs with a decision or an offer.
    named: BTreeSet<RunId>,
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
                seen.decided.insert(run);
                // The first decision of a run is the one before which nothing stood.
                if head.message.headers.get(FENCED_AFTER) == Some("0") {
                    seen.begun.insert(run);
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

impl Record {
    /// The newest runs, `limit` at most. Only as much of the record is looked through as they take.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn newest_runs(&self, limit: usize) -> Result<NewestRuns, BusError> {
        let mut found = Seen::default();
        let mut fragments = BTreeSet::new();
        for part in self.core.parts(None).await? {
            let (seen, is_all) = self.newest_in(part, limit).await?;
            for run in seen.named.difference(&seen.begun).take(limit) {
                if !seen.decided.contains(run) && (is_all || self.is_fragment(*run).await?) {
                    fragments.insert(*run);
                }
            }
            found.begun.extend(seen.begun);
        }
        let runs = found.begun.into_iter().rev().take(limit).collect();
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
            if seen.begun.len() >= limit {
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
