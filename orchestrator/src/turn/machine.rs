//! One turn of a run: take in what came, decide, write, carry out. Pure: whoever takes the turn is told what is needed next
//! and gives the result. What it is given fits what it asked for by its type.

use std::borrow::Borrow;
use std::collections::{BTreeSet, VecDeque};

use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId};
use muster_shared::run::{ApplyError, Entry, FIRST_EVENT_VERSION, Input, RunState};
use muster_shared::time::Millis;
use uuid::Uuid;

use super::inbox::Inbox;
use super::losses::{self, LastChance};
use super::outcome::{Alarm, Failure, OrderReply, TurnEnd, TurnError, TurnOutcome};
use super::pace::Took;
use super::prepared::{NoteOfWrite, Prepared, Writing, Written};
use super::run_log::RunLog;
use super::silence::{self, Overdue};
use crate::decide::{Effect, hand_on_again, say_again};
use crate::drive::{Capacity, Roomed};

/// How often a decision is made anew because somebody else wrote first.
const MOST_ATTEMPTS: u32 = 5;

/// How a decision is made with what the queues have room for: [`decide_with_room`](crate::decide_with_room), but for tests
/// that leave a rule out.
pub type DecideWithRoom =
    fn(&Capacity, RunId, Option<Box<RunState>>, &[Input], Millis) -> Result<Roomed, ApplyError>;

/// What a step takes into account besides the turn.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The broker's time.
    pub now: Millis,
    /// Who is there, and what the queues have room for.
    pub fleet: &'a Capacity,
    /// Whether the lease holds under which the turn was begun.
    pub holds_lease: bool,
    /// The name of the batch, should this step come to write one. No two are alike.
    pub batch: Uuid,
    /// How decisions are made.
    pub decide: DecideWithRoom,
}

/// What holds for all turns of an orchestrator.
#[derive(Debug, Clone)]
pub struct TurnRules {
    /// Who writes.
    pub by: AgentId,
    /// Most inputs that are put off.
    pub max_deferred: usize,
    /// After so many entries the state of a run is kept aside; 0 for never.
    pub snapshot_every: u32,
}

/// What a turn needs next.
#[derive(Debug)]
pub enum Next<E> {
    /// The record of the run.
    Read(ReadRecord<E>),
    /// Whether the run is ours.
    Claim(ClaimRun<E>),
    /// Which agents are on the bus.
    FindAgents(FindAgents<E>),
    /// How far a task came.
    LastStep(ReadLastStep<E>),
    /// When anybody wrote last about a task.
    LastWord(ReadLastWord<E>),
    /// That other runs hear that they can go on.
    Tell(TellOthers<E>),
    /// That a decision is written, if nobody else has written.
    Append(Box<AppendDecision<E>>),
    /// That something is done.
    Perform(PerformEffects<E>),
    /// Nothing: the turn is over.
    Done(Box<TurnEnd>),
}

/// A turn, between two things that it asks for.
#[derive(Debug)]
pub struct Turn<E> {
    id: RunId,
    rules: TurnRules,
    log: RunLog,
    signals: Vec<E>,
    commands: Vec<Input>,
    wakes: Vec<Input>,
    /// What agents wrote and no decision has named.
    agents: Vec<Input>,
    /// Whether the record was read in this turn, so that nothing is known of what came before.
    fresh: bool,
    news: bool,
    attempts: u32,
}

impl<E: Borrow<Entry>> Turn<E> {
    /// Begins a turn with what is known of the run and what came in.
    pub fn begin<R>(
        id: RunId,
        rules: TurnRules,
        log: Option<RunLog>,
        inbox: Inbox<E, R>,
        view: &View<'_>,
    ) -> Next<E> {
        let Inbox { signals, commands, waiting: _, wakes, reload, news } = inbox;
        let log = log.filter(|_| !reload);
        let (fresh, agents, attempts) = (log.is_none(), Vec::new(), 0);
        let known = log.is_some();
        let log = log.unwrap_or_default();
        let turn = Box::new(Self { id, rules, log, signals, commands, wakes, agents, fresh, news, attempts });
        if !view.holds_lease {
            return turn.failed(TurnError::NoLease);
        }
        if known {
            return turn.take_in(view);
        }
        // The fence tells if the run is there already.
        match turn.commands.iter().find_map(version_to_begin) {
            Some(version) => Next::Claim(ClaimRun { turn, version, author: None, then: AfterClaim::TakeIn }),
            None => Next::Read(ReadRecord { turn, then: AfterRead::TakeIn }),
        }
    }

    /// The run is ours if its newest author does not have it.
    fn claim(self: Box<Self>, then: AfterClaim, view: &View<'_>) -> Next<E> {
        let Some(run) = &self.log.run else { return then.go_on(self, view) };
        let author = self.log.author.clone().map(|author| (author, run.decided));
        let version = run.event_version;
        Next::Claim(ClaimRun { turn: self, version, author, then })
    }

    fn take_in(mut self: Box<Self>, view: &View<'_>) -> Next<E> {
        self.agents = if self.fresh { self.log.left_over() } else { std::mem::take(&mut self.log.deferred) };
        for entry in std::mem::take(&mut self.signals) {
            self.agents.extend(self.log.take_in(entry.borrow()));
        }
        let Some(run) = self.open_run().filter(|_| self.fresh) else { return self.count_losses(view) };
        let missing = losses::unknown_holders(view.fleet, run);
        if missing.is_empty() {
            return self.count_losses(view);
        }
        Next::FindAgents(FindAgents { turn: self, missing })
    }

    fn count_losses(mut self: Box<Self>, view: &View<'_>) -> Next<E> {
        let chances = match self.log.run.as_deref().filter(|run| !run.status.is_ended()) {
            Some(run) => losses::last_steps_to_look_up(run, &mut self.wakes),
            None => Vec::new(),
        };
        self.look_up_steps(chances.into(), view)
    }

    fn look_up_steps(self: Box<Self>, mut rest: VecDeque<LastChance>, view: &View<'_>) -> Next<E> {
        match rest.pop_front() {
            Some(chance) => Next::LastStep(ReadLastStep { turn: self, chance, rest }),
            None => self.look_for_silence(view),
        }
    }

    fn look_for_silence(self: Box<Self>, view: &View<'_>) -> Next<E> {
        let run = self.log.run();
        let overdue = run.map(|run| silence::overdue(view.fleet, run, &self.log.heard, view.now));
        self.look_up_words(overdue.unwrap_or_default().into(), view)
    }

    fn look_up_words(mut self: Box<Self>, mut rest: VecDeque<Overdue>, view: &View<'_>) -> Next<E> {
        if let Some(overdue) = rest.pop_front() {
            return Next::LastWord(ReadLastWord { turn: self, overdue, rest });
        }
        if let Some(run) = &self.log.run {
            silence::forget_the_ended(run, &mut self.log.heard);
        }
        let lost = self.wakes.iter().any(|wake| matches!(wake, Input::AgentLost { .. }));
        let again = match self.open_run() {
            Some(run) if self.fresh => say_again(run),
            Some(run) if lost => hand_on_again(run),
            Some(_) | None => Vec::new(),
        };
        self.perform(again.into(), AfterEffects::Decide, view)
    }

    fn decide(mut self: Box<Self>, view: &View<'_>) -> Next<E> {
        if self.attempts >= MOST_ATTEMPTS {
            return self.failed(TurnError::Contended);
        }
        self.attempts += 1;
        // Should this be decided again, what agents wrote is in the record.
        let mut inputs = std::mem::take(&mut self.agents);
        inputs.extend(self.commands.iter().chain(&self.wakes).cloned());
        let mut prepared = match Prepared::make(view, self.id, self.log.run.take(), inputs) {
            Ok(prepared) => prepared,
            Err(error) => return self.failed(error.into()),
        };
        let woken = std::mem::take(&mut prepared.woken);
        let look = view.fleet.may_look_again();
        if woken.is_empty() && look.is_empty() {
            return self.put_off_or_write(prepared, view);
        }
        Next::Tell(TellOthers { turn: self, prepared: Box::new(prepared), woken, look })
    }

    fn put_off_or_write(mut self: Box<Self>, prepared: Prepared, view: &View<'_>) -> Next<E> {
        let rest = Rest { wake: prepared.wake(view.fleet, &self.log.heard), more: prepared.decision.more };
        if prepared.can_wait(self.rules.max_deferred) {
            (self.log.run, self.log.deferred) = prepared.put_off();
            return self.done(rest, false);
        }
        if !view.holds_lease {
            return self.failed(TurnError::NoLease);
        }
        let Writing { written, effects, state } =
            prepared.write(view.fleet, self.rules.by.clone(), view.batch);
        Next::Append(Box::new(AppendDecision { turn: self, written, effects, state, rest }))
    }

    fn perform(
        self: Box<Self>,
        mut effects: VecDeque<Effect>,
        then: AfterEffects,
        view: &View<'_>,
    ) -> Next<E> {
        if !effects.is_empty() && !view.holds_lease {
            tracing::warn!(run = %self.id, "the lease was lost; effects are left to whoever takes the run over");
            effects.clear();
        }
        match effects.pop_front() {
            Some(effect) => Next::Perform(PerformEffects { turn: self, effect, rest: effects, then }),
            None => match then {
                AfterEffects::Decide => self.decide(view),
                AfterEffects::End(rest) => self.done(rest, true),
            },
        }
    }

    fn done(mut self: Box<Self>, Rest { wake, more }: Rest, wrote: bool) -> Next<E> {
        let keeps_snapshot = wrote && self.log.snapshot_is_due(self.rules.snapshot_every);
        let over = self.log.run.as_ref().is_none_or(|run| run.status.is_ended());
        let outcome = if over { TurnOutcome::Ended } else { TurnOutcome::GoOn { wake, more } };
        let answer = if self.log.run.is_none() { OrderReply::NoSuchRun } else { OrderReply::Recorded };
        let took = Took { news: self.news, wrote };
        Next::Done(Box::new(TurnEnd { log: Some(self.log), outcome, answer, took, keeps_snapshot }))
    }
}

impl<E> Turn<E> {
    /// The run, unless it has ended.
    fn open_run(&self) -> Option<&RunState> {
        self.log.run().filter(|run| !run.status.is_ended())
    }

    fn failed(&self, error: TurnError) -> Next<E> {
        Next::Done(Box::new(error.end(self.news)))
    }
}

/// How a run waits after a turn.
#[derive(Debug, Clone, Copy)]
struct Rest {
    wake: Option<Alarm>,
    more: bool,
}

/// What the record is read for.
#[derive(Debug)]
enum AfterRead {
    /// Nothing was known of the run.
    TakeIn,
    /// Somebody else wrote first.
    DecideAgain,
    /// Nobody knows whether our write landed.
    LookBack { batch: Uuid, effects: Vec<Effect>, rest: Rest },
}

/// The record of the run is needed, from its newest snapshot on if there is one.
#[derive(Debug)]
pub struct ReadRecord<E> {
    turn: Box<Turn<E>>,
    then: AfterRead,
}

impl<E: Borrow<Entry>> ReadRecord<E> {
    /// Goes on with the folded record.
    pub fn read(self, log: Result<RunLog, Failure>, view: &View<'_>) -> Next<E> {
        let Self { mut turn, then } = self;
        turn.log = match log {
            Ok(log) => log,
            Err(failure) => return turn.failed(failure.into()),
        };
        match then {
            AfterRead::TakeIn => turn.claim(AfterClaim::TakeIn, view),
            AfterRead::DecideAgain => turn.claim(AfterClaim::DecideAgain, view),
            AfterRead::LookBack { batch, effects, rest } => {
                let last = turn.log.run.as_ref().and_then(|run| run.batch);
                if last.is_none_or(|(last, _)| last != batch) {
                    return turn.claim(AfterClaim::DecideAgain, view);
                }
                turn.log.deferred = turn.log.left_over();
                turn.perform(effects.into(), AfterEffects::End(rest), view)
            }
        }
    }
}

/// What follows once the run is ours.
#[derive(Debug, Clone, Copy)]
enum AfterClaim {
    TakeIn,
    DecideAgain,
}

impl AfterClaim {
    fn go_on<E: Borrow<Entry>>(self, mut turn: Box<Turn<E>>, view: &View<'_>) -> Next<E> {
        match self {
            Self::TakeIn => turn.take_in(view),
            Self::DecideAgain => {
                turn.agents = turn.log.left_over();
                turn.decide(view)
            }
        }
    }
}

/// Whether the run is ours: nobody else's newest decision stands under a lease that holds. From then on, and before
/// anything is written, the lease of this process names the run.
#[derive(Debug)]
pub struct ClaimRun<E> {
    turn: Box<Turn<E>>,
    /// The version of the run's events.
    pub version: u32,
    /// Who made the newest decision, and where it stands; nothing for a run that is about to be begun.
    pub author: Option<(AgentId, Seq)>,
    then: AfterClaim,
}

impl<E: Borrow<Entry>> ClaimRun<E> {
    /// The run is ours.
    pub fn is_ours(self, view: &View<'_>) -> Next<E> {
        self.then.go_on(self.turn, view)
    }

    /// The run is left to its author.
    #[must_use]
    pub fn is_left_to(self, author: AgentId) -> Next<E> {
        self.turn.failed(TurnError::Elsewhere(author))
    }
}

/// Agents that have tasks of the run and that the fleet does not know: which of them are on the bus all the same?
#[derive(Debug)]
pub struct FindAgents<E> {
    turn: Box<Turn<E>>,
    missing: BTreeSet<AgentId>,
}

impl<E: Borrow<Entry>> FindAgents<E> {
    /// Goes on with the agents that are there.
    pub fn found(self, there: Result<Vec<AgentId>, Failure>, view: &View<'_>) -> Next<E> {
        let Self { mut turn, mut missing } = self;
        match there {
            Ok(there) => missing.retain(|agent| !there.contains(agent)),
            Err(failure) => return turn.failed(failure.into()),
        }
        turn.wakes.extend(missing.into_iter().map(losses::was_gone));
        turn.count_losses(view)
    }
}

/// The last step in the record of a task that one more death ends.
#[derive(Debug)]
pub struct ReadLastStep<E> {
    turn: Box<Turn<E>>,
    chance: LastChance,
    rest: VecDeque<LastChance>,
}

impl<E: Borrow<Entry>> ReadLastStep<E> {
    /// The task.
    #[must_use]
    pub const fn task(&self) -> (&TaskId, Generation) {
        (&self.chance.task, self.chance.generation)
    }

    /// Goes on with what was written about that generation of the task.
    pub fn read<W: Borrow<Entry>>(self, written: Result<Vec<W>, Failure>, view: &View<'_>) -> Next<E> {
        let Self { mut turn, chance, rest } = self;
        match written {
            Ok(entries) => {
                let step = losses::last_step(entries.iter().map(Borrow::borrow));
                losses::note_last_step(&mut turn.wakes, chance, step);
            }
            Err(failure) => return turn.failed(failure.into()),
        }
        turn.look_up_steps(rest, view)
    }
}

/// When anybody wrote last about a task whose agent may have fallen silent.
#[derive(Debug)]
pub struct ReadLastWord<E> {
    turn: Box<Turn<E>>,
    overdue: Overdue,
    rest: VecDeque<Overdue>,
}

impl<E: Borrow<Entry>> ReadLastWord<E> {
    /// The task.
    #[must_use]
    pub const fn task(&self) -> (&TaskId, Generation) {
        (&self.overdue.task, self.overdue.generation)
    }

    /// Goes on with when that was; nothing if nobody ever did.
    pub fn read(self, last: Result<Option<Millis>, Failure>, view: &View<'_>) -> Next<E> {
        let Self { mut turn, overdue, rest } = self;
        match last {
            Ok(last) => {
                let silent = silence::judge(overdue, last, &mut turn.log.heard, view.now);
                turn.wakes.extend(silent);
            }
            Err(failure) => return turn.failed(failure.into()),
        }
        turn.look_up_words(rest, view)
    }
}

/// Other runs can go on.
#[derive(Debug)]
pub struct TellOthers<E> {
    turn: Box<Turn<E>>,
    prepared: Box<Prepared>,
    /// Those whose turn it is to offer something.
    pub woken: Vec<RunId>,
    /// Those for which there may be another agent now.
    pub look: BTreeSet<RunId>,
}

impl<E: Borrow<Entry>> TellOthers<E> {
    /// Goes on; whoever was told goes its own way.
    pub fn told(self, view: &View<'_>) -> Next<E> {
        self.turn.put_off_or_write(*self.prepared, view)
    }
}

/// A decision is to be written, if nobody else has written.
#[derive(Debug)]
pub struct AppendDecision<E> {
    turn: Box<Turn<E>>,
    /// What is written.
    pub written: Written,
    effects: Vec<Effect>,
    /// The run as it stands once that is in the record.
    state: Option<Box<RunState>>,
    rest: Rest,
}

/// A write whose end is not known yet.
#[derive(Debug)]
pub struct WriteInHand<E> {
    turn: Box<Turn<E>>,
    of: NoteOfWrite,
    effects: Vec<Effect>,
    state: Option<Box<RunState>>,
    rest: Rest,
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appending {
    /// It stands in the record from this position on.
    Appended(Seq),
    /// Somebody else wrote first.
    Conflict,
    /// Nobody knows whether it landed.
    Ambiguous,
    /// It was not written.
    Failed(Failure),
}

impl<E: Borrow<Entry>> AppendDecision<E> {
    /// What is written, to be given away, and what waits for the end of that.
    pub fn hand_over(self) -> (Written, WriteInHand<E>) {
        let Self { turn, written, effects, state, rest } = self;
        let of = NoteOfWrite::of(&written);
        (written, WriteInHand { turn, of, effects, state, rest })
    }

    /// Goes on with what became of the write.
    pub fn went(self, appending: Appending, view: &View<'_>) -> Next<E> {
        self.hand_over().1.went(appending, view)
    }
}

impl<E: Borrow<Entry>> WriteInHand<E> {
    /// Goes on with what became of the write.
    pub fn went(self, appending: Appending, view: &View<'_>) -> Next<E> {
        let Self { mut turn, of, effects, state, rest } = self;
        match appending {
            Appending::Appended(first) => {
                let by = turn.rules.by.clone();
                turn.log.wrote(first, of, by, state);
                turn.perform(effects.into(), AfterEffects::End(rest), view)
            }
            Appending::Conflict => Next::Read(ReadRecord { turn, then: AfterRead::DecideAgain }),
            Appending::Ambiguous => {
                let then = AfterRead::LookBack { batch: of.decided.batch, effects, rest };
                Next::Read(ReadRecord { turn, then })
            }
            Appending::Failed(failure) => turn.failed(failure.into()),
        }
    }
}

/// What follows once everything is done.
#[derive(Debug, Clone, Copy)]
enum AfterEffects {
    Decide,
    End(Rest),
}

/// Something is to be done. It is a hint to others that the record backs: should it fail, nothing is lost.
#[derive(Debug)]
pub struct PerformEffects<E> {
    turn: Box<Turn<E>>,
    /// What.
    pub effect: Effect,
    rest: VecDeque<Effect>,
    then: AfterEffects,
}

impl<E: Borrow<Entry>> PerformEffects<E> {
    /// The run that it is about, with all that is decided.
    #[must_use]
    pub fn run(&self) -> Option<&RunState> {
        self.turn.log.run()
    }

    /// Goes on, whatever came of it.
    pub fn performed(self, view: &View<'_>) -> Next<E> {
        self.turn.perform(self.rest, self.then, view)
    }
}

/// The version of the events of the run that an input begins.
const fn version_to_begin(input: &Input) -> Option<u32> {
    match input {
        Input::Goal { event_version, .. } | Input::Fork { event_version, .. } => Some(*event_version),
        Input::Refuse { .. } => Some(FIRST_EVENT_VERSION),
        Input::Agent { .. }
        | Input::Unreadable { .. }
        | Input::Capacity
        | Input::Timer
        | Input::AgentLost { .. }
        | Input::Silent { .. }
        | Input::ChildEnded { .. }
        | Input::ContractBroken { .. }
        | Input::Bids { .. }
        | Input::Request(_) => None,
    }
}
