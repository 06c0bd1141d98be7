//! What is missing from the record of a run. Entries name each other: a decision what it was written after, what it took
//! into account and which entries of agents it is about; a batch how many offers follow; steps are numbered. What is
//! named and not there was lost. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{AgentEvent, Decided, Entry, EventKind, Input, RecordEvent, RunEvent};
use crate::flow::Outcome;
use crate::ids::{Generation, Seq, TaskId};

/// Most missing steps that are named of one entry.
const MOST_STEPS: usize = 16;

/// Something that is missing from the record of a run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// The entry that created the run.
    #[error("its beginning is missing: the first entry that there is, {first}, does not create it")]
    Beginning {
        /// The first entry that there is.
        first: Seq,
    },
    /// An entry that another one names.
    #[error("entry {seq} is missing, which entry {named_by} names")]
    Entry {
        /// Its place.
        seq: Seq,
        /// The entry that names it.
        named_by: Seq,
    },
    /// Offers that a decision announced.
    #[error("offers are missing ({missing}) that the decision of entry {decision} made")]
    Offers {
        /// The decision.
        decision: Seq,
        /// How many of them.
        missing: u32,
    },
    /// A step of a task that its agent took before it ended, or before it took another.
    #[error(
        "step {number} of task {task} (generation {generation}) is missing, which was taken before entry {named_by}"
    )]
    Step {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// The step.
        number: u32,
        /// The entry that comes after it.
        named_by: Seq,
    },
}

/// What is missing among the entries of one run, all of which are given, in order. What was lost at the very end
/// nothing tells.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "what can be gone through is passed so")]
pub fn gaps<'a>(entries: impl IntoIterator<Item = &'a Entry> + Clone) -> Vec<Gap> {
    let all = || entries.clone().into_iter();
    let Some(first) = all().next() else { return Vec::new() };
    let mut found = Vec::new();
    // An agent's entry before the creation of the run is about nothing.
    let begins = all().find(|entry| !matches!(entry.event, RecordEvent::Agent(..)));
    if !begins.is_some_and(creates) {
        found.push(Gap::Beginning { first: begins.unwrap_or(first).seq });
    }
    let there: BTreeSet<Seq> = all().map(|entry| entry.seq).collect();
    let mut told: BTreeSet<Seq> = BTreeSet::new();
    let mut batch: Option<(Seq, u32)> = None;
    for entry in all() {
        match &entry.event {
            RecordEvent::Decided(decided) => {
                found.extend(unmade(batch.take()));
                batch = Some((entry.seq, decided.offers));
                let missing = named(decided).into_iter().filter(|seq| *seq != Seq(0) && !there.contains(seq));
                let new = missing.filter(|seq| told.insert(*seq));
                found.extend(new.map(|seq| Gap::Entry { seq, named_by: entry.seq }));
            }
            RecordEvent::Offered(_) => {
                if let Some((_, missing)) = &mut batch {
                    *missing = missing.saturating_sub(1);
                }
            }
            RecordEvent::Agent(..) => {}
        }
    }
    found.extend(unmade(batch));
    found.extend(steps(all()));
    found
}

fn creates(entry: &Entry) -> bool {
    entry.event.events().iter().any(|event| matches!(event, RunEvent::RunCreated(_)))
}

/// The entries that a decision names.
fn named(decided: &Decided) -> BTreeSet<Seq> {
    let of_agents = decided.inputs.iter().filter_map(|input| match input {
        Input::Agent { seq } | Input::Unreadable { seq, .. } => Some(*seq),
        Input::ContractBroken { outcome, .. } => Some(*outcome),
        Input::Goal { .. }
        | Input::Fork { .. }
        | Input::Refuse { .. }
        | Input::Capacity
        | Input::Timer
        | Input::ChildEnded { .. }
        | Input::GuardsSaid { .. }
        | Input::Bids { .. }
        | Input::AgentLost { .. }
        | Input::Silent { .. }
        | Input::TrialWithdrawn { .. }
        | Input::Request(_) => None,
    });
    of_agents.chain([decided.basis, decided.after]).collect()
}

fn unmade(batch: Option<(Seq, u32)>) -> Option<Gap> {
    let (decision, missing) = batch.filter(|(_, missing)| *missing > 0)?;
    Some(Gap::Offers { decision, missing })
}

/// The steps of one task that were read.
#[derive(Default)]
struct StepsRead {
    /// By generation: a generation may go on from those before it.
    numbers: BTreeMap<Generation, BTreeSet<u32>>,
    /// Whether one stands there that cannot be read, and so is not missing.
    unreadable: bool,
}

/// Steps that are missing: between others, and those that an outcome tells of.
fn steps<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<Gap> {
    let mut tasks: BTreeMap<TaskId, StepsRead> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in entries {
        let RecordEvent::Agent(key, event) = &entry.event else { continue };
        let taken = tasks.entry(key.task.clone()).or_default();
        let missing = match event {
            AgentEvent::Step(step) => {
                let numbers = taken.numbers.entry(key.generation).or_default();
                let before = numbers.last().map_or(step.number, |last| last.saturating_add(1));
                numbers.insert(step.number);
                // A forged step may precede the first step of a generation that continues another one.
                (before..step.number).filter(|number| !taken.has_read(*number, key.generation)).collect()
            }
            AgentEvent::Outcome(outcome) => taken.told_of(outcome, key.generation),
            AgentEvent::Unreadable(other) => {
                taken.unreadable |= other.kind == EventKind::Step;
                BTreeSet::new()
            }
            AgentEvent::Started(_) | AgentEvent::ToolStarted(_) | AgentEvent::Released(_) => BTreeSet::new(),
        };
        let (task, generation) = (&key.task, key.generation);
        let missing = missing.into_iter().filter(|_| !taken.unreadable).take(MOST_STEPS);
        let gap = |number| Gap::Step { task: task.clone(), generation, number, named_by: entry.seq };
        found.extend(missing.map(gap));
    }
    found
}

impl StepsRead {
    /// The steps that an outcome tells of and that were not read, without the one that it brings itself.
    fn told_of(&self, outcome: &Outcome, generation: Generation) -> BTreeSet<u32> {
        let itself = outcome.last_step.as_ref().map(|step| step.number);
        let told = outcome.steps.iter().map(|step| step.number).filter(|number| Some(*number) != itself);
        told.filter(|number| !self.has_read(*number, generation)).collect()
    }

    /// Whether a step of this generation, or of one before it, was read.
    fn has_read(&self, number: u32, generation: Generation) -> bool {
        self.numbers.range(..=generation).any(|(_, taken)| taken.contains(&number))
    }
}

#[cfg(test)]
#[path = "gaps_tests.rs"]
mod tests;
