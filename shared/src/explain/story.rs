//! The record gone through once: who tried which task when, what each step took, how long each phase lasted, and which
//! entry added what to the sum of what was used.

use std::collections::BTreeMap;

use super::StepTold;
use super::cost::{Before, Ledger};
use super::path::PhaseTime;
use crate::flow::{Action, ModelCall, ObservationStatus, Step};
use crate::ids::{AgentId, Generation, Role, Seq, TaskId};
use crate::run::{
    AgentEvent, AgentKey, Decided, Entry, Input, Phase, RecordEvent, RunEvent, RunState, ToolUses, apply,
};
use crate::time::Millis;

/// One generation of a task: how it was given out, who had it, and how it ended. Places are those in the list of entries.
#[derive(Debug, Clone)]
pub(super) struct Try {
    /// The decision that offered it.
    pub(super) offered: usize,
    /// Who had it, in order.
    pub(super) held: Vec<Hold>,
    /// The entry that ended it: an outcome, or that it was put down.
    pub(super) end: Option<usize>,
    /// The decision that took its end into account.
    pub(super) closed: Option<usize>,
    /// What its steps took.
    pub(super) steps: Vec<StepTime>,
}

/// An agent that had a try.
#[derive(Debug, Clone)]
pub(super) struct Hold {
    /// The agent.
    pub(super) agent: AgentId,
    /// The entry by which it began.
    pub(super) from: usize,
    /// The decision that took the task from it, if it lost it or gave it back.
    pub(super) lost: Option<usize>,
}

/// What a step took.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepTime {
    /// The entry.
    pub(super) place: usize,
    /// Time of models, in milliseconds.
    pub(super) model_ms: u64,
    /// Time of tools, in milliseconds.
    pub(super) tool_ms: u64,
}

/// What was read in the record.
#[derive(Debug)]
pub(super) struct Story<'a> {
    /// The record.
    pub(super) entries: &'a [Entry],
    /// Every try.
    pub(super) tries: BTreeMap<(TaskId, Generation), Try>,
    /// Who does which task, as far as entries say.
    pub(super) roles: BTreeMap<TaskId, Role>,
    /// Every step, in order.
    pub(super) steps: Vec<StepTold>,
    /// How long each phase lasted.
    pub(super) phases: Vec<PhaseTime>,
    /// The decision that ended the run.
    pub(super) ended: Option<usize>,
    /// What was used, by whom.
    pub(super) ledger: Ledger,
    /// How calls of tools went.
    pub(super) tools: ToolUses,
    places: BTreeMap<Seq, usize>,
    began: BTreeMap<(TaskId, Generation, AgentId), usize>,
}

impl<'a> Story<'a> {
    /// Goes through a record. What cannot be followed is told as far as it can be.
    pub(super) fn read(state: &RunState, entries: &'a [Entry]) -> Self {
        let mut story = Self {
            entries,
            tries: BTreeMap::new(),
            roles: BTreeMap::new(),
            steps: Vec::new(),
            phases: Vec::new(),
            ended: None,
            ledger: Ledger::default(),
            tools: ToolUses::default(),
            places: entries.iter().enumerate().map(|(place, entry)| (entry.seq, place)).collect(),
            began: BTreeMap::new(),
        };
        let (mut folded, mut follows, mut decision) = (None::<RunState>, true, 0);
        for (place, entry) in entries.iter().enumerate() {
            story.pass_time(place, folded.as_ref());
            if follows {
                let before = Before::of(folded.as_ref());
                follows = apply(&mut folded, entry).is_ok();
                if let Some(after) = folded.as_ref().filter(|_| follows) {
                    story.ledger.note(before, after, entry);
                }
            }
            story.tools.count(entry);
            match &entry.event {
                RecordEvent::Decided(decided) => {
                    decision = place;
                    story.decided(place, decided);
                }
                RecordEvent::Offered(offer) => story.offered(decision, &offer.task, offer.generation),
                RecordEvent::Agent(key, event) => story.agent(place, key, event),
            }
        }
        story.ledger.close(state);
        story
    }

    /// The place of an entry.
    pub(super) fn place(&self, seq: Seq) -> Option<usize> {
        self.places.get(&seq).copied()
    }

    /// When an entry was stored.
    pub(super) fn at(&self, place: usize) -> Millis {
        self.entries.get(place).map_or(Millis(0), |entry| entry.at)
    }

    /// The position of an entry in the record.
    pub(super) fn seq(&self, place: usize) -> Seq {
        self.entries.get(place).map_or(Seq(0), |entry| entry.seq)
    }

    /// The entry that ended a task last.
    pub(super) fn end_of(&self, task: &TaskId) -> Vec<Seq> {
        let last = self.tries_of(task).filter_map(|(_, one)| one.end).last();
        last.map(|place| self.seq(place)).into_iter().collect()
    }

    /// The tries of a task, in order.
    pub(super) fn tries_of<'b>(
        &'b self,
        task: &TaskId,
    ) -> impl Iterator<Item = (Generation, &'b Try)> + use<'a, 'b> {
        let from = (task.clone(), Generation(0));
        let wanted = task.clone();
        let mine = self.tries.range(from..).take_while(move |((task, _), _)| *task == wanted);
        mine.map(|((_, generation), one)| (*generation, one))
    }

    /// All events of decisions, each with its entry, in order.
    pub(super) fn events(&self) -> impl Iterator<Item = (&'a Entry, &'a RunEvent)> + use<'a> {
        self.entries.iter().flat_map(|entry| match &entry.event {
            RecordEvent::Decided(decided) => {
                decided.events.iter().map(|event| (entry, event)).collect::<Vec<_>>()
            }
            RecordEvent::Offered(_) | RecordEvent::Agent(..) => Vec::new(),
        })
    }

    fn pass_time(&mut self, place: usize, state: Option<&RunState>) {
        let Some(state) = state.filter(|state| state.phase != Phase::Ended) else { return };
        let passed = self.at(place).0.saturating_sub(self.at(place.saturating_sub(1)).0);
        let (phase, paused) = (state.phase, state.control.paused.is_some());
        match self.phases.last_mut().filter(|last| (last.phase, last.paused) == (phase, paused)) {
            Some(last) => last.millis = last.millis.saturating_add(passed),
            None => self.phases.push(PhaseTime { phase, paused, millis: passed }),
        }
    }

    fn offered(&mut self, decision: usize, task: &TaskId, generation: Generation) {
        let new = Try { offered: decision, held: Vec::new(), end: None, closed: None, steps: Vec::new() };
        self.tries.entry((task.clone(), generation)).or_insert(new);
    }

    fn decided(&mut self, place: usize, decided: &Decided) {
        for input in &decided.inputs {
            self.closed(place, input);
        }
        for event in &decided.events {
            self.event(place, event);
        }
        if let Some(offer) = &decided.offer {
            self.offered(place, &offer.task, offer.generation);
        }
    }

    /// Notes which try ends with what a decision was made on.
    fn closed(&mut self, place: usize, input: &Input) {
        let Some(at) = input.closes().and_then(|seq| self.place(seq)) else { return };
        let Some(RecordEvent::Agent(key, event)) = self.entries.get(at).map(|entry| &entry.event) else {
            return;
        };
        match event {
            AgentEvent::Outcome(_) | AgentEvent::Unreadable(_) => {}
            AgentEvent::Released(released) if released.parked || released.wait.is_some() => {}
            AgentEvent::Released(_)
            | AgentEvent::Started(_)
            | AgentEvent::ToolStarted(_)
            | AgentEvent::Step(_) => return,
        }
        let Some(found) = self.tries.get_mut(&(key.task.clone(), key.generation)) else { return };
        if found.end.is_none() && at > found.offered {
            (found.end, found.closed) = (Some(at), Some(place));
        }
    }

    fn event(&mut self, place: usize, event: &RunEvent) {
        if let RunEvent::TaskStarted(started) = event {
            let key = (started.task.clone(), started.generation, started.agent.clone());
            let from = self.began.get(&key).copied().unwrap_or(place);
            if let Some(found) = self.tries.get_mut(&(started.task.clone(), started.generation)) {
                found.held.push(Hold { agent: started.agent.clone(), from, lost: None });
            }
        } else if let RunEvent::TaskOrphaned(lost) = event {
            self.lost(place, &lost.task, lost.generation);
        } else if let RunEvent::TaskReleased(lost) = event {
            self.lost(place, &lost.task, lost.generation);
        } else if let RunEvent::TaskTakenBack(lost) = event {
            self.lost(place, &lost.task, lost.generation);
        } else if let RunEvent::MembersBegun(begun) = event {
            self.offered(place, &TaskId::Leaf(begun.task.clone()), begun.generation);
        } else if event.ends_run() {
            self.ended = Some(place);
        }
    }

    fn lost(&mut self, place: usize, task: &TaskId, generation: Generation) {
        let found = self.tries.get_mut(&(task.clone(), generation));
        if let Some(hold) = found.and_then(|found| found.held.last_mut()) {
            hold.lost = Some(place);
        }
    }

    fn agent(&mut self, place: usize, key: &AgentKey, event: &AgentEvent) {
        self.roles.entry(key.task.clone()).or_insert_with(|| key.role.clone());
        match event {
            AgentEvent::Started(_) => {
                self.began.insert((key.task.clone(), key.generation, key.agent.clone()), place);
            }
            AgentEvent::Step(step) => self.step(place, key, step),
            AgentEvent::Outcome(outcome) => {
                if let Some(step) = &outcome.last_step {
                    self.step(place, key, step);
                }
            }
            AgentEvent::ToolStarted(_) | AgentEvent::Released(_) | AgentEvent::Unreadable(_) => {}
        }
    }

    fn step(&mut self, place: usize, key: &AgentKey, step: &Step) {
        let sum = |all: &mut dyn Iterator<Item = u64>| all.fold(0, u64::saturating_add);
        let model_ms = sum(&mut step.calls.iter().map(|call| call.millis));
        let tool_ms = sum(&mut step.observations().map(|observation| observation.millis));
        if let Some(found) = self.tries.get_mut(&(key.task.clone(), key.generation)) {
            found.steps.push(StepTime { place, model_ms, tool_ms });
        }
        step.calls.iter().for_each(|call: &ModelCall| self.ledger.model(call));
        self.steps.push(StepTold {
            task: key.task.clone(),
            number: step.number,
            agent: key.agent.clone(),
            action: actions(step),
            well: step.observation.as_ref().map(|one| one.status == ObservationStatus::Success),
            model_ms,
            tool_ms,
            has_prompt: !step.calls.is_empty(),
            entry: self.seq(place),
        });
    }
}

/// The actions of a step by their names.
fn actions(step: &Step) -> String {
    let names: Vec<&str> = step.acts().map(|(action, _): (&Action, _)| action.name.as_str()).collect();
    super::words::brief(&names.join(", "))
}
