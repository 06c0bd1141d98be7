//! Feeders: pull tasks for free slots, one at a time, and nothing while none is free.

use std::time::Duration;

use actix::Addr;
use muster_bus::{BusError, TaskQueue};
use muster_shared::backoff::Backoff;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::lead::{Arrived, Host, Seats};
use crate::model::random::fraction;

/// Waits after pulls that failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// Pulls until `stop` fires. A bus that fails for good stops the agent.
pub(super) async fn feed(
    queue: TaskQueue,
    mut seats: watch::Receiver<Seats>,
    host: Addr<Host>,
    wait: Duration,
    stop: CancellationToken,
) -> Result<(), BusError> {
    let fed = pull_on(&queue, &mut seats, &host, wait, &stop).await;
    stop.cancel();
    fed
}

async fn pull_on(
    queue: &TaskQueue,
    seats: &mut watch::Receiver<Seats>,
    host: &Addr<Host>,
    wait: Duration,
    stop: &CancellationToken,
) -> Result<(), BusError> {
    let mut failures = 0_u32;
    loop {
        let seats = async { seats.wait_for(|seats| seats.free > 0).await.is_ok() };
        if !unless_stopped(stop, seats).await.unwrap_or(false) {
            return Ok(());
        }
        let Some(taken) = unless_stopped(stop, Box::pin(queue.take(wait))).await else { return Ok(()) };
        match taken {
            Ok(None) => {}
            Ok(Some(task)) => {
                failures = 0;
                // Waits until the host has seated it, so that the next look at free seats is true. Whoever stops waiting
                // takes the message back, and the task would be lost with it: this is not cut short.
                if host.send(Arrived(task)).await.is_err() {
                    return Ok(());
                }
            }
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "no tasks can be taken; trying again");
                failures = failures.saturating_add(1);
                // A bus that comes back is not asked by all agents in the same moment.
                let pause = tokio::time::sleep(BACKOFF.spread(failures, fraction()));
                if unless_stopped(stop, pause).await.is_none() {
                    return Ok(());
                }
            }
        }
    }
}

/// What a wait gives; nothing once the agent is to stop, and nothing is begun then: what the host gives back at that
/// moment is for others.
async fn unless_stopped<T>(stop: &CancellationToken, wait: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        done = wait => Some(done),
    }
}
