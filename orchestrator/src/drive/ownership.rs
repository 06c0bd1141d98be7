//! Which runs this orchestrator owns. Leases keep orchestrators out of each other's way; that two never write the
//! same run is the record's fence's doing.

use std::time::{Duration, Instant};

use dashmap::DashMap;
use muster_bus::{Bus, BusError, Lease};
use muster_shared::ids::RunId;

/// The leases that this process holds.
#[derive(Debug)]
pub(crate) struct Ownership {
    bus: Bus,
    held: DashMap<RunId, Held>,
}

#[derive(Debug, Clone)]
struct Held {
    lease: Lease,
    until: Instant,
}

impl Ownership {
    pub(crate) fn new(bus: Bus) -> Self {
        Self { bus, held: DashMap::new() }
    }

    /// Takes a run's lease, unless somebody else has it.
    ///
    /// # Errors
    /// When the bus fails.
    pub(crate) async fn acquire(&self, run: RunId) -> Result<bool, BusError> {
        if self.holds(run) {
            return Ok(true);
        }
        let until = self.until();
        let lease = self.bus.leases().acquire(run).await?;
        let got = lease.is_some();
        if let Some(lease) = lease {
            self.held.insert(run, Held { lease, until });
        }
        Ok(got)
    }

    /// Whether the run's lease is ours and has not run out.
    pub(crate) fn holds(&self, run: RunId) -> bool {
        self.held.get(&run).is_some_and(|held| Instant::now() < held.until)
    }

    /// Gives a run's lease up, so that others need not wait for its end.
    pub(crate) async fn release(&self, run: RunId) {
        let Some((_, held)) = self.held.remove(&run) else { return };
        if let Err(error) = self.bus.leases().release(held.lease).await {
            tracing::warn!(%run, %error, "a lease could not be given up; it runs out by itself");
        }
    }

    /// Gives all leases up.
    pub(crate) async fn release_all(&self) {
        let runs: Vec<RunId> = self.held.iter().map(|entry| *entry.key()).collect();
        for run in runs {
            self.release(run).await;
        }
    }

    /// Renews all leases for as long as it is polled, and says which were lost.
    pub(crate) async fn keep(&self, lost: impl Fn(RunId)) {
        let mut beat = tokio::time::interval(self.ttl() / 3);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            beat.tick().await;
            let held: Vec<(RunId, Held)> =
                self.held.iter().map(|entry| (*entry.key(), entry.value().clone())).collect();
            for (run, Held { lease, until }) in held {
                match self.renew(run, &lease).await {
                    Ok(true) => {}
                    Err(error) if Instant::now() < until => {
                        tracing::warn!(%run, %error, "a lease could not be renewed; trying again");
                    }
                    Ok(false) | Err(_) => {
                        tracing::warn!(%run, "the lease of a run was lost");
                        self.held.remove(&run);
                        lost(run);
                    }
                }
            }
        }
    }

    /// Whether the lease is still ours. A run that ended meanwhile gave its lease up, which is no loss.
    async fn renew(&self, run: RunId, lease: &Lease) -> Result<bool, BusError> {
        let until = self.until();
        let Some(renewed) = self.bus.leases().renew(lease).await? else {
            return Ok(!self.held.contains_key(&run));
        };
        if let Some(mut held) = self.held.get_mut(&run) {
            *held = Held { lease: renewed, until };
            return Ok(true);
        }
        self.bus.leases().release(renewed).await?;
        Ok(true)
    }

    fn until(&self) -> Instant {
        Instant::now() + self.ttl()
    }

    fn ttl(&self) -> Duration {
        self.bus.settings().lease_ttl
    }
}
