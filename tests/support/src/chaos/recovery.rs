//! How long it took to go on after each kill, by the broker's stamps.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::ids::{RunId, TaskId};
use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use serde::Serialize;

use super::evidence::{is_end, millis};
use super::torment::{Kind, Victim};

/// Times in milliseconds: how many, the median and the longest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// How many there are.
    pub count: usize,
    /// The median, in milliseconds.
    pub p50_ms: u64,
    /// The one that 99 of 100 do not exceed, in milliseconds.
    pub p99_ms: u64,
    /// The longest, in milliseconds.
    pub max_ms: u64,
}

impl Spread {
    /// The spread of these times, in milliseconds.
    #[must_use]
    pub fn of(mut times: Vec<u64>) -> Self {
        times.sort_unstable();
        let p50_ms = times.get(times.len() / 2).copied().unwrap_or(0);
        let p99_ms = times.get(times.len() * 99 / 100).copied().unwrap_or(0);
        Self { count: times.len(), p50_ms, p99_ms, max_ms: times.last().copied().unwrap_or(0) }
    }
}

/// How long it took to go on, by what was killed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spreads {
    /// From the kill of an agent until each of its tasks was started by another.
    pub agent: Spread,
    /// From the kill of an agent until each offer was started that nobody had started then: somebody who died may have
    /// had it in hand, or it waited for its turn.
    pub offer: Spread,
    /// From the kill of an orchestrator until the next decision on each run whose newest decision was its own.
    pub orchestrator: Spread,
    /// From the kill of the server until the next entry of the record.
    pub server: Spread,
}

/// All times, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Times {
    agent: Vec<u64>,
    offer: Vec<u64>,
    orchestrator: Vec<u64>,
    server: Vec<u64>,
}

impl Times {
    /// These and those of another fleet.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.agent.extend(other.agent);
        self.offer.extend(other.offer);
        self.orchestrator.extend(other.orchestrator);
        self.server.extend(other.server);
        self
    }

    pub(super) fn spreads(&self) -> Spreads {
        Spreads {
            agent: Spread::of(self.agent.clone()),
            offer: Spread::of(self.offer.clone()),
            orchestrator: Spread::of(self.orchestrator.clone()),
            server: Spread::of(self.server.clone()),
        }
    }
}

pub(super) fn measure(by_run: &BTreeMap<RunId, Vec<&Entry>>, entries: &[Entry], victims: &[Victim]) -> Times {
    let mut times = Times::default();
    for victim in victims {
        let at = millis(victim.at);
        match victim.kind {
            Kind::Agent => {
                times.agent.extend(by_run.values().flat_map(|run| restarted(run, victim.pid, at)));
                times.offer.extend(by_run.values().flat_map(|run| started_since(run, at)));
            }
            Kind::Orchestrator => {
                times.orchestrator.extend(by_run.values().filter_map(|run| decided_anew(run, at)))
            }
            Kind::Server => {
                let next = entries.iter().find(|entry| entry.at.0 > at);
                times.server.extend(next.map(|entry| entry.at.0 - at));
            }
        }
    }
    times
}

/// The offers that nobody had started at that time: how long until each was started. An offer that was made again
/// counts with its next start.
fn started_since(run: &[&Entry], at: u64) -> Vec<u64> {
    let mut open: BTreeSet<&TaskId> = BTreeSet::new();
    let mut times = Vec::new();
    for entry in run {
        let is_later = entry.at.0 > at;
        match &entry.event {
            RecordEvent::Offered(offer) if !is_later => drop(open.insert(&offer.task)),
            RecordEvent::Decided(decided) if !is_later => {
                open.extend(decided.offer.iter().map(|offer| &offer.task));
            }
            RecordEvent::Agent(key, AgentEvent::Started(_)) => {
                let was_open = open.remove(&key.task);
                times.extend((was_open && is_later).then(|| entry.at.0 - at));
            }
            RecordEvent::Offered(_) | RecordEvent::Decided(_) | RecordEvent::Agent(..) => {}
        }
    }
    times
}

/// The tasks that a process had in hand when it was killed: how long until each was started again.
fn restarted(run: &[&Entry], pid: u32, at: u64) -> Vec<u64> {
    let mut times = Vec::new();
    for (place, entry) in run.iter().enumerate().filter(|(_, entry)| entry.at.0 <= at) {
        let RecordEvent::Agent(key, AgentEvent::Started(started)) = &entry.event else { continue };
        if started.pid != pid {
            continue;
        }
        let of_task = run[place + 1..].iter().filter_map(|later| match &later.event {
            RecordEvent::Agent(other, event) if other.task == key.task => Some((later.at.0, event)),
            RecordEvent::Agent(..) | RecordEvent::Decided(_) | RecordEvent::Offered(_) => None,
        });
        for (when, event) in of_task {
            match event {
                AgentEvent::Started(_) => {
                    times.extend(when.checked_sub(at));
                    break;
                }
                AgentEvent::Outcome(_) | AgentEvent::Released(_) => break,
                AgentEvent::Step(_) | AgentEvent::ToolStarted(_) | AgentEvent::Unreadable(_) => {}
            }
        }
    }
    times
}

/// How long a run waited whose author changed over the kill.
fn decided_anew(run: &[&Entry], at: u64) -> Option<u64> {
    let author = |entry: &Entry| match &entry.event {
        RecordEvent::Decided(decided) => Some(decided.by.clone()),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => None,
    };
    let before = run.iter().rev().find(|entry| entry.at.0 <= at && author(entry).is_some())?;
    let after = run.iter().find(|entry| entry.at.0 > at && author(entry).is_some())?;
    (!is_end(before) && author(before) != author(after)).then(|| after.at.0 - at)
}
