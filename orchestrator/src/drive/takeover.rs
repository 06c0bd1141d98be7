//! Finds runs that nobody drives, and drives them.

use std::collections::HashSet;
use std::sync::Arc;

use muster_bus::{BusError, RecordFilter};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{Input, RecordEvent, RunEvent};

use super::office::Office;
use super::registry::Registry;
use super::run_actor::Mail;

/// Looks for runs without an owner: at once among the newest runs of the record, then again and again among those
/// whose lease was seen and is gone.
pub(super) async fn adopt_orphans(office: Arc<Office>) -> Result<(), BusError> {
    let mut suspects: HashSet<RunId> = unfinished(&office).await?.into_iter().collect();
    let mut beat = tokio::time::interval(office.bus.settings().lease_ttl / 2);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        if let Err(error) = sweep(&office, &mut suspects).await {
            tracing::warn!(%error, "runs without an owner could not be looked for; trying again");
        }
    }
}

async fn sweep(office: &Arc<Office>, suspects: &mut HashSet<RunId>) -> Result<(), BusError> {
    let leases = office.bus.leases().list().await?;
    let owned: HashSet<RunId> = leases.iter().map(|(run, _)| *run).collect();
    let orphans: Vec<RunId> = suspects.difference(&owned).copied().collect();
    for run in orphans {
        if office.registry.has(run) || office.is_set_aside(run) {
            continue;
        }
        if is_unfinished(office, run).await? {
            tracing::info!(%run, "taking over a run that nobody drives");
            drop(Registry::open(office, run));
            office.registry.tell(run, Mail::Wake(Input::Capacity));
        } else {
            suspects.remove(&run);
        }
    }
    let mine = office.bus.who();
    suspects.extend(leases.into_iter().filter(|(_, holder)| holder != mine).map(|(run, _)| run));
    Ok(())
}

async fn unfinished(office: &Office) -> Result<Vec<RunId>, BusError> {
    let mut found = Vec::new();
    for run in office.bus.record().runs().await?.into_iter().take(office.settings.scan_runs) {
        if is_unfinished(office, run).await? {
            found.push(run);
        }
    }
    Ok(found)
}

/// Whether the last decision of a run has not ended it. A record that cannot be read is not for us.
async fn is_unfinished(office: &Office, run: RunId) -> Result<bool, BusError> {
    let decisions = match office.bus.record().read(&RecordFilter::Decisions(run), Seq(0)).await {
        Ok(decisions) => decisions,
        Err(error @ BusError::Unreadable { .. }) => {
            tracing::warn!(%run, %error, "a run is left alone");
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let Some(last) = decisions.last() else { return Ok(false) };
    Ok(match &last.event {
        RecordEvent::Decided(decided) => !decided.events.iter().any(ends_run),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => true,
    })
}

const fn ends_run(event: &RunEvent) -> bool {
    matches!(event, RunEvent::RunCompleted { .. } | RunEvent::RunFailed { .. } | RunEvent::RunAborted { .. })
}
