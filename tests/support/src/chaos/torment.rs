//! Killing and freezing processes of a fleet, one every 300 to 800 ms where all are victims.

use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;

use crate::cluster::Cluster;
use crate::fleet::Fleet;

/// How long a killed server of a cluster stays away.
const AWAY: Duration = Duration::from_secs(4);
/// How long a cluster is left in peace when a server is back: it has to catch up before another may go.
const PEACE: Duration = Duration::from_secs(8);

/// How many processes met with what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Faults {
    /// Agents killed.
    pub agents_killed: usize,
    /// Orchestrators killed.
    pub orchestrators_killed: usize,
    /// Times the NATS server was killed.
    pub servers_killed: usize,
    /// Processes frozen and woken again, of any kind.
    pub frozen: usize,
}

impl Faults {
    /// These and those of another fleet.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            agents_killed: self.agents_killed + other.agents_killed,
            orchestrators_killed: self.orchestrators_killed + other.orchestrators_killed,
            servers_killed: self.servers_killed + other.servers_killed,
            frozen: self.frozen + other.frozen,
        }
    }

    /// All of them.
    #[must_use]
    pub const fn all(self) -> usize {
        self.agents_killed + self.orchestrators_killed + self.servers_killed + self.frozen
    }
}

/// Which processes meet with something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Targets {
    /// All, killed and frozen.
    All,
    /// Agents, killed.
    Agents,
    /// Orchestrators, killed.
    Orchestrators,
    /// The NATS server, killed.
    Server,
}

/// What a process of the fleet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Agent,
    Orchestrator,
    Server,
}

/// A process that was killed.
#[derive(Debug, Clone)]
pub(super) struct Victim {
    pub(super) kind: Kind,
    pub(super) pid: u32,
    pub(super) at: SystemTime,
}

/// Chooses victims.
pub(super) struct Torment {
    random: u64,
    targets: Targets,
    faults: Faults,
    victims: Vec<Victim>,
    /// Frozen processes, and after how many further faults they are woken.
    frozen: Vec<(u32, u32)>,
    /// When frozen processes were woken.
    wakings: Vec<SystemTime>,
    /// The server of a cluster that was killed last, and since when it is away or, if that is over, back.
    server: Option<(usize, Away)>,
}

/// Whether a server is away, and since when.
#[derive(Debug, Clone, Copy)]
enum Away {
    Since(Instant),
    BackSince(Instant),
}

impl Torment {
    pub(super) fn new(seed: u64, targets: Targets) -> Self {
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let (faults, victims, frozen, wakings) = (Faults::default(), Vec::new(), Vec::new(), Vec::new());
        Self { random, targets, faults, victims, frozen, wakings, server: None }
    }

    /// Waits a while, then does something to some process.
    pub(super) fn next(&mut self, fleet: &Fleet, cluster: Option<&mut Cluster>) {
        let pause = self.pause();
        std::thread::sleep(pause);
        self.wake_some();
        let wanted = self.wanted();
        if let Some(cluster) = cluster {
            self.bring_back(cluster, AWAY);
            if wanted == Kind::Server {
                return self.kill_one_of(cluster);
            }
        }
        let members: Vec<(Kind, u32)> =
            fleet.pids().iter().filter_map(|(name, pid)| Some((kind(name)?, *pid))).collect();
        let fitting: Vec<u32> = members
            .iter()
            .filter(|(kind, pid)| *kind == wanted && !self.is_frozen(*pid))
            .map(|(_, pid)| *pid)
            .collect();
        let Some(&pid) = fitting.get(usize::try_from(self.below(fitting.len().max(1) as u64)).unwrap_or(0))
        else {
            return;
        };
        if self.targets == Targets::All && self.below(5) == 0 {
            self.freeze(pid);
        } else {
            self.kill(wanted, pid);
        }
    }

    /// Who comes back within a moment is killed again soon. A server without which nobody gets on is given the time to
    /// come back and be of use.
    fn pause(&mut self) -> Duration {
        let (least, more) = match self.targets {
            Targets::All | Targets::Agents => (300, 500),
            Targets::Orchestrators => (1_000, 1_000),
            Targets::Server => (2_500, 1_500),
        };
        Duration::from_millis(least + self.below(more))
    }

    fn wanted(&mut self) -> Kind {
        match (self.targets, self.below(10)) {
            (Targets::Server, _) | (Targets::All, 0) => Kind::Server,
            (Targets::Orchestrators, _) | (Targets::All, 1 | 2) => Kind::Orchestrator,
            (Targets::Agents, _) | (Targets::All, _) => Kind::Agent,
        }
    }

    fn kill_one_of(&mut self, cluster: &mut Cluster) {
        let in_peace = match self.server {
            None => true,
            Some((_, Away::Since(_))) => false,
            Some((_, Away::BackSince(since))) => since.elapsed() >= PEACE,
        };
        let at = usize::try_from(self.below(cluster.len() as u64)).unwrap_or(0);
        let (time, Some(pid)) = (SystemTime::now(), cluster.pid(at)) else { return };
        if in_peace && cluster.kill(at).is_ok() {
            self.faults.servers_killed += 1;
            self.victims.push(Victim { kind: Kind::Server, pid, at: time });
            self.server = Some((at, Away::Since(Instant::now())));
        }
    }

    /// Starts a server again that was away for long enough.
    fn bring_back(&mut self, cluster: &mut Cluster, away: Duration) {
        if let Some((at, Away::Since(since))) = self.server
            && since.elapsed() >= away
            && cluster.revive(at).is_ok()
        {
            self.server = Some((at, Away::BackSince(Instant::now())));
        }
    }

    fn kill(&mut self, kind: Kind, pid: u32) {
        let at = SystemTime::now();
        if !send(pid, Signal::SIGKILL) {
            return;
        }
        match kind {
            Kind::Agent => self.faults.agents_killed += 1,
            Kind::Orchestrator => self.faults.orchestrators_killed += 1,
            Kind::Server => self.faults.servers_killed += 1,
        }
        self.victims.push(Victim { kind, pid, at });
    }

    fn freeze(&mut self, pid: u32) {
        if send(pid, Signal::SIGSTOP) {
            self.faults.frozen += 1;
            let rounds = 1 + u32::try_from(self.below(15)).unwrap_or(1);
            self.frozen.push((pid, rounds));
        }
    }

    fn is_frozen(&self, pid: u32) -> bool {
        self.frozen.iter().any(|(frozen, _)| *frozen == pid)
    }

    fn wake_some(&mut self) {
        self.frozen.retain_mut(|(pid, rounds)| {
            *rounds = rounds.saturating_sub(1);
            if *rounds == 0 {
                self.wakings.push(SystemTime::now());
                send(*pid, Signal::SIGCONT);
            }
            *rounds > 0
        });
    }

    /// Wakes everybody, and brings the server back that is away.
    pub(super) fn end(&mut self, cluster: Option<&mut Cluster>) {
        if let Some(cluster) = cluster {
            self.bring_back(cluster, Duration::ZERO);
        }
        for (pid, _) in self.frozen.drain(..) {
            self.wakings.push(SystemTime::now());
            send(pid, Signal::SIGCONT);
        }
    }

    pub(super) const fn faults(&self) -> Faults {
        self.faults
    }

    pub(super) fn victims(&self) -> &[Victim] {
        &self.victims
    }

    pub(super) fn wakings(&self) -> &[SystemTime] {
        &self.wakings
    }

    /// A number below `most`, by xorshift.
    fn below(&mut self, most: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % most.max(1)
    }
}

impl Drop for Torment {
    fn drop(&mut self) {
        self.end(None);
    }
}

/// The supervisor is left alone: it is the one that brings the others back.
fn kind(name: &str) -> Option<Kind> {
    match name {
        "supervisor" => None,
        "nats-server" => Some(Kind::Server),
        name if name.starts_with("orchestrator") => Some(Kind::Orchestrator),
        _ => Some(Kind::Agent),
    }
}

fn send(pid: u32, signal: Signal) -> bool {
    i32::try_from(pid).is_ok_and(|pid| kill(Pid::from_raw(pid), signal).is_ok())
}
