//! Offers that come late. A queue that stood still, because its server died or nobody was there to take from it, gives
//! out offers that have been made again meanwhile: doing those too would be paid for twice.

use std::time::Duration;

use muster_bus::{Bus, TakenTask};

/// An offer that was longer on its way is looked up. Orchestrators make a lost offer again after 5 s.
pub(super) const LATE: Duration = Duration::from_secs(2);

/// Whether the task has been offered anew since. An offer that came at once, for the first time, is not looked up.
pub(super) async fn is_superseded(bus: &Bus, task: &TakenTask) -> bool {
    if task.delivered <= 1 && task.waited < LATE {
        return false;
    }
    let offer = &task.offer;
    match bus.record().newest_offer(offer.run, &offer.task).await {
        Ok(newest) => newest.is_some_and(|newest| newest > offer.generation),
        Err(error) => {
            // The fence of the generation still keeps two agents apart.
            tracing::warn!(%error, "it cannot be told whether an offer was made again");
            false
        }
    }
}
