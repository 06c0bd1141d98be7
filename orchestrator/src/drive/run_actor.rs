//! The actor of one run. It carries out what the run's [`Driver`] says; all work happens in turns.

use std::sync::Arc;
use std::time::Duration;

use actix::fut::WrapFuture;
use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle};
use muster_shared::ids::RunId;
use muster_shared::run::Entry;
use tokio::sync::oneshot;
use tokio::task::JoinError;
use tracing::Instrument;

use super::context::{ASIDE, OrchestratorContext};
use super::owners;
use super::turn::{Inbox, OrderReply, turn, wake_others};
use crate::turn::{self, Alarm, DriverRules, RunLog, TurnEnd, TurnOutcome};

/// Consecutive decisions of a run without new input and without effect after which it is suspended for
/// [`IDLE_DECISION_DELAY`], so that a fault of one run does not block the others. Its inputs and deadlines are still
/// processed. No correct run reaches this number.
const MAX_IDLE_DECISIONS: u32 = 100;

/// First suspension of such a run. Each further one is twice as long, up to 64 times, which bounds the processor time
/// of a fault.
const IDLE_DECISION_DELAY: Duration = Duration::from_secs(1);

/// Messages that wait in the mailbox; senders wait above it.
const MAILBOX: usize = 256;

/// What an actor is told.
pub(crate) type RunMessage = turn::RunMessage<Box<Entry>, oneshot::Sender<OrderReply>>;

type Driver = turn::Driver<Box<Entry>, oneshot::Sender<OrderReply>>;
type Action = turn::Action<Box<Entry>, oneshot::Sender<OrderReply>>;

impl<E, R> actix::Message for turn::RunMessage<E, R> {
    type Result = ();
}

/// The run is not ours any more: go.
#[derive(Debug)]
pub(crate) struct Dismiss;

impl actix::Message for Dismiss {
    type Result = ();
}

/// The actor of one run.
pub(crate) struct RunActor {
    context: Arc<OrchestratorContext>,
    id: RunId,
    driver: Driver,
    alarm: Option<SpawnHandle>,
    /// While it waits after a failure: what ends that.
    wait: Option<SpawnHandle>,
    /// While it is set aside: what ends that.
    aside: Option<SpawnHandle>,
}

impl RunActor {
    pub(crate) fn new(context: Arc<OrchestratorContext>, id: RunId) -> Self {
        let driver = Driver::new(DriverRules {
            max_turns_in_vain: MAX_IDLE_DECISIONS,
            pause_in_vain: IDLE_DECISION_DELAY,
        });
        Self { context, id, driver, alarm: None, wait: None, aside: None }
    }

    fn act(&mut self, actions: Vec<Action>, ctx: &mut Context<Self>) {
        for action in actions {
            match action {
                Action::Begin { log, inbox } => self.begin(log.map(|log| *log), inbox, ctx),
                Action::SetAlarm(alarm) => self.set_alarm(alarm, ctx),
                Action::Wait(time) => self.wait(time, ctx),
                Action::StepAside(pause) => self.step_aside(pause, ctx),
                Action::EndPause => self.end_pause(ctx),
                Action::LeaveAlone(reason) => self.leave_alone(reason),
                Action::Stop => ctx.stop(),
            }
        }
    }

    fn begin(&mut self, log: Option<RunLog>, inbox: Inbox, ctx: &mut Context<Self>) {
        for awaited in [self.alarm.take(), self.wait.take()].into_iter().flatten() {
            ctx.cancel_future(awaited);
        }
        let place = tracing::trace_span!(target: "muster_log", "turn", run = %self.id);
        let turn = turn(Arc::clone(&self.context), self.id, log, inbox).instrument(place);
        let work = self.context.in_hand.spawn(turn);
        ctx.spawn(work.into_actor(self).map(|end, actor, ctx| actor.ended(end, ctx)));
    }

    fn ended(&mut self, end: Result<TurnEnd, JoinError>, ctx: &mut Context<Self>) {
        let actions = match end {
            Ok(end) => {
                if matches!(end.outcome, TurnOutcome::Ended | TurnOutcome::Elsewhere) {
                    self.context.is_in_hand(self.id);
                }
                self.driver.ended(end)
            }
            Err(fault) => {
                let actions = self.driver.broke_off();
                tracing::error!(run = %self.id, %fault, times = self.driver.faults(), "a turn of the run broke off");
                actions
            }
        };
        self.act(actions, ctx);
    }

    /// The run decides over and over for nothing. It waits for no place for a while; whatever comes in is looked at.
    fn step_aside(&mut self, pause: Duration, ctx: &mut Context<Self>) {
        let turns = MAX_IDLE_DECISIONS;
        tracing::error!(
            run = %self.id, turns, ?pause,
            "the run decided so often in a row though nothing new came, and nothing came of it: it is set aside for a \
             while. This is a fault of Muster; what comes in and its deadlines are still looked at"
        );
        let reason = format!("it decided {turns} times in a row and nothing came of it");
        self.context.slow_down(self.id, reason, pause);
        wake_others(&self.context, &self.context.capacity.step_back(self.id));
        let end = |actor: &mut Self, ctx: &mut Context<Self>| {
            let actions = actor.driver.pause_is_over();
            actor.act(actions, ctx);
        };
        self.aside = Some(ctx.run_later(pause, end));
    }

    fn end_pause(&mut self, ctx: &mut Context<Self>) {
        if let Some(aside) = self.aside.take() {
            ctx.cancel_future(aside);
            self.context.speed_up(self.id);
        }
    }

    /// Leaves the run to others for a while. When that is over and nobody has it, it is tried here again: its lease may
    /// be gone, so that nobody else would.
    fn leave_alone(&self, reason: String) {
        tracing::error!(run = %self.id, reason, "the run cannot be handled here and is left alone for a while");
        self.context.set_aside(self.id, reason);
        let (context, run) = (Arc::clone(&self.context), self.id);
        tokio::spawn(async move {
            let over = context.closed.run_until_cancelled(tokio::time::sleep(ASIDE)).await;
            if over.is_some() {
                owners::due(&context, run).await;
            }
        });
    }

    fn wait(&mut self, time: Duration, ctx: &mut Context<Self>) {
        let end = |actor: &mut Self, ctx: &mut Context<Self>| {
            actor.wait = None;
            let actions = actor.driver.waited();
            actor.act(actions, ctx);
        };
        self.wait = Some(ctx.run_later(time, end));
    }

    fn set_alarm(&mut self, alarm: Alarm, ctx: &mut Context<Self>) {
        let ring = move |actor: &mut Self, ctx: &mut Context<Self>| {
            actor.alarm = None;
            let actions = actor.driver.rang(alarm);
            actor.act(actions, ctx);
        };
        self.alarm = Some(ctx.run_later(alarm.at().since(self.context.now()), ring));
    }
}

impl Actor for RunActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
    }

    fn stopped(&mut self, ctx: &mut Self::Context) {
        self.context.speed_up(self.id);
        if let Some(observer) = self.context.bus.observer() {
            observer.left(self.id);
        }
        // One that was dismissed is forgotten already, and another may have taken its place.
        if self.context.registry.close(self.id, &ctx.address()) {
            wake_others(&self.context, &self.context.capacity.forget(self.id));
        }
    }
}

impl Handler<RunMessage> for RunActor {
    type Result = ();

    fn handle(&mut self, messages: RunMessage, ctx: &mut Self::Context) {
        let actions = self.driver.receive(messages);
        self.act(actions, ctx);
    }
}

impl Handler<Dismiss> for RunActor {
    type Result = ();

    fn handle(&mut self, _: Dismiss, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
