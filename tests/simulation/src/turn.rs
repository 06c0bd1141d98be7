//! What an orchestrator knows of one run, and one turn of it: the inputs that came, and the decision they lead to.

use std::collections::BTreeMap;
use std::rc::Rc;

use muster_orchestrator::decide::{Decision, Place, Situation, Wanted, decide, next_deadline, next_review};
use muster_orchestrator::{Capacity, Holding, Roomed, decide_with_room};
use muster_shared::flow::{Placement, TaskOffered};
use muster_shared::ids::{AgentId, Queue, RunId, Seq};
use muster_shared::run::{ApplyError, Decided, Entry, Input, RecordEvent, RunState, apply, apply_late};
use muster_shared::time::Millis;
use uuid::Uuid;

use crate::Sabotage;

/// Most inputs that are put off.
const MOST_DEFERRED: usize = 256;
/// When to look again at something overdue, in milliseconds.
const LOOK_AGAIN: u64 = 1_000;

/// The folded record of a run, and what was put off.
#[derive(Debug, Default)]
pub(crate) struct RunLog {
    pub(crate) run: Option<RunState>,
    pub(crate) deferred: Vec<Input>,
    read_to: Seq,
}

impl RunLog {
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
        self.run.iter().flat_map(RunState::undecided).chain([Input::Capacity]).collect()
    }

    /// Folds what an agent wrote. Returns the input that it is, if a decision can follow from it.
    pub(crate) fn take_in(&mut self, entry: &Entry) -> Option<Input> {
        let RecordEvent::Agent(key, event) = &entry.event else { return None };
        let run = self.run.as_mut().filter(|_| entry.seq > self.read_to)?;
        apply_late(run, entry.seq, key, event);
        run.pending.get(&entry.seq).map(|(_, event)| Input::of_agent(entry.seq, event))
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
pub(crate) enum RunMessage {
    Signal(Rc<Entry>),
    Wake(Input),
    /// An agent came or got free that may do what the run waits for another with.
    Look,
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
    /// Whether anything came that was not there before: more than the word that there may be room.
    pub(crate) news: bool,
    pub(crate) tries: u32,
}

impl Turn {
    pub(crate) fn sort(messages: Vec<RunMessage>) -> Self {
        let news = messages.iter().any(|messages| !matches!(messages, RunMessage::Wake(Input::Capacity)));
        let mut turn = Self { news, ..Self::default() };
        for messages in messages {
            match messages {
                RunMessage::Signal(entry) => turn.signals.push(entry),
                RunMessage::Order(input, ticket) => {
                    turn.commands.push(input);
                    turn.tickets.push(ticket);
                }
                RunMessage::Wake(input) if turn.wakes.contains(&input) => {}
                RunMessage::Wake(input) => turn.wakes.push(input),
                RunMessage::Look if turn.wakes.contains(&Input::Capacity) => {}
                RunMessage::Look => turn.wakes.push(Input::Capacity),
                RunMessage::Reload => turn.reload = true,
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
    /// Decides with what the queues have room for. Returns the runs that can go on besides.
    pub(crate) fn make(
        fleet: &Capacity,
        id: RunId,
        run: Option<&RunState>,
        inputs: Vec<Input>,
        clock: Millis,
        sabotage: Option<Sabotage>,
    ) -> Result<(Self, Vec<RunId>), ApplyError> {
        let now = run.map_or(Millis(0), |run| run.decided_at).max(clock);
        let roomed = if sabotage == Some(Sabotage::LentHeldAgainst) {
            decide_as_strangers(fleet, id, run, &inputs, now)?
        } else {
            decide_with_room(fleet, id, run, &inputs, now)?
        };
        let Roomed { decision, capacity, specialists: _, woken } = roomed;
        let (basis, after) = run.map_or((Seq(0), Seq(0)), |run| (run.folded, run.decided));
        Ok((Self { inputs, now, basis, after, capacity, decision }, woken))
    }

    /// Whether nothing is lost when this is decided again with what comes next.
    pub(crate) fn can_wait(&self) -> bool {
        let names_agents =
            self.inputs.iter().any(|input| matches!(input, Input::Agent { .. } | Input::Unreadable { .. }));
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
            after: Some(self.after),
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

/// A decision as it was made when what was lent to a run counted as taken for the run itself too.
fn decide_as_strangers(
    fleet: &Capacity,
    id: RunId,
    run: Option<&RunState>,
    inputs: &[Input],
    now: Millis,
) -> Result<Roomed, ApplyError> {
    let held = |decision: &Decision| decision.after.as_ref().map(Holding::of).unwrap_or_default();
    let placing = AsStranger(fleet);
    let look = |capacity: &BTreeMap<Queue, u32>| {
        decide(run, inputs, Situation { id, now, capacity, specialists: &[], placing: &placing })
    };
    let mut capacity = fleet.none(run);
    let mut decision = look(&capacity)?;
    if !decision.wanted.is_empty() {
        capacity = fleet.lend(id, held(&decision), &decision.wanted);
        decision = look(&capacity)?;
    }
    let woken = fleet.settle(id, held(&decision), &decision.wanted);
    Ok(Roomed { decision, capacity, specialists: Vec::new(), woken })
}

/// Has the fleet take a run for a stranger, for whom nothing is kept.
#[derive(Debug)]
struct AsStranger<'a>(&'a Capacity);

impl Place for AsStranger<'_> {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        self.0.place(&Wanted { run: RunId::from_uuid(Uuid::nil()), ..wanted.clone() })
    }
}
