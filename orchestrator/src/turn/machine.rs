//! One turn of a run: take in what came, decide, write, carry out. Pure: whoever takes the turn is told what is needed next
//! and gives the result. What it is given fits what it asked for by its type.

mod asks;

use std::borrow::Borrow;
use std::collections::VecDeque;

use muster_shared::ids::{AgentId, RunId};
use muster_shared::run::{ApplyError, Covered, Entry, Input, RunState};
use muster_shared::time::Millis;
use uuid::Uuid;

use self::asks::{AfterClaim, AfterEffects, AfterRead, Rest};
pub use self::asks::{
    AppendDecision, Appending, ClaimRun, FindAgents, PerformEffects, ReadLastStep, ReadLastWord, ReadRecord,
    TellOthers, WriteInHand,
};
use super::inbox::Inbox;
use super::losses::{self, LastChance};
use super::outcome::{OrderReply, TurnEnd, TurnError, TurnOutcome};
use super::pace::Took;
use super::prepared::{Prepared, Writing};
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
    /// All that agents wrote, for the run's hash chain.
    covered: Vec<Covered>,
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
        let Inbox { signals, covered, commands, waiting: _, wakes, reload, news } = inbox;
        let log = log.filter(|_| !reload);
        let (fresh, agents, attempts) = (log.is_none(), Vec::new(), 0);
        let known = log.is_some();
        let log = log.unwrap_or_default();
        let turn = Box::new(Self {
            id,
            rules,
            log,
            signals,
            covered,
            commands,
            wakes,
            agents,
            fresh,
            news,
            attempts,
        });
        if !view.holds_lease {
            return turn.failed(TurnError::NoLease);
        }
        if known {
            return turn.take_in(view);
        }
        // The fence tells if the run is there already.
        let begins_run =
            |input: &Input| matches!(input, Input::Goal { .. } | Input::Fork { .. } | Input::Refuse { .. });
        if turn.commands.iter().any(begins_run) {
            Next::Claim(ClaimRun { turn, author: None, then: AfterClaim::TakeIn })
        } else {
            Next::Read(ReadRecord { turn, then: AfterRead::TakeIn })
        }
    }

    /// The run is ours if its newest author does not have it.
    fn claim(self: Box<Self>, then: AfterClaim, view: &View<'_>) -> Next<E> {
        let Some(run) = &self.log.run else { return then.go_on(self, view) };
        let author = self.log.author.clone().map(|author| (author, run.decided));
        Next::Claim(ClaimRun { turn: self, author, then })
    }

    fn take_in(mut self: Box<Self>, view: &View<'_>) -> Next<E> {
        self.agents = if self.fresh { self.log.left_over() } else { std::mem::take(&mut self.log.deferred) };
        self.log.note_covered(std::mem::take(&mut self.covered));
        for entry in std::mem::take(&mut self.signals) {
            self.agents.extend(self.log.take_in(entry.borrow()));
        }
        self.note_late_starts(view);
        let Some(run) = self.open_run() else { return self.count_losses(view) };
        let missing = losses::doubted(view.fleet, run, self.fresh, &self.agents);
        if missing.is_empty() {
            return self.count_losses(view);
        }
        Next::FindAgents(FindAgents { turn: self, missing })
    }

    /// Who was lost before it was heard what it had begun is lost with that as well.
    fn note_late_starts(&mut self, view: &View<'_>) {
        self.log.note_lost(&self.wakes);
        let Some(run) = self.log.run() else { return };
        let late = losses::begun_late(run, &self.agents, |agent| {
            self.log.was_lost(agent) && !view.fleet.knows(agent)
        });
        self.wakes.extend(late.into_iter().map(losses::was_gone));
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
            prepared.write(self.rules.by.clone(), view.batch, self.log.draft_link(self.id));
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
