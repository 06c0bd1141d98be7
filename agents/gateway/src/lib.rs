//! The task gateway: programs in other languages take, do and finish tasks by request and reply alone.
//!
//! [`serve`] answers `agent.<role>.<verb>`. What programs never see is done here in their names: the queue, the fence, the
//! record, the registry, usage, and what follows when one of them dies. Any number of gateways serve side by side; see
//! `token` for how one goes on with a task that another one began.

mod adopt;
mod beat;
mod check;
mod desk;
mod files;
mod finish;
mod model;
mod offer;
mod open;
mod orders;
mod past;
mod presence;
mod programs;
mod queues;
mod refusal;
mod rights;
mod route;
mod settings;
mod step;
mod take;
mod token;
mod wait;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use muster_agents::AgentSettings;
use muster_agents::host::for_programs::ForPrograms;
use muster_bus::{Bus, BusError};
use muster_shared::secret::Redactor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use desk::Desk;
pub use settings::GatewaySettings;

/// How long requests in hand may take when a gateway stops.
const LAST: Duration = Duration::from_secs(2);

/// Serves programs until `stop` fires. Documents, models and permissions are those of the settings of agents. What is in
/// programs' hands then goes on at another gateway, or here when it is started again.
///
/// # Errors
/// When the bus fails.
pub async fn serve(
    bus: Bus,
    settings: GatewaySettings,
    agents: AgentSettings,
    redactor: Arc<Redactor>,
    stop: CancellationToken,
) -> Result<(), BusError> {
    let door = bus.gateway();
    let mut requests = door.serve().await?;
    let mut moved = door.moved().await?;
    let shared = ForPrograms::new(bus.clone(), agents, redactor);
    let stop = stop.child_token();
    let desk = Arc::new(Desk::new(bus, settings, shared, stop.clone()));
    let watch = tokio::spawn(watch::watch(Arc::clone(&desk)));
    let in_hand = TaskTracker::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(moved) = moved.next() => desk.moved(moved),
            asked = requests.next() => match asked {
                Some(asked) => drop(in_hand.spawn(route::answer(Arc::clone(&desk), asked))),
                None => break,
            },
        }
    }
    drop((requests, moved));
    stop.cancel();
    watch.abort();
    in_hand.close();
    let _all_done_or_not = tokio::time::timeout(LAST, in_hand.wait()).await;
    Ok(())
}
