//! What an orchestrator knows of one run, and one turn of it: the inputs that came, and the decision they lead to.

use std::collections::BTreeMap;
use std::rc::Rc;

use muster_orchestrator::decide::{
    Anybody, Decision, Situation, decide, in_work, next_deadline, next_review,
};
use muster_shared::flow::TaskOffered;
use muster_shared::ids::{AgentId, Queue, RunId, Seq};
use muster_shared::run::{ApplyError, Decided, Entry, Input, RecordEvent, RunState, apply, apply_late};
use muster_shared::time::Millis;
use uuid::Uuid;

/// Most inputs that are put off.
const MOST_DEFERRED: usize = 256;
/// When to look again at something overdue, in milliseconds.
const LOOK_AGAIN: u64 = 1_000;

/// The folded record of a run, and what was put off.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) run: Option<RunState>,
    pub(crate) deferred: Vec<Input>,
    read_to: Seq,
}

impl Book {
    pub(crate) fn read(entries: &[Rc<Entry>]) -> Result<Self, ApplyError> {
        let mut run = None;
        for entry in entries {
            apply(&mut run, entry)?;
        }
        let read_to = entries.last().map_or(Seq(0), |entry| entry.seq);
        Ok(Self { run, deferred: Vec::new(), read_to })
    }

    /// What a new owner decides upon.
    pub(crate) fn left_over(&self) -> Vec<Input> {
        let pending = self.run.iter().flat_map(|run| run.pending.keys());
        pending.map(|seq| Input::Agent { seq: *seq }).chain([Input::Capacity]).collect()
    }

    /// Folds what an agent wrote. Returns the input that it is, if a decision can follow from it.
    pub(crate) fn take_in(&mut self, entry: &Entry) -> Option<Input> {
        let RecordEvent::Agent(key, event) = &entry.event else { return None };
        let run = self.run.as_mut().filter(|_| entry.seq > self.read_to)?;
        apply_late(run, entry.seq, key, event);
        run.pending.contains_key(&entry.seq).then_some(Input::Agent { seq: entry.seq })
    }

    /// Folds a decision that was just written.
    pub(crate) fn wrote(
        &mut self,
        id: RunId,
        first: Seq,
        decided: Decided,
        offers: Vec<TaskOffered>,
    ) -> Result<(), ApplyError> {
        let at = decided.now;
        let events = std::iter::once(RecordEvent::Decided(decided))
            .chain(offers.into_iter().map(RecordEvent::Offered));
        for (seq, event) in (first.0..).zip(events) {
            apply(&mut self.run, &Entry { seq: Seq(seq), at, run: id, event })?;
        }
        Ok(())
    }
}

/// A command of a queue that waits for its answer.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) item: u64,
    pub(crate) delivered: u32,
}

/// What came in since the last turn.
#[derive(Debug)]
pub(crate) enum Mail {
    Signal(Rc<Entry>),
    Wake(Input),
    Order(Input, Ticket),
    Reload,
}

/// One turn while it goes on.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) signals: Vec<Rc<Entry>>,
    pub(crate) commands: Vec<Input>,
    pub(crate) tickets: Vec<Ticket>,
    pub(crate) wakes: Vec<Input>,
    pub(crate) agents: Vec<Input>,
    pub(crate) reload: bool,
    pub(crate) tries: u32,
}

impl Turn {
    pub(crate) fn sort(mail: Vec<Mail>) -> Self {
        let mut turn = Self::default();
        for mail in mail {
            match mail {
                Mail::Signal(entry) => turn.signals.push(entry),
                Mail::Order(input, ticket) => {
                    turn.commands.push(input);
                    turn.tickets.push(ticket);
                }
                Mail::Wake(input) if turn.wakes.contains(&input) => {}
                Mail::Wake(input) => turn.wakes.push(input),
                Mail::Reload => turn.reload = true,
            }
        }
        turn
    }

    pub(crate) fn begins_run(&self) -> bool {
        self.commands
            .iter()
            .any(|input| matches!(input, Input::Goal { .. } | Input::Fork { .. } | Input::Refuse { .. }))
    }

    pub(crate) fn inputs(&self) -> Vec<Input> {
        self.agents.iter().chain(&self.commands).chain(&self.wakes).cloned().collect()
    }
}

/// A decision with what it was made from.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) inputs: Vec<Input>,
    now: Millis,
    basis: Seq,
    pub(crate) after: Seq,
    capacity: BTreeMap<Queue, u32>,
    pub(crate) decision: Decision,
}

impl Draft {
    /// Decides, first to see what would be offered, then with what the queues have room for.
    pub(crate) fn make(
        id: RunId,
        run: Option<&RunState>,
        inputs: Vec<Input>,
        clock: Millis,
        slots: &BTreeMap<Queue, u32>,
        held_by_others: &BTreeMap<Queue, u32>,
    ) -> Result<Self, ApplyError> {
        let now = run.map_or(Millis(0), |run| run.decided_at).max(clock);
        let mut capacity: BTreeMap<Queue, u32> = slots.keys().map(|queue| (queue.clone(), 0)).collect();
        let mut decision = decide(
            run,
            &inputs,
            Situation { id, now, capacity: &capacity, specialists: &[], placing: &Anybody },
        )?;
        if !decision.wanted.is_empty() {
            let held = decision.after.as_ref().map(in_work).unwrap_or_default();
            for (queue, wanted) in &decision.wanted {
                let taken = [&held, held_by_others].into_iter().filter_map(|held| held.get(queue)).sum();
                let room = slots.get(queue).copied().unwrap_or(0).saturating_add(1).saturating_sub(taken);
                capacity.insert(queue.clone(), room.min(*wanted));
            }
            decision = decide(
                run,
                &inputs,
                Situation { id, now, capacity: &capacity, specialists: &[], placing: &Anybody },
            )?;
        }
        let (basis, after) = run.map_or((Seq(0), Seq(0)), |run| (run.folded, run.decided));
        Ok(Self { inputs, now, basis, after, capacity, decision })
    }

    /// Whether nothing is lost when this is decided again with what comes next.
    pub(crate) fn can_wait(&self) -> bool {
        let names_agents = self.inputs.iter().any(|input| matches!(input, Input::Agent { .. }));
        self.decision.is_empty() && !names_agents
            || self.decision.deferrable && self.inputs.len() <= MOST_DEFERRED
    }

    /// When the run should be looked at again if nothing comes.
    pub(crate) fn wake(&self) -> Option<Millis> {
        let run = self.decision.after.as_ref().filter(|run| !run.status.is_ended())?;
        let at = next_deadline(run).into_iter().chain(next_review(run)).min()?;
        Some(if at <= self.now { Millis(self.now.0 + LOOK_AGAIN) } else { at })
    }

    /// What is written.
    pub(crate) fn entry(&self, batch: Uuid, by: AgentId) -> (Decided, Vec<TaskOffered>) {
        let decided = Decided {
            batch,
            by,
            inputs: self.inputs.clone(),
            now: self.now,
            basis: self.basis,
            capacity: self.capacity.clone(),
            offers: 0,
            continues: false,
            specialists: Vec::new(),
            placements: self.decision.placements.clone(),
            events: self.decision.events.clone(),
            offer: None,
        };
        decided.with_offers(self.decision.offers.clone())
    }
}
