//! Feeders: pull tasks for free slots, one at a time, and nothing while none is free.

use std::time::Duration;

use actix::Addr;
use muster_bus::{BusError, TaskQueue};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::lead::{Arrived, Host, Seats};

/// The first wait after a failed pull; it doubles up to [`MAX_PAUSE`].
const PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Pulls until `stop` fires. A bus that fails for good stops the agent.
pub(super) async fn feed(
    queue: TaskQueue,
    mut seats: watch::Receiver<Seats>,
    host: Addr<Host>,
    wait: Duration,
    stop: CancellationToken,
) -> Result<(), BusError> {
    let fed = stop.run_until_cancelled(Box::pin(pull_on(&queue, &mut seats, &host, wait))).await;
    stop.cancel();
    fed.unwrap_or(Ok(()))
}

async fn pull_on(
    queue: &TaskQueue,
    seats: &mut watch::Receiver<Seats>,
    host: &Addr<Host>,
    wait: Duration,
) -> Result<(), BusError> {
    let mut pause = PAUSE;
    loop {
        if seats.wait_for(|seats| seats.free > 0).await.is_err() {
            return Ok(());
        }
        match queue.take(wait).await {
            Ok(None) => {}
            Ok(Some(task)) => {
                pause = PAUSE;
                // Waits until the host has seated it, so that the next look at free seats is true.
                if host.send(Arrived(task)).await.is_err() {
                    return Ok(());
                }
            }
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "no tasks can be taken; trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }
}
