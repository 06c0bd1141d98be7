//! What all parts of one orchestrator share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actix::ArbiterHandle;
use dashmap::{DashMap, DashSet};
use muster_bus::{BrokerClock, Bus};
use muster_shared::ids::{AgentId, RunId};
use muster_shared::sync::lock;
use muster_shared::time::Millis;
use muster_shared::wire::{Profile, SetAside};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::OrchestratorSettings;
use super::admission::Admission;
use super::capacity::Capacity;
use super::lessons::Lessons;
use super::ownership::{Load, Ownership};
use super::registry::Registry;
use super::track_record::TrackRecord;

/// How long a run that cannot be handled is left alone before it is tried again.
pub(super) const ASIDE: Duration = Duration::from_secs(60);

/// Up to so many agents are judged by every run that ends; more, once a second.
const FEW_AGENTS: usize = 256;

/// After this time the clock is set anew.
const CLOCK_AGE: Duration = Duration::from_secs(300);

/// Until when a run is left alone, and why.
struct Aside {
    until: Instant,
    /// The same by the broker's clock.
    told: Millis,
    reason: String,
}

/// What all parts of one orchestrator share.
pub(crate) struct OrchestratorContext {
    pub(crate) bus: Bus,
    pub(crate) settings: OrchestratorSettings,
    pub(crate) capacity: Capacity,
    pub(crate) ownership: Ownership,
    pub(crate) registry: Registry,
    pub(crate) arbiter: ArbiterHandle,
    /// Set when this orchestrator stops: no turn begins from then on.
    pub(crate) closed: CancellationToken,
    /// Turns and commands in hand, which are finished before this orchestrator ends.
    pub(crate) in_hand: TaskTracker,
    /// Who gets in.
    pub(crate) admission: Admission,
    /// What earlier runs taught.
    pub(crate) lessons: Lessons,
    /// What agents and tools did in earlier runs.
    pub(crate) track_record: TrackRecord,
    /// Whether something was learnt by which agents were not judged yet.
    unjudged: AtomicBool,
    clock: Mutex<BrokerClock>,
    /// Runs that are left alone: they cannot be handled here.
    aside: DashMap<RunId, Aside>,
    /// The same, until they are tried here again or somebody else has them: the lease tells of them, so that they are not
    /// lost with this process.
    left_alone: DashSet<RunId>,
    /// Runs that are driven here and were set aside for a while, since they decided in vain.
    slowed: DashMap<RunId, Aside>,
    /// How often a run was left alone, or set aside.
    times_aside: AtomicU64,
    /// Processes that were lost and that the registry may still name, and until when.
    missing: DashMap<AgentId, Instant>,
}

impl OrchestratorContext {
    /// `clock` goes by the broker's stamps: all orchestrators decide by the same time.
    pub(crate) fn new(
        bus: Bus,
        settings: OrchestratorSettings,
        arbiter: ArbiterHandle,
        clock: BrokerClock,
    ) -> Self {
        Self {
            ownership: Ownership::new(bus.clone(), settings.domains.clone()),
            bus,
            settings,
            capacity: Capacity::default(),
            registry: Registry::default(),
            arbiter,
            closed: CancellationToken::new(),
            in_hand: TaskTracker::new(),
            admission: Admission::default(),
            lessons: Lessons::default(),
            track_record: TrackRecord::default(),
            unjudged: AtomicBool::new(false),
            clock: Mutex::new(clock),
            aside: DashMap::new(),
            left_alone: DashSet::new(),
            slowed: DashMap::new(),
            times_aside: AtomicU64::new(0),
            missing: DashMap::new(),
        }
    }

    /// The broker's time.
    pub(crate) fn now(&self) -> Millis {
        lock(&self.clock).now()
    }

    /// Sets the clock anew when it is old: two clocks never run quite alike.
    pub(crate) async fn mind_the_clock(&self) {
        let age = lock(&self.clock).age();
        if age < CLOCK_AGE {
            return;
        }
        match self.bus.allowances().clock().await {
            Ok(set) => *lock(&self.clock) = set,
            Err(error) => tracing::debug!(%error, "the clock could not be set by the broker's"),
        }
    }

    /// Judges agents by what is known of their work: at once where there are few, else with the next
    /// [`Self::judge_all`].
    pub(crate) fn judge(&self) {
        self.unjudged.store(true, Ordering::Release);
        if self.capacity.count_agents() <= FEW_AGENTS {
            self.judge_all();
        }
    }

    /// Judges agents by what was learnt since the last time.
    pub(crate) fn judge_all(&self) {
        if self.unjudged.swap(false, Ordering::AcqRel) {
            self.capacity.judge(&self.track_record.lock());
        }
    }

    /// What this orchestrator says with its lease.
    pub(crate) fn load(&self) -> Load {
        let room = self.settings.max_runs.saturating_sub(self.registry.len());
        Load {
            room: u32::try_from(room).unwrap_or(u32::MAX),
            runs: self.registry.owned(),
            left_alone: self.left_alone.iter().map(|run| *run).collect(),
        }
    }

    /// Lets all runs go: the lease under which they were driven is lost.
    pub(crate) fn dismiss_runs(&self) {
        for run in self.registry.dismiss_all() {
            // Nobody is left here who could go on.
            drop(self.capacity.forget(run));
        }
    }

    /// Leaves a run alone for a while: it cannot be handled here, and others may fare better.
    pub(crate) fn set_aside(&self, run: RunId, reason: String) {
        let now = Instant::now();
        self.aside.retain(|_, aside| aside.until > now);
        self.aside.insert(run, Aside { until: now + ASIDE, told: self.now().after(ASIDE), reason });
        self.left_alone.insert(run);
        self.times_aside.fetch_add(1, Ordering::Relaxed);
    }

    /// A run that was left alone is driven here again, or by somebody else, or has ended.
    pub(crate) fn is_in_hand(&self, run: RunId) {
        self.left_alone.remove(&run);
    }

    /// Whether a run is left alone.
    pub(crate) fn is_set_aside(&self, run: RunId) -> bool {
        self.aside.remove_if(&run, |_, aside| aside.until <= Instant::now());
        self.aside.contains_key(&run)
    }

    /// Takes note that a run which is driven here rests for a while.
    pub(crate) fn slow_down(&self, run: RunId, reason: String, pause: Duration) {
        let (until, told) = (Instant::now() + pause, self.now().after(pause));
        self.slowed.insert(run, Aside { until, told, reason });
        self.times_aside.fetch_add(1, Ordering::Relaxed);
    }

    /// A run that rested is looked at again.
    pub(crate) fn speed_up(&self, run: RunId) {
        self.slowed.remove(&run);
    }

    /// What the registry is told: some of the runs that are left alone or rest now, and how often that happened.
    pub(crate) fn runs_set_aside(&self) -> (Vec<SetAside>, u64) {
        let now = Instant::now();
        let all = self.aside.iter().chain(self.slowed.iter()).filter(|aside| aside.until > now);
        let told = all.take(Profile::MOST_SET_ASIDE).map(|aside| SetAside {
            run: *aside.key(),
            reason: aside.reason.chars().take(SetAside::MAX_REASON).collect(),
            until: aside.told.0,
        });
        (told.collect(), self.times_aside.load(Ordering::Relaxed))
    }

    /// Takes note that a process was lost before the registry knows of it.
    pub(crate) fn missing(&self, agent: &AgentId) {
        let now = Instant::now();
        self.missing.retain(|_, until| *until > now);
        self.missing.insert(agent.clone(), now + self.bus.settings().registry_ttl());
    }

    /// Takes note that a process that was lost is there again.
    pub(crate) fn found(&self, agent: &AgentId) {
        self.missing.remove(agent);
    }

    /// Whether a process was lost, whatever the registry still says.
    pub(crate) fn is_missing(&self, agent: &AgentId) -> bool {
        self.missing.contains_key(agent)
    }
}
