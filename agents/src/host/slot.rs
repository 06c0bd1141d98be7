//! The slot actor: one task at a time.

use std::sync::Arc;

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, WrapFuture};
use muster_bus::TakenTask;

use super::context::AgentContext;
use super::guard::{Reach, guard};
use super::lead::{Freed, Host};

/// Does one task at a time.
pub(super) struct Slot {
    number: usize,
    context: Arc<AgentContext>,
    host: Addr<Host>,
}

/// A task for this slot.
pub(super) struct Assign {
    pub(super) task: TakenTask,
    pub(super) reach: Reach,
}

impl Message for Assign {
    type Result = ();
}

impl Slot {
    pub(super) const fn new(number: usize, context: Arc<AgentContext>, host: Addr<Host>) -> Self {
        Self { number, context, host }
    }
}

impl Actor for Slot {
    type Context = Context<Self>;
}

impl Handler<Assign> for Slot {
    type Result = ();

    fn handle(&mut self, Assign { task, reach }: Assign, context: &mut Self::Context) {
        let work = guard(Arc::clone(&self.context), task, reach);
        let freed =
            work.into_actor(self).map(|verdict, slot, _| slot.host.do_send(Freed(slot.number, verdict)));
        context.spawn(freed);
    }
}
