//! Many short runs while processes of the fleet are killed and frozen at random; afterwards, what the record and the
//! model's own log say of it.

mod chain;
mod evidence;
mod model;
mod recovery;
mod shape;
mod torment;
mod traffic;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

pub(crate) use evidence::millis;
pub use evidence::{ChaosResult, read_log};
pub use recovery::{Spread, Spreads};
pub use shape::Shape;
pub use torment::{Faults, Targets};
pub(crate) use traffic::connect;

use crate::cluster::{Cluster, SYSTEM_PASSWORD, SYSTEM_USER};
use crate::fleet::{Fleet, Folder};
use crate::model_server::ModelServer;
use torment::Torment;
use traffic::{Amount, Traffic};

/// Time for what is left when the last process was killed.
const SETTLE: Duration = Duration::from_secs(180);
/// Time that a run may take on average before the whole is given up, faults included.
const PER_RUN: Duration = Duration::from_secs(2);
/// The same where every write goes to three servers, and one of them is often away.
const PER_RUN_OF_CLUSTER: Duration = Duration::from_secs(8);
/// A cluster may be without a leader for some seconds.
const LEASE_OF_CLUSTER: &str = "15s";

/// Most runs for each kill that is asked for.
const RUNS_PER_KILL: usize = 200;

/// A fleet in which nothing is written for so long is worth a look.
const LONG_PAUSE: Duration = Duration::from_secs(5);

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Ordeal {
    /// The `muster` program.
    pub program: String,
    /// The `nats-server` program, unless the environment names it.
    pub server: Option<String>,
    /// Servers of the bus: one of the fleet's own, or three that form a cluster and keep three copies.
    pub servers: Servers,
    /// Which processes meet with something.
    pub targets: Targets,
    /// How many runs; more where [`kills`](Self::kills) asks for it.
    pub runs: usize,
    /// At least so many processes are to be killed while runs go on: runs are begun until they were.
    pub kills: usize,
    /// Over how many fleets of different shapes they are spread, one after the other.
    pub shapes: usize,
    /// The number of the first shape.
    pub first: usize,
    /// Whether the folders of fleets stay in which some run was slow or went wrong, or nothing was written for 5 s.
    pub keep: bool,
    /// Runs at once.
    pub at_once: usize,
    /// What the choice of victims begins with. Processes are not deterministic: the same seed is not the same history.
    pub seed: u64,
}

/// The servers of the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Servers {
    /// One, which the fleet starts and starts again.
    One,
    /// Three. One at a time is killed, and comes back after some seconds.
    Three,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Runs that ended.
    pub ended: usize,
    /// Processes killed or frozen.
    pub faults: usize,
}

impl Ordeal {
    /// Does it, and judges. `stop` ends it early; `tell` hears how far it has come, about once a second.
    ///
    /// # Errors
    /// When the fleet does not come up, or the record cannot be read in the end.
    pub fn undergo(&self, stop: &AtomicBool, mut tell: impl FnMut(Progress)) -> io::Result<ChaosResult> {
        let shapes = self.shapes.clamp(1, self.runs.max(1));
        let mut all = ChaosResult::default();
        for number in 0..shapes {
            // What is left over goes to the first ones.
            let runs = self.runs / shapes + usize::from(number < self.runs % shapes);
            let seed = self.seed.wrapping_add(number as u64);
            let before = (all.runs, all.faults.all());
            let told = |Progress { ended, faults }| {
                tell(Progress { ended: before.0 + ended, faults: before.1 + faults });
            };
            let one = Self { runs, seed, ..self.clone() };
            all = all.and(one.undergo_one(Shape::of(self.first.saturating_add(number)), stop, told)?);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(all)
    }

    fn undergo_one(
        &self,
        shape: Shape,
        stop: &AtomicBool,
        mut tell: impl FnMut(Progress),
    ) -> io::Result<ChaosResult> {
        let most = self.most_runs();
        let server = ModelServer::start(model::script(most, shape))?;
        let begun = SystemTime::now();
        let mut cluster = self.cluster()?;
        let mut fleet = self.fleet(&server, cluster.as_ref(), shape)?;
        let another = shape.another(&fleet)?;
        let amount = Amount { runs: self.runs, most, at_once: self.at_once };
        let traffic = Traffic::begin(&fleet.url(), amount)?;
        let mut torment = Torment::new(self.seed, self.targets);
        let until = Instant::now() + SETTLE + self.per_run() * u32::try_from(most).unwrap_or(u32::MAX);
        let mut told = Instant::now();
        while !traffic.is_over() && Instant::now() < until && !stop.load(Ordering::Relaxed) {
            torment.next(&fleet, cluster.as_mut());
            if torment.faults().all() >= self.kills {
                traffic.begin_no_more();
            }
            if told.elapsed() >= Duration::from_secs(1) {
                told = Instant::now();
                tell(Progress { ended: traffic.ended(), faults: torment.faults().all() });
            }
        }
        torment.end(cluster.as_mut());
        let seen = traffic.finish();
        let verdict = ChaosResult::of(&fleet.url(), &seen, &torment, &server.log(), begun)?;
        drop(another);
        let mut verdict = verdict.of_shape(shape, torment.faults());
        let is_quick =
            verdict.slow.is_empty() && u128::from(verdict.longest_pause.0) < LONG_PAUSE.as_millis();
        if self.keep && !(verdict.is_good() && is_quick) {
            verdict.kept.push(fleet.keep()?);
        }
        Ok(verdict)
    }

    const fn most_runs(&self) -> usize {
        let for_kills = self.kills.saturating_mul(RUNS_PER_KILL);
        if for_kills > self.runs { for_kills } else { self.runs }
    }

    const fn per_run(&self) -> Duration {
        match self.servers {
            Servers::One => PER_RUN,
            Servers::Three => PER_RUN_OF_CLUSTER,
        }
    }

    fn cluster(&self) -> io::Result<Option<Cluster>> {
        match (self.servers, &self.server) {
            (Servers::One, _) => Ok(None),
            (Servers::Three, Some(program)) => Cluster::of(program.clone()).map(Some),
            (Servers::Three, None) => Cluster::start().map(Some),
        }
    }

    fn fleet(&self, server: &ModelServer, cluster: Option<&Cluster>, shape: Shape) -> io::Result<Fleet> {
        let mut folder = Folder::new(&self.program)?
            .with("OPENAI_API_KEY", "key-of-the-scripted-server")
            .with("OPENAI_BASE_URL", server.openai_url());
        if let Some(program) = &self.server {
            folder = folder.with("MUSTER_NATS_SERVER", program);
        }
        if let Some(cluster) = cluster {
            folder = folder
                .with("MUSTER_BUS_URL", cluster.url())
                .with("MUSTER_BUS_REPLICAS", "3")
                .with("MUSTER_BUS_LEASE_TTL", LEASE_OF_CLUSTER)
                .with("MUSTER_BUS_SYSTEM_USER", SYSTEM_USER)
                .with("MUSTER_BUS_SYSTEM_PASSWORD", SYSTEM_PASSWORD);
        }
        shape.define(&folder)?;
        let scale = shape.scale();
        let mut arguments: Vec<&str> = scale.iter().flat_map(|one| ["--scale", one.as_str()]).collect();
        for setting in SETTINGS {
            arguments.extend(["--set", *setting]);
        }
        folder.up(&arguments)
    }
}

/// Random kills are no sign of poison, and a supervisor that loses patience would end the ordeal.
pub(crate) const SETTINGS: &[&str] = &[
    "agent.model=openai/scripted",
    "limits.max_deaths=0",
    "limits.max_generations=10",
    "fleet.max_restarts=1000000",
    "fleet.restart_wait=2ms",
    "bus.ack_wait=10s",
];
