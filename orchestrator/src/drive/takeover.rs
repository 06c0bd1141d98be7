//! Finds runs that nobody drives, and drives them.
//!
//! A lapsed lease names the runs that were left; those created or taken over after it was last renewed follow from the
//! record's newest part. So the cost is that of what is unfinished, however long the history. The lease is removed when each of
//! its runs has ended or is named by another lease: at every moment each unfinished run is named by some lease, or
//! stands after the position that its creator's lease names.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use muster_bus::{BusError, Places, RecordFilter, SeenLease};
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::{Entry, Input, RecordEvent, RunEvent};

use super::context::OrchestratorContext;
use super::registry::Registry;
use super::run_actor::RunMessage;

/// How often the newest decision of what is left is looked at, to find out whether it has ended.
const LOOK: Duration = Duration::from_secs(1);

/// Takes runs over whose orchestrator's lease has lapsed, for as long as it is polled.
///
/// # Errors
/// When the leases cannot be watched, or cannot be watched any more.
pub(super) async fn adopt_orphans(context: Arc<OrchestratorContext>) -> Result<(), BusError> {
    let mut changes = context.bus.leases().watch().await?;
    let mut abandoned = AbandonedRunsByLease::default();
    loop {
        tokio::select! {
            change = changes.next() => match change {
                Some(change) => context.ownership.sessions().take(change),
                None => break,
            },
            () = context.ownership.hint() => {}
        }
        if let Err(error) = abandoned.settle(&context).await {
            tracing::warn!(%error, "what another orchestrator left could not be looked through; trying again");
        }
    }
    Err(BusError::Other { what: "watching leases".into(), reason: "the bus gave no more changes".into() })
}

/// What lapsed leases left, by the names of the leases.
#[derive(Default)]
struct AbandonedRunsByLease {
    known: HashMap<String, AbandonedRuns>,
}

struct AbandonedRuns {
    left: BTreeSet<RunId>,
    looked: Option<Instant>,
}

impl AbandonedRunsByLease {
    /// Takes over what falls to this orchestrator, and removes leases of which nothing is left.
    async fn settle(&mut self, context: &Arc<OrchestratorContext>) -> Result<(), BusError> {
        let lapsed: Vec<SeenLease> = context.ownership.sessions().lapsed().cloned().collect();
        self.known.retain(|key, _| lapsed.iter().any(|lease| lease.key == *key));
        if context.ownership.epoch().is_none() {
            return Ok(());
        }
        self.look_through(context, &lapsed).await?;
        for lease in &lapsed {
            self.take_over_of(context, lease);
        }
        for lease in &lapsed {
            self.bury(context, lease).await?;
        }
        Ok(())
    }

    /// Finds out what leases left that lapsed since the last time. However many they are, the newest part of the record
    /// is read once: orchestrators that die often must not leave more work than the next one gets done in its life.
    async fn look_through(
        &mut self,
        context: &OrchestratorContext,
        lapsed: &[SeenLease],
    ) -> Result<(), BusError> {
        let new: Vec<&SeenLease> =
            lapsed.iter().filter(|lease| !self.known.contains_key(&lease.key)).collect();
        let places = new.iter().map(|lease| &lease.note.through);
        let Some(from) = Places::earliest(places) else { return Ok(()) };
        let decisions = context.bus.record().read(&RecordFilter::AllDecisions, from).await?;
        for lease in new {
            let left = left_by(lease, &decisions);
            tracing::info!(holder = %lease.holder, runs = left.len(), "the lease of an orchestrator has lapsed");
            self.known.insert(lease.key.clone(), AbandonedRuns { left, looked: None });
        }
        Ok(())
    }

    fn take_over_of(&mut self, context: &Arc<OrchestratorContext>, lease: &SeenLease) {
        let Some(abandoned) = self.known.get_mut(&lease.key) else { return };
        abandoned.left.retain(|run| context.ownership.sessions().owner(*run).is_none());
        for run in &abandoned.left {
            if falls_to_us(context, *run) {
                take_over(context, *run, Some(&lease.holder));
            }
        }
    }

    /// Removes a lease of which nothing is left, if that falls to this orchestrator.
    async fn bury(&mut self, context: &OrchestratorContext, lease: &SeenLease) -> Result<(), BusError> {
        let Some(abandoned) = self.known.get_mut(&lease.key) else { return Ok(()) };
        if context.ownership.sessions().reaper(&lease.key) != Some(context.bus.who()) {
            return Ok(());
        }
        abandoned.forget_the_ended(context).await?;
        if abandoned.left.is_empty() {
            context.bus.leases().remove(&lease.key, lease.revision).await?;
        }
        Ok(())
    }
}

impl AbandonedRuns {
    /// Forgets runs that ended before anybody's lease named them.
    async fn forget_the_ended(&mut self, context: &OrchestratorContext) -> Result<(), BusError> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return Ok(());
        }
        let runs: Vec<RunId> = self.left.iter().copied().collect();
        for run in runs {
            if !is_unfinished(context, run).await? {
                self.left.remove(&run);
            }
        }
        self.looked = Some(Instant::now());
        Ok(())
    }
}

/// The runs that a lease names, and those that its holder created or took over after it was last renewed, without those
/// that have ended. `decisions` begin at the latest where the lease stood.
fn left_by(lease: &SeenLease, decisions: &[Entry]) -> BTreeSet<RunId> {
    let mut left: BTreeSet<RunId> = lease.note.runs.iter().chain(&lease.note.left_alone).copied().collect();
    let later = decisions.iter().filter(|entry| !lease.note.through.covers(entry.run, entry.seq));
    left.extend(later.filter(|entry| author(entry) == Some(&lease.holder)).map(|entry| entry.run));
    for entry in decisions.iter().filter(|entry| ends(entry)) {
        left.remove(&entry.run);
    }
    left
}

fn falls_to_us(context: &OrchestratorContext, run: RunId) -> bool {
    let is_free = !context.registry.has(run) && !context.is_set_aside(run);
    let has_room = context.registry.len() < context.settings.max_runs;
    is_free && has_room && context.ownership.sessions().successor(run) == Some(context.bus.who())
}

fn take_over(context: &Arc<OrchestratorContext>, run: RunId, from: Option<&AgentId>) {
    tracing::info!(%run, from = from.map(AgentId::as_str), "taking over a run that nobody drives");
    drop(Registry::open(context, run));
    context.registry.tell(run, RunMessage::Wake(Input::Capacity));
}

/// Whether the last decision of a run has not ended it. A record that cannot be read is not for us.
async fn is_unfinished(context: &OrchestratorContext, run: RunId) -> Result<bool, BusError> {
    match context.bus.record().last_decision(run).await {
        Ok(Some(last)) if is_silent(&last) => Ok(!any_ends(context, run).await?),
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
    if let RecordEvent::Decided(decided) = &entry.event { Some(&decided.by) } else { None }
}

/// Whether a decision says nothing about how the run stands: it only closed inputs.
const fn is_silent(entry: &Entry) -> bool {
    if let RecordEvent::Decided(decided) = &entry.event {
        decided.events.is_empty() && decided.offer.is_none()
    } else {
        false
    }
}

async fn any_ends(context: &OrchestratorContext, run: RunId) -> Result<bool, BusError> {
    let decisions = context.bus.record().read(&RecordFilter::Decisions(run), Seq(0)).await?;
    Ok(decisions.iter().any(ends))
}

fn ends(entry: &Entry) -> bool {
    entry.event.events().iter().any(RunEvent::ends_run)
}
