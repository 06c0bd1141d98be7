//! What all parts of one orchestrator share.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use actix::ArbiterHandle;
use dashmap::DashMap;
use muster_bus::Bus;
use muster_shared::ids::RunId;
use muster_shared::time::Millis;
use tokio_util::sync::CancellationToken;

use super::OrchestratorSettings;
use super::capacity::Capacity;
use super::ownership::Ownership;
use super::registry::Registry;

/// How long a run that cannot be handled is left alone before it is tried again.
const ASIDE: Duration = Duration::from_secs(60);

/// What all parts of one orchestrator share.
pub(crate) struct Office {
    pub(crate) bus: Bus,
    pub(crate) settings: OrchestratorSettings,
    pub(crate) capacity: Capacity,
    pub(crate) ownership: Ownership,
    pub(crate) registry: Registry,
    pub(crate) arbiter: ArbiterHandle,
    /// Set when this orchestrator stops: no run is owned from then on.
    pub(crate) closed: CancellationToken,
    aside: DashMap<RunId, Instant>,
}

impl Office {
    pub(crate) fn new(bus: Bus, settings: OrchestratorSettings, arbiter: ArbiterHandle) -> Self {
        Self {
            ownership: Ownership::new(bus.clone()),
            bus,
            settings,
            capacity: Capacity::default(),
            registry: Registry::default(),
            arbiter,
            closed: CancellationToken::new(),
            aside: DashMap::new(),
        }
    }

    /// Leaves a run alone for a while: it cannot be handled here, and others may fare better.
    pub(crate) fn set_aside(&self, run: RunId) {
        self.aside.insert(run, Instant::now() + ASIDE);
    }

    /// Whether a run is left alone.
    pub(crate) fn is_set_aside(&self, run: RunId) -> bool {
        self.aside.remove_if(&run, |_, until| *until <= Instant::now());
        self.aside.contains_key(&run)
    }
}

/// This machine's time.
pub(crate) fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
