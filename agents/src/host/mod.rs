//! The agent process: takes tasks, keeps its place in the registry, obeys control, and stops in good order.
//!
//! [`run_agent`] is the door. Inside, a host actor assigns tasks to slot actors; two feeders pull from the
//! role's queue and from the agent's own; what runs in a slot is guarded, so that a fault of ours ends one task
//! and nothing else.

mod bidder;
mod context;
mod corpora;
mod feed;
pub mod for_programs;
mod guard;
pub mod guarded;
mod lead;
mod lending;
mod models;
mod profile;
mod rest;
mod slot;

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, AsyncContext};
use muster_bus::{Bus, BusError};
use muster_shared::ids::{Queue, Role};
use muster_shared::secret::Redactor;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use context::AgentContext;
pub use corpora::BusBlobs;
pub use models::{ModelClientFactory, minds_from_environment};

use crate::definition::Definition;
use crate::settings::AgentSettings;
use lead::{Host, LeaveAll, Quit, ReleaseAll, Seats};

/// How long one question for the next task waits at the broker. Long is cheap. A pull that waits costs nothing;
/// one that ends in time shows that the connection holds.
const PULL_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a released task may take to be handed over.
const RELEASE: Duration = Duration::from_secs(5);

/// Why an agent process ends.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The bus failed in a way that waiting does not mend.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The host actor is gone.
    #[error("the agent's host stopped by itself")]
    Stopped,
}

/// Runs an agent of this role until `stop` fires or the bus fails for good.
///
/// Must be called inside an actix system whose runtime is multi-threaded (`System::with_tokio_rt`).
///
/// # Errors
/// When the bus cannot be used. Tasks in hand are then left to others.
pub async fn run_agent(
    bus: Bus,
    role: Role,
    settings: AgentSettings,
    redactor: Arc<Redactor>,
    stop: CancellationToken,
) -> Result<(), AgentError> {
    let models = minds_from_environment(settings.clone(), role.clone());
    let context = AgentContext::new(bus, role, settings, redactor, models);
    run_with(Arc::new(context), stop).await
}

/// Runs a specialist until `stop` fires or the bus fails for good. What settings say of its role goes before what its
/// definition says.
///
/// # Errors
/// As [`run_agent`].
pub async fn run_specialist(
    bus: Bus,
    definition: Definition,
    settings: AgentSettings,
    redactor: Arc<Redactor>,
    stop: CancellationToken,
) -> Result<(), AgentError> {
    let settings = definition.settle(settings);
    let role = definition.role.clone();
    let models = minds_from_environment(settings.clone(), role.clone());
    let context =
        AgentContext::new(bus, role, settings, redactor, models).with_definition(Arc::new(definition));
    run_with(Arc::new(context), stop).await
}

/// As [`run_agent`], with everything that tasks share made by the caller.
///
/// # Errors
/// As [`run_agent`].
pub async fn run_with(context: Arc<AgentContext>, stop: CancellationToken) -> Result<(), AgentError> {
    let stop = stop.child_token();
    let bus = context.bus().clone();
    let (tasks, listener, role) = (bus.tasks(), bus.control(), context.role().to_string());
    let queues = [Queue::Role(context.role().clone()), Queue::Agent(bus.who().clone())];
    // Which tools there are is known before the first task is taken, where there are servers of any.
    let joining = async {
        tokio::try_join!(
            tasks.join(&queues[0]),
            tasks.join(&queues[1]),
            listener.listen(bus.who(), &role),
            context.follow_tool_servers(&stop),
            lending::begin(&context, &stop),
        )
    };
    // An orchestrator makes the queues. It may have been stopped together with this agent.
    let Some(joined) = stop.run_until_cancelled(joining).await else { return Ok(()) };
    let (by_role, addressed, control, (), lending) = joined?;
    let lending = tokio::spawn(lending);
    let announced = Arc::new(bus.registry().announce(profile::profile(&context)).await?);
    let telling = Arc::clone(&context);
    announced.tell_with(move |presence| profile::presence(&telling, presence));
    let (seats, watched) = watch::channel(Seats { free: context.slots(), all: context.slots() });

    let host = Host::new(Arc::clone(&context), seats, Arc::clone(&announced), stop.clone());
    let host = Host::create(|context| {
        context.add_stream(control);
        host
    });
    let feeders = [by_role, addressed].map(|queue| {
        tokio::spawn(feed::feed(queue, watched.clone(), host.clone(), PULL_TIMEOUT, stop.clone()))
    });
    tokio::spawn(bidder::bid(Arc::clone(&context), watched.clone(), stop.clone()));
    tokio::spawn(rest::give_back(bus.clone(), watched.clone()));
    stop.cancelled().await;
    host.do_send(LeaveAll);
    let [by_role, addressed] = feeders;
    let failed = [ended(by_role).await, ended(addressed).await].into_iter().flatten().next();

    if !all_free(watched.clone(), context.settings().drain).await {
        host.do_send(ReleaseAll);
        let _ = all_free(watched, RELEASE).await;
    }
    // What others have asked for and is in hand is ended in good order; it takes no longer than it may.
    let _ = lending.await;
    let _ = tokio::time::timeout(RELEASE, host.send(Quit)).await;
    leave(announced).await;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

async fn ended(feeder: tokio::task::JoinHandle<Result<(), BusError>>) -> Option<BusError> {
    feeder.await.ok().and_then(Result::err)
}

/// Whether all slots are free within `limit`.
async fn all_free(mut seats: watch::Receiver<Seats>, limit: Duration) -> bool {
    let free = seats.wait_for(|seats| seats.free == seats.all);
    tokio::time::timeout(limit, free).await.is_ok()
}

async fn leave(announced: Arc<muster_bus::Announced>) {
    if let Some(announced) = Arc::into_inner(announced)
        && let Err(error) = announced.leave().await
    {
        tracing::debug!(%error, "the registry forgets this agent when its time is up");
    }
}

#[cfg(test)]
mod tests;
