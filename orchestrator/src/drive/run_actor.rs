//! The actor of one run. It keeps the run's inbox and starts one turn after the other; all work happens in turns.

use std::sync::Arc;
use std::time::Duration;

use actix::fut::WrapFuture;
use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle};
use muster_shared::ids::RunId;
use muster_shared::run::{Entry, Input};
use tokio::task::JoinError;

use super::context::{ASIDE, OrchestratorContext};
use super::owners;
use super::pace::Pace;
use super::run_log::RunLog;
use super::turn::{Alarm, Order, TurnEnd, TurnOutcome, turn, wake_others};

/// Messages that wait in the mailbox; senders wait above it.
const MAILBOX: usize = 256;

/// Messages that wait for the turn to end; above it they are dropped and the record is read again.
const INBOX: usize = 4096;

/// Faults in a row after which a run is left alone.
const MOST_FAULTS: u32 = 3;

/// Wait after the first failure; doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// Most doublings of the wait.
const MOST_DOUBLINGS: u32 = 5;

/// What an actor is told.
#[derive(Debug)]
pub(crate) enum RunMessage {
    /// An agent wrote to the run's record.
    Signal(Box<Entry>),
    /// Something that the run's record does not tell may have changed.
    Wake(Input),
    /// An agent came or got free that may do what the run waits for another with, or it is time to look whether one did.
    Look,
    /// An order from outside.
    Order(Order),
    /// Something may have been missed: read the record again.
    Reload,
    /// The run is not ours any more: go.
    Dismiss,
}

impl RunMessage {
    /// Whether it tells of more than that there may be room.
    pub(super) fn is_news(&self) -> bool {
        !matches!(self, Self::Wake(Input::Capacity))
    }
}

impl actix::Message for RunMessage {
    type Result = ();
}

/// The actor of one run.
pub(crate) struct RunActor {
    context: Arc<OrchestratorContext>,
    id: RunId,
    run_log: Option<RunLog>,
    inbox: Vec<RunMessage>,
    busy: bool,
    failures: u32,
    faults: u32,
    alarm: Option<SpawnHandle>,
    pace: Pace,
    /// While it is set aside: what ends that.
    aside: Option<SpawnHandle>,
}

impl RunActor {
    pub(crate) fn new(context: Arc<OrchestratorContext>, id: RunId) -> Self {
        Self {
            context,
            id,
            run_log: None,
            inbox: Vec::new(),
            busy: false,
            failures: 0,
            faults: 0,
            alarm: None,
            pace: Pace::default(),
            aside: None,
        }
    }

    fn begin(&mut self, ctx: &mut Context<Self>) {
        if self.busy || self.aside.is_some() && !self.inbox.iter().any(RunMessage::is_news) {
            return;
        }
        self.busy = true;
        self.end_pause(ctx);
        if let Some(alarm) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        let messages = std::mem::take(&mut self.inbox);
        let work = turn(Arc::clone(&self.context), self.id, self.run_log.take(), messages);
        let work = self.context.in_hand.spawn(work);
        ctx.spawn(work.into_actor(self).map(|end, actor, ctx| actor.ended(end, ctx)));
    }

    fn ended(&mut self, end: Result<TurnEnd, JoinError>, ctx: &mut Context<Self>) {
        self.busy = false;
        match end {
            Ok(TurnEnd { run_log, outcome, took }) => {
                self.run_log = run_log;
                self.faults = 0;
                if matches!(outcome, TurnOutcome::GoOn { .. }) {
                    let settings = &self.context.settings;
                    let (most, pause) = (settings.max_turns_in_vain, settings.pause_in_vain);
                    if let Some(pause) = self.pace.took(took, most, pause) {
                        self.step_aside(pause, ctx);
                    }
                }
                self.go_on(outcome, ctx);
            }
            Err(fault) => self.recover(&fault, ctx),
        }
    }

    fn go_on(&mut self, outcome: TurnOutcome, ctx: &mut Context<Self>) {
        match outcome {
            TurnOutcome::GoOn { wake, more } => {
                self.failures = 0;
                if more {
                    self.inbox.push(RunMessage::Wake(Input::Capacity));
                }
                if !self.inbox.is_empty() {
                    self.begin(ctx);
                }
                // Deadlines hold for who is set aside too.
                if let Some(alarm) = wake.filter(|_| !self.busy) {
                    self.set_alarm(alarm, ctx);
                }
            }
            TurnOutcome::Ended | TurnOutcome::Elsewhere => ctx.stop(),
            TurnOutcome::Retry => {
                self.failures = self.failures.saturating_add(1);
                self.begin_later(ctx);
            }
            TurnOutcome::GiveUp { reason } => {
                tracing::error!(run = %self.id, reason, "the run cannot be handled here and is left alone for a while");
                self.leave_alone(reason);
                ctx.stop();
            }
        }
    }

    /// The run decides over and over for nothing. It waits for no place for a while; whatever comes in is looked at.
    fn step_aside(&mut self, pause: Duration, ctx: &mut Context<Self>) {
        let turns = self.context.settings.max_turns_in_vain;
        tracing::error!(
            run = %self.id, turns, ?pause,
            "the run decided so often in a row though nothing new came, and nothing came of it: it is set aside for a \
             while. This is a fault of Muster; what comes in and its deadlines are still looked at"
        );
        let reason = format!("it decided {turns} times in a row and nothing came of it");
        self.context.slow_down(self.id, reason, pause);
        wake_others(&self.context, self.context.capacity.step_back(self.id));
        let end = |actor: &mut Self, ctx: &mut Context<Self>| {
            actor.end_pause(ctx);
            actor.inbox.push(RunMessage::Wake(Input::Capacity));
            actor.begin(ctx);
        };
        self.aside = Some(ctx.run_later(pause, end));
    }

    fn end_pause(&mut self, ctx: &mut Context<Self>) {
        if let Some(aside) = self.aside.take() {
            ctx.cancel_future(aside);
            self.context.speed_up(self.id);
        }
    }

    /// A fault in a turn: what it knew is lost, the record is not.
    fn recover(&mut self, fault: &JoinError, ctx: &mut Context<Self>) {
        self.faults += 1;
        self.failures = self.faults;
        tracing::error!(run = %self.id, %fault, times = self.faults, "a turn of the run broke off");
        if self.faults >= MOST_FAULTS {
            self.leave_alone(format!("a turn of it broke off {MOST_FAULTS} times in a row"));
            return ctx.stop();
        }
        self.begin_later(ctx);
    }

    /// Leaves the run to others for a while. When that is over and nobody has it, it is tried here again: its lease may
    /// be gone, so that nobody else would.
    fn leave_alone(&self, reason: String) {
        self.context.set_aside(self.id, reason);
        let (context, run) = (Arc::clone(&self.context), self.id);
        tokio::spawn(async move {
            let over = context.closed.run_until_cancelled(tokio::time::sleep(ASIDE)).await;
            if over.is_some() {
                owners::due(&context, run).await;
            }
        });
    }

    fn begin_later(&self, ctx: &mut Context<Self>) {
        let doublings = self.failures.saturating_sub(1).min(MOST_DOUBLINGS);
        ctx.run_later(FIRST_WAIT * 2u32.pow(doublings), |actor, ctx| actor.begin(ctx));
    }

    fn set_alarm(&mut self, alarm: Alarm, ctx: &mut Context<Self>) {
        let (at, messages) = match alarm {
            Alarm::Due(at) => (at, RunMessage::Wake(Input::Timer)),
            Alarm::Room(at) => (at, RunMessage::Look),
        };
        let ring = move |actor: &mut Self, ctx: &mut Context<Self>| {
            actor.alarm = None;
            actor.inbox.push(messages);
            actor.begin(ctx);
        };
        self.alarm = Some(ctx.run_later(at.since(self.context.now()), ring));
    }
}

impl Actor for RunActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
    }

    fn stopped(&mut self, ctx: &mut Self::Context) {
        self.context.speed_up(self.id);
        // One that was dismissed is forgotten already, and another may have taken its place.
        if self.context.registry.close(self.id, &ctx.address()) {
            wake_others(&self.context, self.context.capacity.forget(self.id));
        }
    }
}

impl Handler<RunMessage> for RunActor {
    type Result = ();

    fn handle(&mut self, messages: RunMessage, ctx: &mut Self::Context) {
        if matches!(messages, RunMessage::Dismiss) {
            return ctx.stop();
        }
        // When the pause is over it is looked at in any case.
        if self.aside.is_some() && !messages.is_news() {
            return;
        }
        if self.inbox.len() >= INBOX {
            self.inbox.retain(|messages| matches!(messages, RunMessage::Order(_)));
            self.inbox.truncate(INBOX / 2);
            self.inbox.push(RunMessage::Reload);
        }
        self.inbox.push(messages);
        self.begin(ctx);
    }
}
