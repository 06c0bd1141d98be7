//! This orchestrator's lease, and what is known of the others'. Leases keep orchestrators out of each other's way; that
//! two never write the same run is the record's fence's doing.
//!
//! A run belongs to the author of its newest decision while that one's lease holds, a new run to whoever decides its
//! goal first.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use muster_bus::{Bus, BusError, Lease, LeaseChange, LeaseNote, Places};
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::sync::lock;
use tokio::sync::Notify;

use super::sessions::Sessions;

/// Pause before a lease is begun again that could not be.
const PAUSE: Duration = Duration::from_millis(250);

/// The lease that this process holds, and what is known of others.
pub(crate) struct Ownership {
    bus: Bus,
    domains: Vec<String>,
    held: Mutex<Option<OwnedRun>>,
    sessions: Mutex<Sessions>,
    /// See [`LeaseNote::through`].
    through: Mutex<Places>,
    /// Told when something else than a renewal changed what is known of others.
    hinted: Notify,
}

#[derive(Debug, Clone)]
struct OwnedRun {
    lease: Lease,
    until: Instant,
}

/// What a process has to say with its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) room: u32,
    pub(crate) runs: Vec<RunId>,
    /// Runs that cannot be handled here.
    pub(crate) left_alone: Vec<RunId>,
}

impl Ownership {
    /// `domains` are those whose runs this process sees to.
    pub(crate) fn new(bus: Bus, domains: Vec<String>) -> Self {
        let sessions = Mutex::new(Sessions::new(bus.who().clone(), bus.settings().lease_ttl));
        let (held, through) = (Mutex::default(), Mutex::default());
        Self { bus, domains, held, sessions, through, hinted: Notify::new() }
    }

    /// Takes note of a position of the record: runs that this process created up to there are driven here already.
    pub(crate) fn reached(&self, run: RunId, seq: Seq) {
        self.through().reach(run, seq);
    }

    /// The same, of a position in each part of the record.
    pub(crate) fn reached_all(&self, places: &Places) {
        self.through().reach_all(places);
    }

    /// Names the lease that this process holds now; nothing while it has none. Whatever was begun under one lease must
    /// not write under another.
    pub(crate) fn epoch(&self) -> Option<Seq> {
        self.held().as_ref().filter(|held| Instant::now() < held.until).map(|held| held.lease.epoch())
    }

    /// Whether this process still holds the lease of that name.
    pub(crate) fn holds(&self, epoch: Seq) -> bool {
        self.epoch() == Some(epoch)
    }

    /// What is known of all leases.
    pub(crate) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        lock(&self.sessions)
    }

    /// Another orchestrator to which a new run of this domain rather belongs.
    pub(crate) fn better_for(&self, domain: Option<&str>) -> Option<AgentId> {
        self.sessions().better_for(domain, &self.domains).cloned()
    }

    /// Takes note that a process is gone, so that its runs are taken over without waiting for its lease to lapse. One
    /// that renews its lease all the same keeps them.
    pub(crate) fn owner_lost(&self, agent: &AgentId) {
        self.sessions().lost(agent);
        self.hinted.notify_one();
    }

    /// Waits until something else than a lease changed what is known of others.
    pub(crate) async fn hint(&self) {
        self.hinted.notified().await;
    }

    /// Learns of all leases there are, and begins one of this process.
    ///
    /// # Errors
    /// When the bus fails.
    pub(crate) async fn begin(&self, load: impl Fn() -> Load) -> Result<(), BusError> {
        for lease in self.bus.leases().list().await? {
            self.sessions().take(LeaseChange::Held(lease));
        }
        let nowhere_yet = self.through().is_beginning();
        if nowhere_yet {
            // Nothing that stands there by now is of this process.
            self.reached_all(&self.bus.record().newest().await?);
        }
        let until = Instant::now() + self.ttl();
        let lease = self.bus.leases().begin(self.note(load)).await?;
        *self.held() = Some(OwnedRun { lease, until });
        Ok(())
    }

    /// Renews the lease for as long as it is polled. When it is lost, everything that was begun under it is told by
    /// `lost`, and another one is begun.
    pub(crate) async fn keep(&self, load: impl Fn() -> Load, lost: impl Fn()) {
        let mut beat = tokio::time::interval(self.ttl() / 3);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            beat.tick().await;
            if self.renew(&load).await {
                continue;
            }
            tracing::warn!("the lease was lost; all runs are left to others, and another one is begun");
            *self.held() = None;
            lost();
            while let Err(error) = self.begin(&load).await {
                tracing::warn!(%error, "no lease can be had; trying again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Whether the lease holds on. A renewal that gets no answer is given up early, so that another one comes in time.
    async fn renew(&self, load: impl Fn() -> Load) -> bool {
        let Some(OwnedRun { lease, until }) = self.held().clone() else { return false };
        let note = self.note(load);
        // What stands in a lease that has lapsed is what others go by: it is not written over.
        let now = Instant::now();
        if now >= until {
            return false;
        }
        let next = now + self.ttl();
        let renewed = tokio::time::timeout(self.ttl() / 3, self.bus.leases().renew(&lease, note)).await;
        match renewed {
            Ok(Ok(Some(lease))) if Instant::now() < until => {
                *self.held() = Some(OwnedRun { lease, until: next });
                true
            }
            // It came too late: others may have taken over.
            Ok(Ok(_)) => false,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the lease could not be renewed; trying again");
                Instant::now() < until
            }
            Err(_) => Instant::now() < until,
        }
    }

    /// Gives the lease up, so that others take its runs over at once.
    pub(crate) async fn give_up(&self, load: impl Fn() -> Load) {
        let Some(OwnedRun { lease, .. }) = self.held().take() else { return };
        let leases = self.bus.leases();
        let given_up = leases.give_up(&lease, self.note(load));
        match tokio::time::timeout(self.ttl(), given_up).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the lease could not be given up; it lapses by itself"),
            Err(_) => tracing::warn!("the lease could not be given up in time; it lapses by itself"),
        }
    }

    /// The position first, the runs after: a run created in between is then named, or stands after the position.
    fn note(&self, load: impl FnOnce() -> Load) -> LeaseNote {
        let through = self.through().clone();
        let Load { room, runs, left_alone } = load();
        let domains = self.domains.clone();
        LeaseNote { room, runs, through, domains, left_alone, given_up: false }
    }

    /// Whole after every statement that changes it.
    fn held(&self) -> MutexGuard<'_, Option<OwnedRun>> {
        lock(&self.held)
    }

    /// Whole after every statement that changes it.
    fn through(&self) -> MutexGuard<'_, Places> {
        lock(&self.through)
    }

    fn ttl(&self) -> Duration {
        self.bus.settings().lease_ttl
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use muster_bus::BusSettings;
    use muster_shared::secret::Redactor;
    use uuid::Uuid;

    use super::*;

    fn load(runs: &[RunId]) -> Load {
        Load { room: 8, runs: runs.to_vec(), left_alone: Vec::new() }
    }

    /// A process stood still for longer than its lease holds, and let go of its runs when it woke.
    #[tokio::test]
    async fn what_a_lapsed_lease_names_stays_named() {
        let settings = BusSettings { lease_ttl: Duration::from_millis(500), ..BusSettings::default() };
        let who = AgentId::new("orchestrator", 1);
        let bus = Bus::in_memory_with(&who, settings, Arc::new(Redactor::default()));
        let ownership = Ownership::new(bus.clone(), Vec::new());
        let run = RunId::from_uuid(Uuid::now_v7());
        ownership.begin(|| load(&[run])).await.unwrap();
        let named = || async { bus.leases().list().await.unwrap().pop().unwrap().note.runs };
        assert!(ownership.renew(|| load(&[run])).await, "in time it is renewed");
        while ownership.epoch().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!ownership.renew(|| load(&[])).await);
        assert_eq!(named().await, load(&[run]).runs);
    }
}
