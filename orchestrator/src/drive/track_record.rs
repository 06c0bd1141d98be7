//! What agents and tools did in earlier runs, at hand for the choice of agents. It is held in memory, and no task waits
//! for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::StreamExt;
use muster_bus::BusError;
use muster_shared::ids::AgentId;
use muster_shared::sync::lock;
use muster_shared::track_record::{Identity, RunTrackRecord, Tally, TrackRecords};

use super::context::OrchestratorContext;
use super::repeat;

/// What is known of everybody's work.
#[derive(Debug, Default)]
pub(crate) struct TrackRecord {
    known: Mutex<TrackRecords>,
}

impl TrackRecord {
    /// Takes in what was done in a run.
    pub(super) fn learn(&self, kept: RunTrackRecord) {
        self.lock().learn(kept);
    }

    /// What these agents did, as far as that is known.
    pub(super) fn of_agents<'a>(
        &self,
        agents: impl Iterator<Item = (&'a AgentId, Identity)>,
    ) -> BTreeMap<AgentId, Tally> {
        let known = self.lock();
        agents.filter_map(|(agent, who)| Some((agent.clone(), known.of_agent(&who)?))).collect()
    }

    /// What to tell about tools that mostly failed, worst first.
    pub(super) fn advice(&self, most: usize) -> Vec<String> {
        self.lock().advice(most)
    }

    /// Whole after every call that changes it, so a panic elsewhere does not spoil it.
    pub(super) fn lock(&self) -> MutexGuard<'_, TrackRecords> {
        lock(&self.known)
    }
}

/// Reads what there is, then follows what others keep, for as long as it is polled.
pub(super) async fn follow(context: Arc<OrchestratorContext>) {
    repeat("what agents did in earlier runs cannot be read", || read(&context)).await;
}

async fn read(context: &OrchestratorContext) -> Result<(), BusError> {
    let track_record = context.bus.track_record();
    for kept in track_record.all().await? {
        context.track_record.learn(kept);
    }
    context.judge();
    let mut kept = track_record.watch().await?;
    while let Some(kept) = kept.next().await {
        context.track_record.learn(kept);
        context.judge();
    }
    Ok(())
}
