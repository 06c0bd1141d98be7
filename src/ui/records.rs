//! Records of runs that were looked at last: what is there is not read again, so that going back and forth in a run costs little.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use muster_bus::{Bus, BusError, RecordFilter, Unreadable};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::Entry;
use muster_shared::sync::lock;

use crate::commands::select;
use crate::exit::Failure;

/// Most runs that are kept.
const MOST_RUNS: usize = 24;
/// Most entries that are kept, of all of them together.
const MOST_ENTRIES: usize = 60_000;

/// The record of a run as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct KeptRecord {
    /// What can be read of it.
    pub(crate) entries: Arc<Vec<Entry>>,
    /// What stands there and cannot.
    pub(crate) strays: Vec<Unreadable>,
    /// What is missing from it, in words.
    pub(crate) missing: Option<String>,
    /// The last that was read.
    last: Seq,
}

impl KeptRecord {
    /// The same, where nothing in it is of the kind that keeps a run from being followed.
    ///
    /// # Errors
    /// When something in it cannot be read that somebody of the run wrote.
    pub(crate) fn followed(self: &Arc<Self>) -> Result<Arc<Self>, Failure> {
        match self.strays.iter().find(|stray| !stray.of_nobody) {
            None => Ok(Arc::clone(self)),
            Some(stray) => Err(BusError::from(stray.clone()).into()),
        }
    }
}

/// The records.
#[derive(Default)]
pub(crate) struct Records {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    runs: BTreeMap<RunId, Slot>,
    /// Counts uses: who was used longest ago goes first.
    clock: u64,
}

/// The place of one run. Several who want it at the same time wait for one who reads.
#[derive(Clone, Default)]
struct Slot {
    used: u64,
    entries: usize,
    record: Arc<tokio::sync::Mutex<Arc<KeptRecord>>>,
}

impl Records {
    /// The record of a run as it stands now.
    ///
    /// # Errors
    /// When the bus fails.
    pub(crate) async fn of(&self, bus: &Bus, run: RunId) -> Result<Arc<KeptRecord>, Failure> {
        let slot = self.slot(run);
        let mut kept = slot.lock().await;
        let record = bus.record();
        // Counted first: what is written meanwhile is no loss.
        let counted = record.counted(run).await?;
        let read = record.read_each(&RecordFilter::Run(run), kept.last).await?;
        if read.is_empty() && came(&kept) >= counted {
            return Ok(Arc::clone(&kept));
        }
        let KeptRecord { mut entries, mut strays, mut last, .. } = owned(std::mem::take(&mut *kept));
        let all = Arc::make_mut(&mut entries);
        for one in read {
            match one {
                Ok(entry) => {
                    last = last.max(entry.seq);
                    all.push(entry);
                }
                Err(stray) => {
                    last = last.max(stray.seq);
                    strays.push(stray);
                }
            }
        }
        let held_back = select::held_back(counted, all.len() + strays.len());
        let said: Vec<String> = select::missing(all).into_iter().chain(held_back).collect();
        let missing = (!said.is_empty()).then(|| said.join("; "));
        *kept = Arc::new(KeptRecord { entries, strays, missing, last });
        self.note(run, kept.entries.len());
        Ok(Arc::clone(&kept))
    }

    /// The place of a run, which is used by that.
    fn slot(&self, run: RunId) -> Arc<tokio::sync::Mutex<Arc<KeptRecord>>> {
        let mut kept = lock(&self.kept);
        kept.clock += 1;
        let clock = kept.clock;
        let slot = kept.runs.entry(run).or_default();
        slot.used = clock;
        let record = Arc::clone(&slot.record);
        kept.make_room(run);
        record
    }

    /// Takes note of how much a run has.
    fn note(&self, run: RunId, entries: usize) {
        let mut kept = lock(&self.kept);
        if let Some(slot) = kept.runs.get_mut(&run) {
            slot.entries = entries;
        }
        kept.make_room(run);
    }
}

impl Kept {
    /// Lets go of whoever was used longest ago, but for this run.
    fn make_room(&mut self, but: RunId) {
        let entries = |kept: &Self| kept.runs.values().map(|slot| slot.entries).sum::<usize>();
        while self.runs.len() > MOST_RUNS || entries(self) > MOST_ENTRIES {
            let others = self.runs.iter().filter(|(run, _)| **run != but);
            let Some(oldest) = others.min_by_key(|(_, slot)| slot.used).map(|(run, _)| *run) else { break };
            self.runs.remove(&oldest);
        }
    }
}

fn came(record: &KeptRecord) -> u64 {
    (record.entries.len() + record.strays.len()) as u64
}

fn owned(record: Arc<KeptRecord>) -> KeptRecord {
    Arc::try_unwrap(record).unwrap_or_else(|shared| KeptRecord {
        entries: Arc::clone(&shared.entries),
        strays: shared.strays.clone(),
        missing: shared.missing.clone(),
        last: shared.last,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_are_kept_and_the_longest_unused_goes_first() {
        let records = Records::default();
        let run = |n: usize| RunId::from_uuid(uuid::Uuid::from_u128(n as u128));
        let is_kept = |n: usize| records.kept.lock().is_ok_and(|kept| kept.runs.contains_key(&run(n)));
        (0..MOST_RUNS).for_each(|n| drop(records.slot(run(n))));
        // Used again.
        drop(records.slot(run(0)));
        drop(records.slot(run(MOST_RUNS)));
        assert!(is_kept(0) && !is_kept(1) && is_kept(2));
        records.note(run(2), MOST_ENTRIES);
        assert!(is_kept(2) && is_kept(0), "as much as may be kept");
        records.note(run(3), 1);
        assert!(!is_kept(2) && is_kept(3), "more than may be kept, and 2 was used longest ago");
    }
}
