//! Many short runs while processes of the fleet are killed and frozen at random; afterwards, what the record and the
//! model's own log say of it.

mod evidence;
mod model;
mod recovery;
mod torment;
mod traffic;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

pub use evidence::Verdict;
pub use recovery::{Spread, Spreads};
pub use torment::{Faults, Targets};

use crate::fleet::{Fleet, Folder};
use crate::model_server::ModelServer;
use torment::Torment;
use traffic::Traffic;

/// Time for what is left when the last process was killed.
const SETTLE: Duration = Duration::from_secs(180);
/// Time that a run may take on average before the whole is given up, faults included.
const PER_RUN: Duration = Duration::from_secs(2);

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Ordeal {
    /// The `muster` program.
    pub program: String,
    /// The `nats-server` program, unless the environment names it.
    pub server: Option<String>,
    /// Which processes meet with something.
    pub targets: Targets,
    /// How many runs.
    pub runs: usize,
    /// Runs at once.
    pub at_once: usize,
    /// What the choice of victims begins with. Processes are not deterministic: the same seed is not the same history.
    pub seed: u64,
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
    pub fn undergo(&self, stop: &AtomicBool, mut tell: impl FnMut(Progress)) -> io::Result<Verdict> {
        let server = ModelServer::start(model::script(self.runs))?;
        let begun = SystemTime::now();
        let fleet = self.fleet(&server)?;
        let traffic = Traffic::begin(&fleet.url(), self.runs, self.at_once)?;
        let mut torment = Torment::new(self.seed, self.targets);
        let until = Instant::now() + SETTLE + PER_RUN * u32::try_from(self.runs).unwrap_or(u32::MAX);
        let mut told = Instant::now();
        while !traffic.is_over() && Instant::now() < until && !stop.load(Ordering::Relaxed) {
            torment.next(&fleet);
            if told.elapsed() >= Duration::from_secs(1) {
                told = Instant::now();
                tell(Progress { ended: traffic.ended(), faults: torment.faults().all() });
            }
        }
        torment.end();
        let seen = traffic.finish();
        let verdict = Verdict::of(&fleet.url(), &seen, torment.victims(), &server.log(), begun)?;
        Ok(Verdict { faults: torment.faults(), ..verdict })
    }

    fn fleet(&self, server: &ModelServer) -> io::Result<Fleet> {
        let mut folder = Folder::new(&self.program)?
            .with("OPENAI_API_KEY", "key-of-the-scripted-server")
            .with("OPENAI_BASE_URL", server.openai_url());
        if let Some(program) = &self.server {
            folder = folder.with("MUSTER_NATS_SERVER", program);
        }
        let mut arguments = vec!["--scale", "orchestrator=2", "--scale", "worker=2"];
        for setting in SETTINGS {
            arguments.extend(["--set", *setting]);
        }
        folder.up(&arguments)
    }
}

/// Random kills are no sign of poison, and a supervisor that loses patience would end the ordeal.
const SETTINGS: &[&str] = &[
    "agent.model=openai/scripted",
    "limits.max_deaths=0",
    "limits.max_generations=10",
    "fleet.max_restarts=1000000",
    "fleet.restart_wait=50ms",
    "fleet.max_restart_wait=200ms",
    "bus.ack_wait=10s",
];
