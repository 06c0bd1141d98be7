//! What the record says of a task: read by whoever goes on with it, and told to whoever comes too late.

use std::collections::HashMap;

use muster_agents::react::history::History;
use muster_bus::{Bus, BusError, Named, RecordFilter};
use muster_shared::flow::TaskOffered;
use muster_shared::ids::{AgentId, Generation, Role, RunId, Seq, TaskId};
use muster_shared::run::{AgentEvent, AgentKey, Entry, RecordEvent, Say, is_of_one};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::refusal::Closed;

/// One generation of one task of one run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TaskKey {
    pub(crate) run: RunId,
    pub(crate) task: TaskId,
    pub(crate) generation: Generation,
}

impl TaskKey {
    pub(crate) fn of(offer: &TaskOffered) -> Self {
        Self { run: offer.run, task: offer.task.clone(), generation: offer.generation }
    }

    /// As whom an agent writes of it.
    pub(crate) fn author(&self, agent: &AgentId, role: &Role) -> AgentKey {
        let (role, agent) = (role.clone(), agent.clone());
        AgentKey { role, agent, task: self.task.clone(), generation: self.generation }
    }
}

/// One attempt at it.
#[derive(Debug, Clone)]
pub(crate) struct Attempt<'a> {
    pub(crate) key: &'a TaskKey,
    pub(crate) agent: &'a AgentId,
    /// Its role.
    pub(crate) role: &'a Role,
    /// Where its `started` stands.
    pub(crate) started: Seq,
}

/// Under which id a message of a program is recorded: the same for the same message, whichever gateway writes it.
pub(crate) fn id_of(attempt: &Attempt<'_>, message: &str) -> Uuid {
    let TaskKey { run, task, generation } = attempt.key;
    let said = format!("{run} {task} {generation} {} {message}", attempt.agent);
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&Sha256::digest(said.as_bytes())[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// What a message became that is in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// This step.
    Step(u32),
    /// The announcement of this step.
    Begun(u32),
    /// The end of the generation.
    End,
}

/// A task as the record has it.
pub(crate) struct Past {
    pub(crate) history: History,
    /// The last position that was read.
    pub(crate) last: Seq,
    /// Where the queue's acknowledgement goes.
    pub(crate) ack: String,
    /// The messages that it holds.
    pub(crate) recorded: HashMap<Uuid, Recorded>,
    /// Why nobody goes on with it, if so.
    pub(crate) closed: Option<Closed>,
}

/// What the record says of an attempt; nothing when there is no such attempt.
pub(crate) async fn read(
    bus: &Bus,
    offer: &TaskOffered,
    attempt: &Attempt<'_>,
) -> Result<Option<Past>, BusError> {
    let (record, key) = (bus.record(), attempt.key);
    let of = |generation| {
        let (run, task) = (key.run, key.task.clone());
        RecordFilter::Task { run, task, generation }
    };
    let mut history = History::default();
    let mut generation = offer.continues.unwrap_or(key.generation);
    let author = key.author(attempt.agent, attempt.role);
    while generation < key.generation {
        let entries = record.read(&of(generation), Seq(0)).await?;
        let decisions = bus.record().decisions_since(key.run, entries.first()).await?;
        let counts = Say::of(&author, generation).of_several(&entries, &decisions);
        history = history.going_on_from(those(entries, &counts));
        generation = generation.next();
    }
    let named = record.read_named(&of(key.generation), Seq(0)).await?;
    let last = named.last().map_or(attempt.started, |one| one.entry.seq);
    let entries: Vec<&Entry> = named.iter().map(|one| &one.entry).collect();
    let first = entries.first().filter(|_| !is_of_one(&entries)).copied();
    let decisions = bus.record().decisions_since(key.run, first).await?;
    let counts = Say::of(&author, key.generation).of_several(&entries, &decisions);
    let named = those(named, &counts);
    let Some(ack) = started_in(&named, attempt) else { return Ok(None) };
    let closed = match closed_in(&named, attempt) {
        Some(closed) => Some(closed),
        None => {
            let taken = record.was_taken_from(key.run, &key.task, attempt.agent, attempt.started).await?;
            taken.then(|| Closed::HandedOn("it counted as lost".to_owned()))
        }
    };
    let recorded = named.iter().filter_map(|one| Some((one.id, recorded_in(&one.entry)?))).collect();
    let history = history.and_then(named.into_iter().map(|one| one.entry).collect());
    Ok(Some(Past { history, last, ack, recorded, closed }))
}

/// Those of them that count.
fn those<T>(all: Vec<T>, counts: &[bool]) -> Vec<T> {
    all.into_iter().zip(counts).filter(|(_, counts)| **counts).map(|(one, _)| one).collect()
}

/// Where the acknowledgement goes that this attempt began with.
fn started_in(entries: &[Named], attempt: &Attempt<'_>) -> Option<String> {
    entries.iter().find_map(|Named { entry, .. }| match &entry.event {
        RecordEvent::Agent(key, AgentEvent::Started(started))
            if entry.seq == attempt.started && key.agent == *attempt.agent =>
        {
            Some(started.ack.clone())
        }
        _ => None,
    })
}

/// What ended the attempt.
fn closed_in(entries: &[Named], attempt: &Attempt<'_>) -> Option<Closed> {
    let after = entries.iter().filter(|one| one.entry.seq > attempt.started);
    after.filter_map(|one| closed_by(&one.entry, attempt.agent)).next_back()
}

fn closed_by(entry: &Entry, own: &AgentId) -> Option<Closed> {
    let RecordEvent::Agent(key, event) = &entry.event else { return None };
    match event {
        AgentEvent::Started(_) if key.agent == *own => {
            Some(Closed::HandedOn("you began it anew: use the newer token".to_owned()))
        }
        AgentEvent::Started(_) => Some(Closed::With(key.agent.clone())),
        AgentEvent::Outcome(outcome) if outcome.ending == muster_shared::flow::Ending::Cancelled => {
            Some(Closed::Cancelled(outcome.reason.clone()))
        }
        AgentEvent::Outcome(_) | AgentEvent::Unreadable(_) => Some(Closed::Ended),
        AgentEvent::Released(released) if released.wait.is_some() => Some(Closed::Waits),
        AgentEvent::Released(released) if released.parked => Some(Closed::PutDown(released.reason.clone())),
        AgentEvent::Released(released) => Some(Closed::HandedOn(released.reason.clone())),
        AgentEvent::Step(_) | AgentEvent::ToolStarted(_) => None,
    }
}

const fn recorded_in(entry: &Entry) -> Option<Recorded> {
    let RecordEvent::Agent(_, event) = &entry.event else { return None };
    recorded_as(event)
}

/// What a message became with this event.
pub(crate) const fn recorded_as(event: &AgentEvent) -> Option<Recorded> {
    match event {
        AgentEvent::Step(step) => Some(Recorded::Step(step.number)),
        AgentEvent::ToolStarted(begun) => Some(Recorded::Begun(begun.step.number)),
        AgentEvent::Outcome(_) | AgentEvent::Released(_) => Some(Recorded::End),
        AgentEvent::Started(_) | AgentEvent::Unreadable(_) => None,
    }
}
