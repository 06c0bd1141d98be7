//! Whoever folds a record, in whatever parts and from wherever, comes to the same state.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use muster_shared::flow::Usage;
use muster_shared::ids::{AgentId, Generation, TaskId};
use muster_shared::run::event::{ChildEnded, TaskQuarantined, TaskStarted};
use muster_shared::run::{
    AgentEvent, AgentKey, ApplyError, Entry, Input, RecordEvent, RunEvent, RunState, Snapshot, apply,
    apply_late,
};
use muster_shared::wire::Encoding;
use muster_shared::wire::codec::{decode_unbounded, encode};

use crate::random::Random;

/// Folds a record from its first entry to its last.
pub(crate) fn whole(entries: &[Rc<Entry>]) -> Result<Option<RunState>, ApplyError> {
    let mut state = None;
    for entry in entries {
        apply(&mut state, entry)?;
    }
    Ok(state)
}

/// Folds a part, keeps the state aside as an owner does and takes it up again, and folds the rest from an earlier
/// position: what was folded is ignored.
pub(crate) fn in_parts(entries: &[Rc<Entry>], random: &mut Random) -> Result<Option<RunState>, ApplyError> {
    let cut = usize::try_from(random.below(entries.len() as u64 + 1)).unwrap_or(0);
    let back = usize::try_from(random.below(cut as u64 + 1)).unwrap_or(0);
    let mut state = whole(&entries[..cut])?.and_then(|state| kept_aside(&state, entries.first()?));
    for entry in &entries[back..] {
        apply(&mut state, entry)?;
    }
    Ok(state)
}

/// A state as it comes back from a snapshot; nothing when it does not come back.
fn kept_aside(state: &RunState, first: &Entry) -> Option<RunState> {
    let bytes = encode(&Snapshot::of(state, first.seq, None), Encoding::MessagePack).ok()?;
    let snapshot: Snapshot = decode_unbounded(&bytes, Encoding::MessagePack).ok()?;
    let (state, _) = snapshot.restore(first)?;
    Some(state)
}

/// Folds as an owner does, who knows its own decisions before it has read what agents wrote just before them.
pub(crate) fn late(entries: &[Rc<Entry>]) -> Result<Option<RunState>, ApplyError> {
    let mut state = None;
    let mut unread: VecDeque<&Rc<Entry>> = VecDeque::new();
    for entry in entries {
        match &entry.event {
            RecordEvent::Agent(..) => unread.push_back(entry),
            RecordEvent::Decided(decided) => {
                let named = decided.inputs.iter().filter_map(|input| match input {
                    Input::Agent { seq } | Input::Unreadable { seq, .. } => Some(*seq),
                    _ => None,
                });
                let named = named.max().unwrap_or_default();
                while let Some(read) = unread.pop_front_if(|entry| entry.seq <= named) {
                    fold_late(&mut state, read);
                }
                apply(&mut state, entry)?;
            }
            RecordEvent::Offered(_) => apply(&mut state, entry)?,
        }
    }
    unread.into_iter().for_each(|entry| fold_late(&mut state, entry));
    Ok(state)
}

fn fold_late(state: &mut Option<RunState>, entry: &Entry) {
    if let (Some(run), RecordEvent::Agent(key, event)) = (state, &entry.event) {
        apply_late(run, entry.seq, key, event);
    }
}

/// What agents say in a record that they used, with outcomes and when they put down tasks that were theirs, and a call for
/// each agent that died of a task nobody goes on with.
pub(crate) fn used(entries: &[Rc<Entry>]) -> Usage {
    let mut used = Usage::default();
    let had = holders(entries);
    let is_said = |key: &AgentKey| had.contains(&(key.task.clone(), key.generation, key.agent.clone()));
    for entry in entries {
        match &entry.event {
            RecordEvent::Agent(key, AgentEvent::Outcome(outcome)) if is_said(key) => used += outcome.usage,
            RecordEvent::Agent(key, AgentEvent::Released(released)) if is_said(key) => {
                used += released.usage;
            }
            RecordEvent::Decided(decided) => decided.events.iter().for_each(|event| used += used_by(event)),
            _ => {}
        }
    }
    used
}

/// Who had which generation of which task.
fn holders(entries: &[Rc<Entry>]) -> BTreeSet<(TaskId, Generation, AgentId)> {
    let events = entries.iter().filter_map(|entry| match &entry.event {
        RecordEvent::Decided(decided) => Some(&decided.events),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => None,
    });
    let had = events.flatten().filter_map(|event| match event {
        RunEvent::TaskStarted(TaskStarted { task, generation, agent, .. }) => {
            Some((task.clone(), *generation, agent.clone()))
        }
        _ => None,
    });
    had.collect()
}

/// What a decision adds to what agents say.
fn used_by(event: &RunEvent) -> Usage {
    match event {
        // What a child used was used by its parent.
        RunEvent::ChildEnded(ChildEnded { end, .. }) => end.usage,
        RunEvent::TaskQuarantined(TaskQuarantined { evidence, .. }) => {
            Usage { wasted_calls: evidence.agents.len() as u64, ..Usage::default() }
        }
        _ => Usage::default(),
    }
}
