//! Bidding for tasks: what an agent promises when it is asked, by what its tasks took so far.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use muster_shared::flow::{Bid, CallForProposals, Usage};
use muster_shared::sync::lock;
use muster_shared::time::millis;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::context::AgentContext;
use super::lead::Seats;

/// What a task is taken to last before any has ended, in milliseconds: long, so that somebody who knows goes first.
const UNKNOWN_MS: u64 = 10_000;

/// How much the newest task counts against those before it, in percent.
const NEWEST: u64 = 30;

/// How sure an agent is at most, in percent.
const MOST_SURE: u64 = 99;

/// Pause before calls are listened for again when the bus failed.
const PAUSE: Duration = Duration::from_secs(1);

/// What the tasks of an agent took, and how they ended. Older ones count less and less.
#[derive(Debug, Default)]
pub(super) struct Experience(Mutex<Totals>);

#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    ended: u64,
    good: u64,
    millis: u64,
    cost_micros: u64,
}

impl Experience {
    /// Takes note of a task that ended.
    pub(super) fn ended(&self, good: bool, took: Duration, usage: Usage) {
        let mut seen = lock(&self.0);
        let took = millis(took);
        let first = seen.ended == 0;
        let mixed = |before: u64, new: u64| {
            if first {
                new
            } else {
                (before.saturating_mul(100 - NEWEST).saturating_add(new.saturating_mul(NEWEST))) / 100
            }
        };
        *seen = Totals {
            ended: seen.ended.saturating_add(1),
            good: seen.good.saturating_add(u64::from(good)),
            millis: mixed(seen.millis, took),
            cost_micros: mixed(seen.cost_micros, usage.cost_micros),
        };
    }

    /// How long a task took of late, in milliseconds, and what it cost; nothing before the first.
    pub(super) fn of_late(&self) -> Option<(u64, u64)> {
        let seen = *lock(&self.0);
        (seen.ended > 0).then_some((seen.millis, seen.cost_micros))
    }

    /// What a task like those before will take: time and cost, and how sure that is, in percent. One good and one bad end
    /// are taken for seen before the first (Laplace).
    fn expected(&self) -> (u64, u64, u8) {
        let seen = *lock(&self.0);
        let sure = (seen.good.saturating_add(1).saturating_mul(100)) / seen.ended.saturating_add(2);
        let millis = if seen.ended == 0 { UNKNOWN_MS } else { seen.millis.max(1) };
        (millis, seen.cost_micros, u8::try_from(sure.min(MOST_SURE)).unwrap_or(u8::MAX))
    }
}

/// Answers calls for proposals as long as a slot is free.
pub(super) async fn bid(context: Arc<AgentContext>, seats: watch::Receiver<Seats>, stop: CancellationToken) {
    let auctions = context.bus().auctions();
    loop {
        let mut calls = match auctions.listen(context.role()).await {
            Ok(calls) => calls,
            Err(error) => {
                tracing::debug!(%error, "calls for proposals cannot be heard; trying again");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(PAUSE) => continue,
                }
            }
        };
        loop {
            let call = tokio::select! {
                () = stop.cancelled() => return,
                call = calls.next() => call,
            };
            let Some(call) = call else { break };
            if seats.borrow().free == 0 {
                continue;
            }
            if let Err(error) = auctions.bid(context.role(), &bid_for(&context, &call)).await {
                tracing::debug!(%error, task = %call.task, "a bid could not be made");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

fn bid_for(context: &AgentContext, call: &CallForProposals) -> Bid {
    let (millis, cost_micros, confidence) = context.experience().expected();
    Bid {
        agent: context.bus().who().clone(),
        run: call.run,
        task: call.task.clone(),
        number: call.number,
        millis,
        cost_micros,
        confidence,
        note: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bid_follows_what_tasks_took() {
        let experience = Experience::default();
        assert_eq!(experience.expected(), (UNKNOWN_MS, 0, 50));
        let usage = |cost_micros| Usage { cost_micros, ..Usage::default() };
        experience.ended(true, Duration::from_millis(1_000), usage(200));
        assert_eq!(experience.expected(), (1_000, 200, 66));
        experience.ended(true, Duration::from_millis(2_000), usage(400));
        assert_eq!(experience.expected(), (1_300, 260, 75));
        experience.ended(false, Duration::from_millis(2_000), usage(0));
        assert_eq!(experience.expected(), (1_510, 182, 60));
    }
}
