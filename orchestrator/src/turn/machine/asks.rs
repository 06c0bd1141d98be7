//! What a turn asks for, and how it goes on with what it is given.

use std::borrow::Borrow;
use std::collections::{BTreeSet, VecDeque};

use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId};
use muster_shared::run::{Entry, Input, RunState};
use muster_shared::time::Millis;
use uuid::Uuid;

use super::super::losses::{self, LastChance};
use super::super::outcome::{Alarm, Failure, TurnError};
use super::super::prepared::{NoteOfWrite, Prepared, Written, WrittenAt};
use super::super::run_log::RunLog;
use super::super::silence::{self, Overdue};
use super::{Next, Turn, View};
use crate::decide::Effect;

/// How a run waits after a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    pub(super) wake: Option<Alarm>,
    pub(super) more: bool,
}

/// What the record is read for.
#[derive(Debug)]
pub(super) enum AfterRead {
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
    pub(super) turn: Box<Turn<E>>,
    pub(super) then: AfterRead,
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
pub(super) enum AfterClaim {
    TakeIn,
    DecideAgain,
}

impl AfterClaim {
    pub(super) fn go_on<E: Borrow<Entry>>(self, mut turn: Box<Turn<E>>, view: &View<'_>) -> Next<E> {
        match self {
            Self::TakeIn => turn.take_in(view),
            // A goal that was submitted again is read for the first time only here: its agents may have died unnoticed.
            Self::DecideAgain if turn.fresh => turn.take_in(view),
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
    pub(super) turn: Box<Turn<E>>,
    /// Who made the newest decision, and where it stands; nothing for a run that is about to be begun.
    pub author: Option<(AgentId, Seq)>,
    pub(super) then: AfterClaim,
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
    pub(super) turn: Box<Turn<E>>,
    pub(super) missing: BTreeSet<AgentId>,
}

impl<E: Borrow<Entry>> FindAgents<E> {
    /// Goes on with the agents that are there.
    pub fn found(self, there: Result<Vec<AgentId>, Failure>, view: &View<'_>) -> Next<E> {
        let Self { mut turn, mut missing } = self;
        match there {
            Ok(there) => missing.retain(|agent| !there.contains(agent)),
            Err(failure) => return turn.failed(failure.into()),
        }
        let is_told = |lost: &AgentId| {
            turn.wakes.iter().any(|wake| matches!(wake, Input::AgentLost { agent, .. } if agent == lost))
        };
        missing.retain(|agent| !is_told(agent));
        turn.wakes.extend(missing.into_iter().map(losses::was_gone));
        turn.count_losses(view)
    }
}

/// The last step in the record of a task that one more death ends.
#[derive(Debug)]
pub struct ReadLastStep<E> {
    pub(super) turn: Box<Turn<E>>,
    pub(super) chance: LastChance,
    pub(super) rest: VecDeque<LastChance>,
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
    pub(super) turn: Box<Turn<E>>,
    pub(super) overdue: Overdue,
    pub(super) rest: VecDeque<Overdue>,
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
    pub(super) turn: Box<Turn<E>>,
    pub(super) prepared: Box<Prepared>,
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
    pub(super) turn: Box<Turn<E>>,
    /// What is written.
    pub written: Written,
    pub(super) effects: Vec<Effect>,
    /// The run as it stands once that is in the record.
    pub(super) state: Option<Box<RunState>>,
    pub(super) rest: Rest,
}

/// A write whose end is not known yet.
#[derive(Debug)]
pub struct WriteInHand<E> {
    pub(super) turn: Box<Turn<E>>,
    pub(super) of: NoteOfWrite,
    pub(super) effects: Vec<Effect>,
    pub(super) state: Option<Box<RunState>>,
    pub(super) rest: Rest,
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appending {
    /// It stands in the record.
    Appended(WrittenAt),
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
            Appending::Appended(at) => {
                let by = turn.rules.by.clone();
                turn.log.wrote(at, of, by, state);
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
pub(super) enum AfterEffects {
    Decide,
    End(Rest),
}

/// Something is to be done. It is a hint to others that the record backs: should it fail, nothing is lost.
#[derive(Debug)]
pub struct PerformEffects<E> {
    pub(super) turn: Box<Turn<E>>,
    /// What.
    pub effect: Effect,
    pub(super) rest: VecDeque<Effect>,
    pub(super) then: AfterEffects,
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
