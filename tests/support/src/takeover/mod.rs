//! How long it takes until what a killed process had in hand goes on elsewhere, by the broker's stamps. One process is
//! killed at a time, while runs go on, and the next one when all is as it was.

mod hands;

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant, SystemTime};

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_bus::record::Unreadable;
use muster_bus::{Bus, BusError, RecordFilter};
use muster_shared::flow::{Goal, RunLimits};
use muster_shared::ids::{AgentId, RunId, TaskId};
use muster_shared::run::Entry;
use muster_shared::wire::{Command, Encoding};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::timeout;
use uuid::Uuid;

use crate::chaos;
use crate::fleet::{Fleet, Folder};
use crate::model_server::ModelServer;
use crate::workload::{Speech, script};
use hands::{Change, Hands};

/// How long the model thinks: tasks are long enough to be killed in the middle.
const DELAY: Duration = Duration::from_millis(150);
/// Runs at once.
const AT_ONCE: usize = 3;
/// How long a task has been in hand when its process is killed.
const IN_HAND: u64 = 20;
/// The longest wait for what was killed to go on, and for its successor.
const LIMIT: Duration = Duration::from_secs(60);

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// A worker that has a task in hand: until the task is started elsewhere.
    Worker,
    /// One of two orchestrators, which has runs: until the other decides on them.
    Orchestrator,
    /// The server: until the next entry of the record.
    Server,
}

impl Victim {
    /// How long the fleet is left alone after its successor has come: it has to be of use first.
    const fn pause(self) -> Duration {
        match self {
            Self::Worker => Duration::from_millis(200),
            Self::Orchestrator => Duration::from_millis(1_000),
            Self::Server => Duration::from_millis(1_500),
        }
    }
}

/// How long it took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    /// Processes killed.
    pub kills: usize,
    /// Times in milliseconds, sorted: one for each task, run or server.
    pub millis: Vec<u64>,
}

impl Times {
    /// The time below which so many of a hundred are.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Duration {
        let at = (self.millis.len() * percent).div_ceil(100).saturating_sub(1);
        Duration::from_millis(self.millis.get(at).copied().unwrap_or(0))
    }
}

/// Kills so many processes of a fleet that is made in this folder, one after the other.
///
/// # Errors
/// When the fleet does not come up, or what was killed does not go on.
pub fn measure(folder: Folder, victim: Victim, kills: usize) -> io::Result<Times> {
    let server = ModelServer::start(script(DELAY, Speech::Native).keeping(0))?;
    let folder = folder
        .with("OPENAI_API_KEY", "key-of-the-scripted-server")
        .with("OPENAI_BASE_URL", server.openai_url());
    let mut arguments = vec!["--scale", "orchestrator=2", "--scale", "worker=4"];
    for setting in chaos::SETTINGS {
        arguments.extend(["--set", *setting]);
    }
    let fleet = folder.up(&arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let mut watch = Watch::begin(&fleet).await?;
        watch.pass(Duration::from_secs(2)).await?;
        let mut times = Times::default();
        while times.kills < kills {
            let found = watch.kill(victim).await?;
            // Nothing was lost where what it had in hand was done in the last moment.
            times.kills += usize::from(!found.is_empty());
            times.millis.extend(found);
            watch.pass(victim.pause()).await?;
        }
        times.millis.sort_unstable();
        Ok(times)
    })
}

/// A fleet in which runs go on, and its record as it is written.
struct Watch<'a> {
    fleet: &'a Fleet,
    bus: Bus,
    entries: BoxStream<'static, Result<Entry, Unreadable>>,
    hands: Hands,
    open: BTreeSet<RunId>,
}

/// What was killed, and what of it has not gone on yet.
enum Left {
    Tasks(u32, BTreeSet<(RunId, TaskId)>),
    Runs(AgentId, BTreeSet<RunId>),
    Anything,
    Nothing,
}

impl<'a> Watch<'a> {
    async fn begin(fleet: &'a Fleet) -> io::Result<Self> {
        let bus = chaos::connect(&fleet.url()).await?;
        let failed = |error: BusError| io::Error::other(error.to_string());
        // Whatever was before is of no interest, and may be much.
        let from = bus.record().newest().await.map_err(failed)?;
        let entries = bus.record().follow(&RecordFilter::Everything, from).await.map_err(failed)?;
        Ok(Self { fleet, bus, entries, hands: Hands::default(), open: BTreeSet::new() })
    }

    /// Lets runs go on for a while.
    async fn pass(&mut self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            self.next(left).await?;
        }
        Ok(())
    }

    /// The next entry, if one comes in time, and what it changed. As many runs as wanted go on meanwhile.
    async fn next(&mut self, limit: Duration) -> io::Result<Option<(u64, Change)>> {
        while self.open.len() < AT_ONCE {
            let run = RunId::from_uuid(Uuid::now_v7());
            let limits = RunLimits { max_width: 8, ..RunLimits::default() };
            let goal = Box::new(Goal { limits: Some(limits), ..Goal::new("Work out the eight sums.") });
            // Refused while the server is away: asked again with the next entry.
            if self.bus.commands().send(&Command::Submit { run, goal }, Encoding::MessagePack).await.is_err()
            {
                break;
            }
            self.open.insert(run);
        }
        let Ok(entry) = timeout(limit, self.entries.next()).await else { return Ok(None) };
        let entry = entry.ok_or_else(|| io::Error::other("the record ends"))?.map_err(io::Error::other)?;
        let change = self.hands.note(&entry);
        if let Change::Ended(run) = &change {
            self.open.remove(run);
        }
        Ok(Some((entry.at.0, change)))
    }

    /// Kills one, and waits until all that it had in hand goes on elsewhere and its successor is there.
    async fn kill(&mut self, victim: Victim) -> io::Result<Vec<u64>> {
        let began = Instant::now();
        let (pid, mut left) = loop {
            if let Some(found) = self.choose(victim).await? {
                break found;
            }
            if began.elapsed() > LIMIT {
                return Err(io::Error::other("nobody has anything in hand"));
            }
            self.next(Duration::from_millis(20)).await?;
        };
        let (at, began) = (now(), Instant::now());
        let number = i32::try_from(pid).map_err(io::Error::other)?;
        kill(Pid::from_raw(number), Signal::SIGKILL)?;
        let mut times = Vec::new();
        while !left.is_empty() {
            if let Some((when, change)) = self.next(Duration::from_millis(500)).await?
                && when > at
                && left.goes_on(&change)
            {
                times.push(when - at);
            }
            if began.elapsed() > LIMIT {
                return Err(io::Error::other(format!("not all went on after the kill of process {pid}")));
            }
        }
        while self.fleet.pids().iter().any(|(_, found)| *found == pid) && began.elapsed() < LIMIT {
            self.next(Duration::from_millis(20)).await?;
        }
        Ok(times)
    }

    async fn choose(&self, victim: Victim) -> io::Result<Option<(u32, Left)>> {
        let of = |name: &str| {
            let members = self.fleet.pids().into_iter().filter(|(found, _)| found.starts_with(name));
            members.map(|(_, pid)| pid).collect::<Vec<u32>>()
        };
        Ok(match victim {
            Victim::Worker => {
                let held = of("worker").into_iter().map(|pid| (pid, self.hands.of(pid, now() - IN_HAND)));
                let fullest =
                    held.filter(|(_, tasks)| !tasks.is_empty()).max_by_key(|(_, tasks)| tasks.len());
                fullest.map(|(pid, tasks)| (pid, Left::Tasks(pid, tasks.into_iter().collect())))
            }
            Victim::Orchestrator => {
                let listed = self.bus.registry().list().await;
                let listed = listed.map_err(|error| io::Error::other(error.to_string()))?;
                let pids = of("orchestrator");
                let here = listed.into_iter().filter(|profile| pids.contains(&profile.pid));
                let runs = here.map(|profile| {
                    let runs = self.hands.decided_by(&profile.agent);
                    (profile.pid, Left::Runs(profile.agent, runs.into_iter().collect()))
                });
                // Without the other one there is nobody who could take over.
                let runs: Vec<(u32, Left)> = runs.collect();
                let both = runs.len() > 1;
                runs.into_iter()
                    .filter(|(_, left)| both && !left.is_empty())
                    .max_by_key(|(_, left)| left.len())
            }
            Victim::Server => of("nats-server").first().map(|pid| (*pid, Left::Anything)),
        })
    }
}

impl Left {
    fn len(&self) -> usize {
        match self {
            Self::Tasks(_, tasks) => tasks.len(),
            Self::Runs(_, runs) => runs.len(),
            Self::Anything => 1,
            Self::Nothing => 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether something of it goes on by this change. What was done in the last moment is left out.
    fn goes_on(&mut self, change: &Change) -> bool {
        match (self, change) {
            (Self::Tasks(pid, tasks), Change::Started(run, task, by)) => {
                by != pid && tasks.remove(&(*run, task.clone()))
            }
            (Self::Tasks(_, tasks), Change::PutDown(run, task)) => {
                tasks.remove(&(*run, task.clone()));
                false
            }
            (Self::Tasks(_, tasks), Change::Ended(run)) => {
                tasks.retain(|(of, _)| of != run);
                false
            }
            (Self::Runs(who, runs), Change::Decided(run, by)) => by != who && runs.remove(run),
            // Who ended it is not told: it is left out.
            (Self::Runs(_, runs), Change::Ended(run)) => {
                runs.remove(run);
                false
            }
            (left @ Self::Anything, _) => {
                *left = Self::Nothing;
                true
            }
            (Self::Tasks(..), Change::Decided(..) | Change::Nothing)
            | (Self::Runs(..), Change::Started(..) | Change::PutDown(..) | Change::Nothing)
            | (Self::Nothing, _) => false,
        }
    }
}

fn now() -> u64 {
    chaos::millis(SystemTime::now())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn percentiles_are_of_the_times_themselves() {
        let times = Times { kills: 100, millis: (1..=100).collect() };
        for (percent, expected) in [(50, 50), (99, 99), (100, 100), (0, 1)] {
            assert_eq!(times.percentile(percent), Duration::from_millis(expected));
        }
        let few = Times { kills: 3, millis: vec![10, 20, 90] };
        assert_eq!((few.percentile(50).as_millis(), few.percentile(99).as_millis()), (20, 90));
        assert_eq!(Times::default().percentile(50), Duration::ZERO);
    }

    #[test]
    fn what_goes_on_elsewhere_is_told_from_what_was_done_in_the_last_moment() {
        let (run, task) = (RunId::from_uuid(Uuid::from_u128(1)), TaskId::Write);
        let left = || Left::Tasks(7, BTreeSet::from([(run, task.clone())]));
        assert!(!left().goes_on(&Change::Started(run, task.clone(), 7)), "by the victim itself");
        assert!(left().goes_on(&Change::Started(run, task.clone(), 8)));
        let mut done = left();
        assert!(!done.goes_on(&Change::PutDown(run, task.clone())));
        assert!(done.is_empty());
        let (one, other): (AgentId, AgentId) = ("one".parse().unwrap(), "other".parse().unwrap());
        let mut left = Left::Runs(one.clone(), BTreeSet::from([run]));
        assert!(!left.goes_on(&Change::Decided(run, one)));
        assert!(left.goes_on(&Change::Decided(run, other)));
        assert!(left.is_empty());
    }
}
