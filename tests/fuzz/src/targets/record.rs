//! The record: whatever stands in it folds or is refused, and no agent can spoil a run.

use std::sync::LazyLock;

use muster_bus::subject::Subject;
use muster_shared::blueprint;
use muster_shared::ids::{RunId, Seq};
use muster_shared::plan::progress::{self, Detail};
use muster_shared::run::invariants::check_all;
use muster_shared::run::{
    AgentKey, Entry, RecordEvent, RunEvent, RunState, Snapshot, apply, count, fold_event, gaps, shortfalls,
};
use muster_shared::time::Millis;
use muster_shared::wire::codec::decode_unbounded;
use muster_shared::wire::{Body, Encoding, Envelope, decode, encode};
use serde::Deserialize;

use super::wire::WORDS;
use super::{ensure, fixture, golden};
use crate::{Seen, Shape, Target};

/// Entries of the record, of whatever state of a run.
pub(super) const ENTRIES: Target = Target::new("record_entries", Shape::Json, entry)
    .with_fixtures(&["tests/fuzz/corpus/record_lines"])
    .with_made(super::golden_json)
    .with_words(WORDS);

/// Events of decisions.
pub(super) const EVENTS: Target =
    Target::new("record_events", Shape::Json, event).with_made(made_events).with_words(WORDS);

/// Snapshots of runs.
pub(super) const SNAPSHOTS: Target =
    Target::new("snapshots", Shape::Json, snapshot).with_made(made_snapshots).with_words(WORDS);

/// A run as it was once recorded.
pub(super) struct Recorded {
    pub(super) entries: Vec<Entry>,
    /// The state after each entry.
    pub(super) states: Vec<RunState>,
}

#[derive(Deserialize)]
struct Line {
    seq: u64,
    at: u64,
    subject: String,
    envelope: Envelope,
}

static RECORDED: LazyLock<Result<Recorded, String>> = LazyLock::new(recorded);

fn recorded() -> Result<Recorded, String> {
    let (mut state, mut entries, mut states) = (None, Vec::new(), Vec::new());
    for line in fixture("tests/golden/run.jsonl")?.lines() {
        let Line { seq, at, subject, envelope } =
            serde_json::from_str(line).map_err(|error| error.to_string())?;
        let subject = Subject::parse(&subject)?;
        let run = subject.run().ok_or("a subject without a run")?;
        let key = if let Subject::Event(_, key, _) = subject { Some(key) } else { None };
        let event = event_of(envelope.body, key).ok_or("a body that is no entry")?;
        let entry = Entry { seq: Seq(seq), at: Millis(at), run, event };
        apply(&mut state, &entry).map_err(|error| error.to_string())?;
        entries.push(entry);
        states.extend(state.clone());
    }
    Ok(Recorded { entries, states })
}

fn event_of(body: Body, key: Option<AgentKey>) -> Option<RecordEvent> {
    match (body, key) {
        (Body::Decided(decided), _) => Some(RecordEvent::Decided(decided)),
        (Body::Offered(offer), _) => Some(RecordEvent::Offered(offer)),
        (body, Some(key)) => body.into_agent_event().map(|event| RecordEvent::Agent(key, event)),
        (_, None) => None,
    }
}

impl Recorded {
    pub(super) fn get() -> Result<&'static Self, String> {
        RECORDED.as_ref().map_err(Clone::clone)
    }

    /// Some states, and with each the key of an agent that works at something then.
    fn places(&self) -> impl Iterator<Item = (&RunState, Option<AgentKey>)> {
        let last = self.states.len().saturating_sub(1);
        [0, last / 4, last / 2, last].into_iter().filter_map(|at| {
            let keys = self.entries[..=at].iter().rev();
            let key = keys.clone().find_map(|entry| match &entry.event {
                RecordEvent::Agent(key, _) => Some(key.clone()),
                RecordEvent::Decided(_) | RecordEvent::Offered(_) => None,
            });
            let first = self.entries.iter().find_map(|entry| match &entry.event {
                RecordEvent::Agent(key, _) => Some(key.clone()),
                RecordEvent::Decided(_) | RecordEvent::Offered(_) => None,
            });
            Some((self.states.get(at)?, key.or(first)))
        })
    }
}

fn entry(input: &[u8]) -> Result<Seen, String> {
    let envelope: Envelope = match decode(input, Encoding::Json) {
        Ok(envelope) => envelope,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    let (mut folded, mut refused) = (false, Vec::new());
    for (before, key) in Recorded::get()?.places() {
        let Some(event) = event_of(envelope.body.clone(), key) else {
            return Ok(Seen::Refused("no entry of the record".to_owned()));
        };
        let is_agent = matches!(event, RecordEvent::Agent(..));
        let (seq, at) = (Seq(before.folded.0 + 1), before.decided_at);
        let entry = Entry { seq, at, run: before.id, event };
        let mut state = Some(before.clone());
        match apply(&mut state, &entry) {
            Ok(()) => {}
            Err(error) if is_agent => return Err(format!("an agent's entry does not fold: {error}")),
            Err(error) => {
                refused.push(error.to_string());
                continue;
            }
        }
        let Some(after) = &state else { return Err("the run is gone".to_owned()) };
        if is_agent {
            check_all(before, &entry, after).map_err(|broken| broken.join("; "))?;
        }
        let mut twice = state.clone();
        apply(&mut twice, &entry).map_err(|error| format!("folding twice: {error}"))?;
        ensure(twice == state, || "folding twice changes something".to_owned())?;
        look(after)?;
        folded = true;
    }
    // Of a run that is not there yet: a decision may create one.
    let run = RunId::from_uuid(uuid::Uuid::from_u128(7));
    if let Some(event @ RecordEvent::Decided(_)) = event_of(envelope.body, None) {
        let mut state = None;
        match apply(&mut state, &Entry { seq: Seq(1), at: Millis(1), run, event }) {
            Ok(()) => {
                state.iter().try_for_each(look)?;
                folded = true;
            }
            Err(error) => refused.push(error.to_string()),
        }
    }
    Ok(Seen::by_several(folded, &refused))
}

fn event(input: &[u8]) -> Result<Seen, String> {
    let event: RunEvent = match serde_json::from_slice(input) {
        Ok(event) => event,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    let written = serde_json::to_vec(&event).map_err(|error| error.to_string())?;
    let again: RunEvent =
        serde_json::from_slice(&written).map_err(|error| format!("not read again: {error}"))?;
    ensure(again == event, || "read again it is another".to_owned())?;
    let (mut folded, mut refused) = (false, Vec::new());
    for (before, _) in Recorded::get()?.places() {
        let mut state = before.clone();
        match fold_event(&mut state, &event, Millis(before.decided_at.0.saturating_add(1))) {
            Ok(()) => {
                look(&state)?;
                folded = true;
            }
            Err(error) => refused.push(error.to_string()),
        }
    }
    Ok(Seen::by_several(folded, &refused))
}

fn snapshot(input: &[u8]) -> Result<Seen, String> {
    let snapshot: Snapshot = match decode_unbounded(input, Encoding::Json) {
        Ok(snapshot) => snapshot,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    let written = encode(&snapshot, Encoding::MessagePack).map_err(|error| error.to_string())?;
    let again: Snapshot = decode_unbounded(&written, Encoding::MessagePack)
        .map_err(|error| format!("not read again: {error}"))?;
    ensure(again == snapshot, || "read again it is another".to_owned())?;
    let _usable = snapshot.is_usable();
    let recorded = Recorded::get()?;
    let first = recorded.entries.first().ok_or("no entries")?;
    let Some((state, _)) = snapshot.restore(first) else {
        return Ok(Seen::Refused("not of this run".to_owned()));
    };
    look(&state)?;
    // What was recorded after it folds or is refused.
    let mut state = Some(state);
    for entry in &recorded.entries {
        if let Err(error) = apply(&mut state, entry) {
            return Ok(Seen::at_door(error));
        }
    }
    state.iter().try_for_each(look).map(|()| Seen::Read)
}

/// What whoever looks on makes of a state.
fn look(state: &RunState) -> Result<(), String> {
    for detail in [Detail::Decided, Detail::Seen] {
        let _shown = progress::render(&progress::lines(state, detail));
    }
    let _counts = (count(state).map(|count| count.in_words()), shortfalls(state).len(), state.used());
    let _saved = blueprint::save(state, "saved").map(|saved| saved.blueprint.steps.len());
    let _inputs = state.undecided().count();
    let snapshot = Snapshot::of(state, Seq(1), None);
    let written = encode(&snapshot, Encoding::Json).map_err(|error| format!("no snapshot of it: {error}"))?;
    // What is nested deeper than anything may be is told when it is read, and folded from the beginning then.
    if let Ok(again) = decode_unbounded::<Snapshot>(&written, Encoding::Json) {
        ensure(again == snapshot, || "its snapshot is read as another".to_owned())?;
    }
    let _gaps = gaps(&[] as &[Entry]);
    Ok(())
}

/// Snapshots of the recorded run, as this build writes them.
/// The events of the golden decisions.
fn made_events() -> Result<Vec<Vec<u8>>, String> {
    let events =
        golden()?.into_iter().filter_map(|line| line.json["body"]["content"]["events"].as_array().cloned());
    Ok(events.flatten().map(|event| event.to_string().into_bytes()).collect())
}

fn made_snapshots() -> Result<Vec<Vec<u8>>, String> {
    let recorded = Recorded::get()?;
    let first = recorded.entries.first().ok_or("no entries")?;
    let written = recorded.states.iter().step_by(12).map(|state| {
        encode(&Snapshot::of(state, first.seq, None), Encoding::Json).map_err(|error| error.to_string())
    });
    written.collect()
}
