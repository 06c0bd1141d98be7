//! The host actor: knows which slot does what.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler, Message, StreamHandler};
use muster_bus::{Announced, TakenTask};
use muster_shared::flow::{AgentState, TaskOffered};
use muster_shared::ids::{Generation, RunId, TaskId};
use muster_shared::wire::ControlMessage;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::context::AgentContext;
use super::guard::Reach;
use super::slot::{Assign, Slot};
use crate::react::close::CloseOutcome;
use crate::react::interrupt::Interrupt;
use crate::react::mailbox::Mailbox;

/// How many slots there are, and how many of them are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seats {
    pub(super) free: u32,
    pub(super) all: u32,
}

/// A task that a slot works on.
struct InHand {
    run: RunId,
    task: TaskId,
    generation: Generation,
    interrupt: watch::Sender<Option<Interrupt>>,
    mailbox: Mailbox,
    /// The same task, given out to this process once more.
    again: Option<TakenTask>,
    /// Whether nothing else is taken meanwhile.
    alone: bool,
}

impl InHand {
    fn is(&self, offer: &TaskOffered) -> bool {
        (self.run, &self.task, self.generation) == (offer.run, &offer.task, offer.generation)
    }
}

/// Knows which slot does what.
pub(super) struct Host {
    context: Arc<AgentContext>,
    slots: Vec<Addr<Slot>>,
    free: Vec<usize>,
    in_hand: BTreeMap<usize, InHand>,
    /// A task that is to be done alone, and waits for the others to end.
    to_be_alone: Option<TakenTask>,
    seats: watch::Sender<Seats>,
    announced: Option<Arc<Announced>>,
    stop: CancellationToken,
}

/// A task was taken from a queue.
pub(super) struct Arrived(pub(super) TakenTask);

impl Message for Arrived {
    type Result = ();
}

/// A slot is free again, and how its task ended.
pub(super) struct Freed(pub(super) usize, pub(super) CloseOutcome);

impl Message for Freed {
    type Result = ();
}

/// Give everything in hand to other agents at the end of the step in hand.
pub(super) struct LeaveAll;

impl Message for LeaveAll {
    type Result = ();
}

/// Give everything in hand to other agents at once.
pub(super) struct ReleaseAll;

impl Message for ReleaseAll {
    type Result = ();
}

/// Stop the actors.
pub(super) struct Quit;

impl Message for Quit {
    type Result = ();
}

impl Host {
    pub(super) fn new(
        context: Arc<AgentContext>,
        seats: watch::Sender<Seats>,
        announced: Arc<Announced>,
        stop: CancellationToken,
    ) -> Self {
        let (slots, free, in_hand) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (announced, to_be_alone) = (Some(announced), None);
        Self { context, slots, free, in_hand, to_be_alone, seats, announced, stop }
    }

    fn tell(&self) {
        let all = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let free = u32::try_from(self.free.len()).unwrap_or(u32::MAX);
        self.seats.send_replace(Seats { free: if self.takes_nothing() { 0 } else { free }, all });
        if let Some(announced) = &self.announced {
            announced.set_busy(all - free);
        }
    }

    /// Whether something is to be done alone, so that nothing else is taken.
    fn takes_nothing(&self) -> bool {
        self.to_be_alone.is_some() || self.in_hand.values().any(|held| held.alone)
    }

    /// Gives a task to a free slot.
    fn seat(&mut self, task: TakenTask) {
        if self.stop.is_cancelled() {
            hand_back(task);
            return;
        }
        let Some(number) = self.free.pop() else {
            // The other queue's task came first: somebody else takes this one.
            hand_back(task);
            return;
        };
        let (interrupt, watched) = watch::channel(None);
        let offer = &task.offer;
        let mailbox = Mailbox::with(&offer.heard);
        let slot = self.context.states().slot(number);
        let reach = Reach { interrupt: watched, mailbox: mailbox.clone(), slot };
        let (run, id, generation, alone) = (offer.run, offer.task.clone(), offer.generation, offer.alone);
        match self.slots[number].try_send(Assign { task, reach }) {
            Ok(()) => {
                let again = None;
                let held = InHand { run, task: id, generation, interrupt, mailbox, again, alone };
                self.in_hand.insert(number, held);
            }
            Err(error) => {
                let (actix::dev::SendError::Full(Assign { task, .. })
                | actix::dev::SendError::Closed(Assign { task, .. })) = error;
                tracing::error!(slot = number, "a free slot takes no task");
                self.free.push(number);
                hand_back(task);
            }
        }
    }

    /// Begins what is to be done alone, once it is. Stopping, nothing more is begun.
    fn begin_alone(&mut self) {
        if (self.in_hand.is_empty() || self.stop.is_cancelled())
            && let Some(task) = self.to_be_alone.take()
        {
            self.seat(task);
        }
    }

    fn interrupt(&self, why: &Interrupt, which: impl Fn(&InHand) -> bool) {
        for task in self.in_hand.values().filter(|task| which(task)) {
            task.interrupt.send_if_modified(|now| {
                let changes = now.as_ref().is_none_or(|before| before.gives_way_to(why));
                if changes {
                    *now = Some(why.clone());
                }
                changes
            });
        }
    }
}

impl Actor for Host {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        let count = usize::try_from(self.context.slots()).unwrap_or(1);
        let slot = |number| Slot::new(number, Arc::clone(&self.context), context.address()).start();
        self.slots = (0..count).map(slot).collect();
        self.free = (0..count).rev().collect();
        self.tell();
    }
}

impl Handler<Arrived> for Host {
    type Result = ();

    fn handle(&mut self, Arrived(task): Arrived, _: &mut Self::Context) {
        // A server that was killed forgets what it gave out a moment before, and a process that stood still is given
        // what it still has: two slots at one task would pay for it twice.
        if let Some(held) = self.in_hand.values_mut().find(|held| held.is(&task.offer)) {
            held.again = Some(task);
            return;
        }
        if self.takes_nothing() {
            hand_back(task);
        } else if task.offer.alone && !self.in_hand.is_empty() {
            self.to_be_alone = Some(task);
            self.begin_alone();
        } else {
            self.seat(task);
        }
        self.tell();
    }
}

fn hand_back(task: TakenTask) {
    tokio::spawn(async move {
        if let Err(error) = task.hand_back(Duration::ZERO).await {
            tracing::debug!(%error, "a task goes back when its time is up");
        }
    });
}

impl Handler<Freed> for Host {
    type Result = ();

    fn handle(&mut self, Freed(number, verdict): Freed, _: &mut Self::Context) {
        if let Some(held) = self.in_hand.remove(&number) {
            self.free.push(number);
            self.context.task_ended(held.run, &held.task);
            self.context.states().slot(number).is(AgentState::Idle);
            // Whatever else became of it was said for all times it was given out.
            if let (Some(task), CloseOutcome::Lost) = (held.again, verdict) {
                hand_back(task);
            }
        }
        self.begin_alone();
        self.tell();
    }
}

impl Handler<LeaveAll> for Host {
    type Result = ();

    fn handle(&mut self, LeaveAll: LeaveAll, _: &mut Self::Context) {
        if let Some(task) = self.to_be_alone.take() {
            hand_back(task);
        }
        self.interrupt(&Interrupt::Leave("the agent stops".to_owned()), |_| true);
        self.tell();
    }
}

impl Handler<ReleaseAll> for Host {
    type Result = ();

    fn handle(&mut self, ReleaseAll: ReleaseAll, _: &mut Self::Context) {
        self.interrupt(&Interrupt::Release("the agent stops".to_owned()), |_| true);
    }
}

impl Handler<Quit> for Host {
    type Result = ();

    fn handle(&mut self, Quit: Quit, context: &mut Self::Context) {
        self.announced = None;
        context.stop();
    }
}

impl StreamHandler<ControlMessage> for Host {
    fn handle(&mut self, message: ControlMessage, _: &mut Self::Context) {
        match message {
            ControlMessage::CancelRun { run, reason } => {
                self.interrupt(&Interrupt::Cancel(reason), |task| task.run == run);
            }
            ControlMessage::CancelTask { run, task, generation, reason } => {
                self.interrupt(&Interrupt::Cancel(reason), |held| {
                    (held.run, &held.task, held.generation) == (run, &task, generation)
                });
            }
            ControlMessage::ParkRun { run, reason } => {
                self.interrupt(&Interrupt::Park(reason), |task| task.run == run);
            }
            ControlMessage::ParkTask { run, task, generation, reason } => {
                self.interrupt(&Interrupt::Park(reason), |held| {
                    (held.run, &held.task, held.generation) == (run, &task, generation)
                });
            }
            ControlMessage::Inform { run, task, generation, information, progress } => {
                let told =
                    |held: &&InHand| (held.run, &held.task, held.generation) == (run, &task, generation);
                for held in self.in_hand.values().filter(told) {
                    held.mailbox.put(&information);
                    held.mailbox.show(progress.clone());
                }
            }
            ControlMessage::Shutdown => self.stop.cancel(),
            // Not for agents.
            ControlMessage::Owners(_) => {}
        }
    }

    /// Without control nothing could be interrupted any more: better to stop and be started anew.
    fn finished(&mut self, _: &mut Self::Context) {
        tracing::warn!("control has ended; the agent stops");
        self.stop.cancel();
    }
}
