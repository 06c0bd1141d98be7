//! Auctions: a call for proposals to all agents of a role, and the bids that come in time. Live: a call that is lost gets no
//! bids, and the task is then given out as any other.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::flow::{Bid, CallForProposals};
use muster_shared::ids::Role;
use muster_shared::wire::{Body, Encoding};

use crate::backend::Message;
use crate::bus::{Core, now};
use crate::error::BusError;
use crate::seal::{About, open_inline};
use crate::subject::Subject;

/// Calls for proposals, and bids.
#[derive(Clone)]
pub struct Auctions {
    pub(crate) core: Arc<Core>,
}

impl Auctions {
    /// Asks for bids, and gives those that came within the window, `most` at most. Ends before the window does when as
    /// many have come as can be `expected` (0: nobody knows). A bid counts only from the process that it names.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn call(
        &self,
        call: &CallForProposals,
        most: usize,
        expected: usize,
    ) -> Result<Vec<Bid>, BusError> {
        let CallForProposals { run, task, role, .. } = call;
        let bids = self.core.backend.subscribe(&format!("bid.{role}.*.{run}.{task}")).await?;
        let asked = Subject::Call(role.clone(), *run, task.clone()).to_string();
        // Small and rare: programs that read JSON only must be able to bid too.
        let expires = Some(now().after(Duration::from_millis(call.window_ms)));
        let about = About { expires, ..About::task(*run, task) };
        let sealed = self.core.seal(asked, Body::Call(call.clone()), about, Encoding::Json).await?;
        self.core.backend.publish(sealed).await?;
        let limit = if expected == 0 { most } else { most.min(expected) };
        let mut bids = bids.filter_map(|message| async move { bid_in(&message) }).boxed();
        let mut came: Vec<Bid> = Vec::new();
        let collecting = async {
            while came.len() < limit {
                let Some(bid) = bids.next().await else { return };
                if (bid.run, &bid.task, bid.number) == (call.run, &call.task, call.number) {
                    came.push(bid);
                }
            }
        };
        // The window being over is how it usually ends.
        let _over = tokio::time::timeout(Duration::from_millis(call.window_ms), collecting).await;
        Ok(came)
    }

    /// Calls to a role, from now on. What cannot be read is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn listen(&self, role: &Role) -> Result<BoxStream<'static, CallForProposals>, BusError> {
        let messages = self.core.backend.subscribe(&format!("cfp.{role}.*.*")).await?;
        let call_in = |message: Message| async move {
            match open_inline(&message).map(|envelope| envelope.body) {
                Ok(Body::Call(call)) => Some(call),
                Ok(_) | Err(_) => None,
            }
        };
        Ok(messages.filter_map(call_in).boxed())
    }

    /// Bids for a task of this role.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn bid(&self, role: &Role, bid: &Bid) -> Result<(), BusError> {
        let subject = Subject::Bid(role.clone(), bid.agent.clone(), bid.run, bid.task.clone()).to_string();
        let about = About::task(bid.run, &bid.task);
        let sealed = self.core.seal(subject, Body::Bid(bid.clone()), about, Encoding::Json).await?;
        self.core.backend.publish(sealed).await
    }
}

/// A bid whose author is whoever its subject names: nobody bids for others.
fn bid_in(message: &Message) -> Option<Bid> {
    let Ok(Subject::Bid(_, agent, ..)) = Subject::parse(&message.subject) else { return None };
    match open_inline(message).map(|envelope| envelope.body) {
        Ok(Body::Bid(bid)) if bid.agent == agent => Some(bid.within_limits()),
        Ok(_) => {
            tracing::warn!(subject = %message.subject, "not a bid of the agent that the subject names");
            None
        }
        Err(reason) => {
            tracing::warn!(subject = %message.subject, reason, "a bid cannot be read");
            None
        }
    }
}
