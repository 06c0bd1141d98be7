//! Finds runs that nobody drives, and drives them.
//!
//! A lapsed lease names the runs that were left; those created or taken over after it was last renewed follow from the
//! record's newest part. So the cost is that of what is unfinished, however long the history. The lease is removed when each of
//! its runs has ended or is named by another lease: at every moment each unfinished run is named by some lease, or
//! stands after the position that its creator's lease names.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use muster_bus::{BusError, RecordFilter, SeenLease};
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::{Entry, Input, RecordEvent, RunEvent};

use super::office::Office;
use super::registry::Registry;
use super::run_actor::Mail;

/// How often the newest decision of what is left is looked at, to find out whether it has ended.
const LOOK: Duration = Duration::from_secs(1);

/// The version of events that is taken for granted of a run of which none is known: any orchestrator may try it.
const ANY_VERSION: u32 = 1;

/// Runs that were left behind with a lease, by run, with the version of their events.
type Left = BTreeMap<RunId, u32>;

/// Takes runs over whose orchestrator's lease has lapsed, for as long as it is polled.
///
/// # Errors
/// When the leases cannot be watched, or cannot be watched any more.
pub(super) async fn adopt_orphans(office: Arc<Office>) -> Result<(), BusError> {
    let mut changes = office.bus.leases().watch().await?;
    let mut estates = Estates::default();
    loop {
        tokio::select! {
            change = changes.next() => match change {
                Some(change) => office.ownership.sessions().take(change),
                None => break,
            },
            () = office.ownership.hint() => {}
        }
        if let Err(error) = estates.settle(&office).await {
            tracing::warn!(%error, "what another orchestrator left could not be looked through; trying again");
        }
    }
    Err(BusError::Other { what: "watching leases".into(), reason: "the bus gave no more changes".into() })
}

/// Takes up runs that no lease names: the record is older than leases are. Looks at the newest runs only.
///
/// # Errors
/// When the bus fails.
pub(super) async fn adopt_unnamed(office: &Arc<Office>) -> Result<(), BusError> {
    for run in office.bus.record().runs().await?.into_iter().take(office.settings.scan_runs) {
        if is_unfinished(office, run).await? {
            take_over(office, run, None);
        }
    }
    Ok(())
}

/// What lapsed leases left, by the names of the leases.
#[derive(Default)]
struct Estates {
    known: HashMap<String, Estate>,
}

struct Estate {
    left: Left,
    looked: Option<Instant>,
}

impl Estates {
    /// Takes over what falls to this orchestrator, and removes leases of which nothing is left.
    async fn settle(&mut self, office: &Arc<Office>) -> Result<(), BusError> {
        let lapsed: Vec<SeenLease> = office.ownership.sessions().lapsed().cloned().collect();
        self.known.retain(|key, _| lapsed.iter().any(|lease| lease.key == *key));
        if office.ownership.epoch().is_none() {
            return Ok(());
        }
        self.look_through(office, &lapsed).await?;
        for lease in &lapsed {
            self.take_over_of(office, lease);
        }
        for lease in &lapsed {
            self.bury(office, lease).await?;
        }
        Ok(())
    }

    /// Finds out what leases left that lapsed since the last time. However many they are, the newest part of the record
    /// is read once: orchestrators that die often must not leave more work than the next one gets done in its life.
    async fn look_through(&mut self, office: &Office, lapsed: &[SeenLease]) -> Result<(), BusError> {
        let new: Vec<&SeenLease> =
            lapsed.iter().filter(|lease| !self.known.contains_key(&lease.key)).collect();
        let Some(from) = new.iter().map(|lease| lease.note.through).min() else { return Ok(()) };
        let decisions = office.bus.record().read(&RecordFilter::AllDecisions, from).await?;
        for lease in new {
            let left = left_by(lease, &decisions);
            tracing::info!(holder = %lease.holder, runs = left.len(), "the lease of an orchestrator has lapsed");
            self.known.insert(lease.key.clone(), Estate { left, looked: None });
        }
        Ok(())
    }

    fn take_over_of(&mut self, office: &Arc<Office>, lease: &SeenLease) {
        let Some(estate) = self.known.get_mut(&lease.key) else { return };
        estate.left.retain(|run, _| office.ownership.sessions().owner(*run).is_none());
        for (run, version) in &estate.left {
            if falls_to_us(office, *run, *version) {
                take_over(office, *run, Some(&lease.holder));
            }
        }
    }

    /// Removes a lease of which nothing is left, if that falls to this orchestrator.
    async fn bury(&mut self, office: &Office, lease: &SeenLease) -> Result<(), BusError> {
        let Some(estate) = self.known.get_mut(&lease.key) else { return Ok(()) };
        if office.ownership.sessions().undertaker(&lease.key) != Some(office.bus.who()) {
            return Ok(());
        }
        estate.forget_the_ended(office).await?;
        if estate.left.is_empty() {
            office.bus.leases().remove(&lease.key, lease.revision).await?;
        }
        Ok(())
    }
}

impl Estate {
    /// Forgets runs that ended before anybody's lease named them.
    async fn forget_the_ended(&mut self, office: &Office) -> Result<(), BusError> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return Ok(());
        }
        let runs: Vec<RunId> = self.left.keys().copied().collect();
        for run in runs {
            if !is_unfinished(office, run).await? {
                self.left.remove(&run);
            }
        }
        self.looked = Some(Instant::now());
        Ok(())
    }
}

/// The runs that a lease names, and those that its holder created or took over after it was last renewed, without those
/// that have ended. `decisions` begin at the latest where the lease stood.
fn left_by(lease: &SeenLease, decisions: &[Entry]) -> Left {
    let named = lease.note.runs.iter().flat_map(|(version, runs)| runs.iter().map(|run| (*run, *version)));
    let mut left: Left = named.collect();
    for entry in decisions.iter().filter(|entry| entry.seq > lease.note.through) {
        if author(entry) == Some(&lease.holder) {
            left.entry(entry.run).or_insert_with(|| version_in(entry));
        }
    }
    for entry in decisions.iter().filter(|entry| ends(entry)) {
        left.remove(&entry.run);
    }
    left
}

fn falls_to_us(office: &Office, run: RunId, version: u32) -> bool {
    let is_free = !office.registry.has(run) && !office.is_set_aside(run);
    let has_room = office.registry.len() < office.settings.max_runs;
    is_free && has_room && office.ownership.sessions().heir(run, version) == Some(office.bus.who())
}

fn take_over(office: &Arc<Office>, run: RunId, from: Option<&AgentId>) {
    tracing::info!(%run, from = from.map(AgentId::as_str), "taking over a run that nobody drives");
    drop(Registry::open(office, run));
    office.registry.tell(run, Mail::Wake(Input::Capacity));
}

/// Whether the last decision of a run has not ended it. A record that cannot be read is not for us.
async fn is_unfinished(office: &Office, run: RunId) -> Result<bool, BusError> {
    match office.bus.record().last_decision(run).await {
        Ok(Some(last)) if is_silent(&last) => Ok(!any_ends(office, run).await?),
        Ok(Some(last)) => Ok(!ends(&last)),
        Ok(None) => Ok(false),
        Err(error @ BusError::Unreadable { .. }) => {
            tracing::warn!(%run, %error, "a run is left alone");
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

const fn author(entry: &Entry) -> Option<&AgentId> {
    match &entry.event {
        RecordEvent::Decided(decided) => Some(&decided.by),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => None,
    }
}

fn version_in(entry: &Entry) -> u32 {
    let RecordEvent::Decided(decided) = &entry.event else { return ANY_VERSION };
    decided.events.iter().find_map(RunEvent::version).unwrap_or(ANY_VERSION)
}

/// Whether a decision says nothing about how the run stands: it only closed inputs.
const fn is_silent(entry: &Entry) -> bool {
    match &entry.event {
        RecordEvent::Decided(decided) => decided.events.is_empty() && decided.offer.is_none(),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => false,
    }
}

async fn any_ends(office: &Office, run: RunId) -> Result<bool, BusError> {
    let decisions = office.bus.record().read(&RecordFilter::Decisions(run), Seq(0)).await?;
    Ok(decisions.iter().any(ends))
}

fn ends(entry: &Entry) -> bool {
    match &entry.event {
        RecordEvent::Decided(decided) => decided.events.iter().any(RunEvent::ends_run),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => false,
    }
}
