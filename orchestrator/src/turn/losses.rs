//! What a run has to know of losses before it decides: agents that are gone since before anybody watched, and how far
//! tasks came that one more death ends.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::ids::{AgentId, Generation, Seq, TaskId};
use muster_shared::run::{AgentEvent, Entry, Input, RecordEvent, RunState};

use crate::decide::{holder_against, holders, last_chances};
use crate::drive::{Capacity, Holding};

/// Agents that have tasks of the run in hand and that the fleet does not know.
pub(super) fn unknown_holders(fleet: &Capacity, run: &RunState) -> BTreeSet<AgentId> {
    let mut missing = holders(run);
    missing.retain(|agent| !fleet.knows(agent));
    missing
}

/// Agents of which it has to be found out whether they are there: those that the fleet does not know, of a run that was just
/// read; and whoever has a task that another begins.
pub(super) fn doubted(fleet: &Capacity, run: &RunState, fresh: bool, agents: &[Input]) -> BTreeSet<AgentId> {
    let mut doubted = if fresh { unknown_holders(fleet, run) } else { BTreeSet::new() };
    let begun = agents.iter().filter_map(|input| holder_against(run, begun_at(input)?));
    doubted.extend(begun.cloned());
    doubted
}

/// Who begins a task of those that are known to be lost.
pub(super) fn begun_late(
    run: &RunState,
    agents: &[Input],
    is_lost: impl Fn(&AgentId) -> bool,
) -> BTreeSet<AgentId> {
    let begun = agents.iter().filter_map(|input| run.pending.get(&begun_at(input)?));
    let begun = begun.filter(|(key, event)| matches!(event, AgentEvent::Started(_)) && is_lost(&key.agent));
    begun.map(|(key, _)| key.agent.clone()).collect()
}

/// Where an agent's word stands.
const fn begun_at(input: &Input) -> Option<Seq> {
    if let Input::Agent { seq } = input { Some(*seq) } else { None }
}

/// What follows when an agent is not there that has a task.
pub(super) fn was_gone(agent: AgentId) -> Input {
    let reason = "it was gone when that was looked up".to_owned();
    Input::AgentLost { agent, reason, steps: BTreeMap::new(), elsewhere: 0 }
}

/// A task whose last step in the record makes a difference for what the loss of its agent comes to.
#[derive(Debug, Clone)]
pub(super) struct LastChance {
    pub(super) task: TaskId,
    pub(super) generation: Generation,
    /// Which of the inputs tells of the loss.
    lost: usize,
}

/// Counts what lost agents had in hand besides, and says of which tasks the last step has to be looked up.
pub(super) fn last_steps_to_look_up(run: &RunState, wakes: &mut [Input]) -> Vec<LastChance> {
    if !wakes.iter().any(|wake| matches!(wake, Input::AgentLost { .. })) {
        return Vec::new();
    }
    let held = Holding::of(run);
    let mut chances = Vec::new();
    for (lost, wake) in wakes.iter_mut().enumerate() {
        if let Input::AgentLost { agent, elsewhere, .. } = wake {
            *elsewhere = elsewhere.saturating_sub(held.of_agent(agent));
            let tasks = last_chances(run, agent).into_iter();
            chances.extend(tasks.map(|(task, generation)| LastChance { task, generation, lost }));
        }
    }
    chances
}

/// Adds the last step of a task to the loss of its agent.
pub(super) fn note_last_step(wakes: &mut [Input], chance: LastChance, step: u32) {
    if let Some(Input::AgentLost { steps, .. }) = wakes.get_mut(chance.lost) {
        steps.insert(chance.task, step);
    }
}

/// The last step that is in the record of a generation of a task; 0 when there is none.
pub(crate) fn last_step<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> u32 {
    let step = |event: &RecordEvent| {
        if let RecordEvent::Agent(_, AgentEvent::Step(step)) = event { Some(step.number) } else { None }
    };
    entries.into_iter().filter_map(|entry| step(&entry.event)).max().unwrap_or(0)
}
