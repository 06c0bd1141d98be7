//! Somebody with the credentials of a role who writes what it likes about tasks that others have.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use muster_shared::flow::{Ending, Product, TaskResult};
use muster_shared::ids::{AgentId, Attempt, Generation, RunId, Seq, TaskId};
use muster_shared::run::event::{TaskCompleted, TaskStarted};
use muster_shared::run::{
    AgentEvent, AgentKey, Entry, EventKind, RecordEvent, Released, RunEvent, Say, Started, Unreadable,
};

use crate::faults::Fault;
use crate::products;
use crate::random::Random;
use crate::world::World;

/// The number in its name, whatever its role.
const NUMBER: u32 = u32::MAX;
/// What stands in all that it gives.
const FORGED: &str = "forged";
/// How many of a thousand words of others it answers.
const OFTEN: u64 = 250;

fn name(key: &AgentKey) -> AgentId {
    AgentId::new(&key.role.to_string(), NUMBER)
}

/// Whether somebody hostile wrote it.
pub(crate) fn is_hostile(key: &AgentKey) -> bool {
    key.agent == name(key)
}

/// Whether there is somebody hostile in this seed.
pub(crate) fn is_there(seed: u64) -> bool {
    Random::of(seed, "hostile").chance(150)
}

fn forged(random: &mut Random) -> AgentEvent {
    let attempt = [Attempt(0), Attempt(2), Attempt(u32::MAX)][usize::try_from(random.below(3)).unwrap_or(0)];
    match random.below(8) {
        0..=2 => AgentEvent::Started(Started {
            attempt,
            ack: "$JS.ACK.TASKS.planner.1.1".to_owned(),
            pid: 0,
            host: String::new(),
            after_step: 0,
        }),
        3 | 4 => {
            let result = TaskResult { conclusion: FORGED.to_owned(), ..TaskResult::default() };
            let product = Some(Product::Result(result));
            AgentEvent::Outcome(products::ended(Ending::Done, product, 1_000_000, 1_000_000).into())
        }
        5 => {
            let (reason, parked) = (FORGED.to_owned(), random.chance(500));
            AgentEvent::Released(Released { reason, parked, ..Released::default() })
        }
        6 => AgentEvent::Step(products::step(1, None)),
        _ => {
            let kinds = EventKind::ALL;
            let kind = kinds[usize::try_from(random.below(5)).unwrap_or(0)];
            AgentEvent::Unreadable(Unreadable { kind, why: FORGED.to_owned() })
        }
    }
}

impl World {
    /// Somebody hostile answers what an agent wrote about its task.
    pub(crate) fn forge_after(&mut self, batch: &[Rc<Entry>]) {
        let [entry] = batch else { return };
        let RecordEvent::Agent(
            key,
            AgentEvent::Started(_) | AgentEvent::Step(_) | AgentEvent::ToolStarted(_),
        ) = &entry.event
        else {
            return;
        };
        let there = self.is_rough() && self.scenario.is_told && is_there(self.seed);
        if !there || is_hostile(key) || !self.random.chance(OFTEN) {
            return;
        }
        let forger = AgentKey { agent: name(key), ..key.clone() };
        for _ in 0..self.random.between(1, 4) {
            let event = forged(&mut self.random);
            self.summary.faults.count(Fault::Forged);
            self.tell(|_| format!("{} forges {event:?}", forger.agent));
            let appended = self.broker.forge(entry.run, forger.clone(), event, self.now);
            self.appended(&appended);
        }
    }
}

/// What became of forgeries.
#[derive(Debug, Default)]
pub(crate) struct Forgeries {
    /// Who has a say in each generation of a task, by the record.
    says: BTreeMap<(RunId, TaskId, Generation), Say>,
    /// Where words stand that count.
    heard: BTreeSet<Seq>,
    /// Where outcomes stand that say what was forged, whoever wrote it.
    told: BTreeSet<Seq>,
    /// Tasks that somebody hostile had by right.
    had: BTreeSet<(RunId, TaskId)>,
}

impl Forgeries {
    /// Whether somebody hostile had the task by right, so that its course is what that one made of it.
    pub(crate) fn had(&self, run: RunId, task: &TaskId) -> bool {
        self.had.contains(&(run, task.clone()))
    }

    /// Whether somebody hostile had any task of the run by right.
    pub(crate) fn had_any(&self, run: RunId) -> bool {
        self.had.iter().any(|(of, _)| *of == run)
    }

    /// Takes in the next entry of the record, and says which rules it breaks.
    pub(crate) fn wrote(&mut self, entry: &Rc<Entry>) -> Vec<String> {
        match &entry.event {
            RecordEvent::Agent(key, event) => {
                self.said(entry, key, event);
                Vec::new()
            }
            RecordEvent::Decided(decided) => {
                let broken = decided.events.iter().filter_map(|event| self.breaks(entry, event)).collect();
                self.hear_in(entry);
                broken
            }
            RecordEvent::Offered(_) => {
                self.hear_in(entry);
                Vec::new()
            }
        }
    }

    /// Decisions tell who has what.
    fn hear_in(&mut self, entry: &Rc<Entry>) {
        let of_run = self.says.iter_mut().filter(|((run, ..), _)| *run == entry.run);
        of_run.for_each(|(_, say)| say.keep(&mut vec![Rc::clone(entry)]));
    }

    fn said(&mut self, entry: &Rc<Entry>, key: &AgentKey, event: &AgentEvent) {
        let AgentKey { task, generation, .. } = key;
        let say = self.says.entry((entry.run, task.clone(), *generation));
        let mut kept = vec![Rc::clone(entry)];
        say.or_insert_with(|| Say::of(key, *generation)).keep(&mut kept);
        if !kept.is_empty() {
            self.heard.insert(entry.seq);
            if is_hostile(key) {
                self.had.insert((entry.run, task.clone()));
            }
        }
        if let AgentEvent::Outcome(outcome) = event
            && matches!(&outcome.product, Some(Product::Result(result)) if result.conclusion == FORGED)
        {
            self.told.insert(entry.seq);
        }
    }

    /// Which rule a decision breaks.
    fn breaks(&self, entry: &Entry, event: &RunEvent) -> Option<String> {
        match event {
            RunEvent::TaskStarted(TaskStarted { task, agent, .. }) => {
                let is_hostile = agent.as_str().ends_with(&format!("{NUMBER:08x}"));
                (is_hostile && !self.had(entry.run, task))
                    .then(|| format!("at {}: nobody takes a task from whoever has it: {task}", entry.seq))
            }
            RunEvent::TaskCompleted(TaskCompleted { task, outcome, .. }) => {
                let is_forged = self.told.contains(outcome) && !self.had(entry.run, task);
                let counts = self.heard.contains(outcome);
                (is_forged || !counts).then(|| {
                    format!("at {}: nothing forged counts: {task} by {outcome}, {counts}", entry.seq)
                })
            }
            _ => None,
        }
    }
}
