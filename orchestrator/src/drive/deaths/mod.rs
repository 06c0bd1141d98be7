//! Notices the deaths of agents and orchestrators, and tells the runs.
//!
//! The server tells at once when a connection ends. A process that makes another within a moment has not died; one
//! that does not is taken for lost, and whoever has tasks with it hands them on. What was told while nobody listened is
//! found out by the roll, which the server gives whenever listening begins and regularly from then on. Without a system
//! account, and while this orchestrator cannot hear the server, the registry tells when an agent gave no sign of life
//! for too long.
//! Whether a loss was real makes no difference to the record: its fence lets one agent through.

mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use muster_bus::{Bus, BusError, Presence, RegistryChange};
use muster_shared::ids::AgentId;
use muster_shared::run::Input;

use self::watch::{Lost, Watch};
use super::context::OrchestratorContext;
use super::run_actor::RunMessage;
use super::turn::wake_others;

/// Pause before the system account is tried again.
const PAUSE: Duration = Duration::from_secs(5);

/// Wait when there is nothing to wait for.
const LONG: Duration = Duration::from_secs(3600);

/// Keeps count of the agents that are there, wakes runs that can go on, and tells all runs of agents that are lost. What
/// a lost orchestrator owned is taken over.
///
/// # Errors
/// When the registry cannot be watched, or cannot be watched any more.
pub(super) async fn watch_agents(context: Arc<OrchestratorContext>) -> Result<(), BusError> {
    let mut changes = context.bus.registry().watch().await?;
    let mut presence = listen(context.bus.clone()).into_stream().flatten().boxed();
    let mut watch = Watch::new(context.bus.settings().heartbeat);
    loop {
        let wait = watch.next().map_or(LONG, |at| at.saturating_duration_since(Instant::now()));
        tokio::select! {
            change = changes.next() => match change {
                Some(change) => {
                    watch.registry_changed(&change, Instant::now());
                    if let RegistryChange::Joined(profile) = &change {
                        context.found(&profile.agent);
                    }
                    if let RegistryChange::Left(agent) = &change {
                        context.ownership.owner_lost(agent);
                        if context.capacity.knows(agent) || context.is_missing(agent) {
                            clear_up_after(&context, agent.clone());
                        }
                    }
                    wake_others(&context, &context.capacity.agents_changed(change));
                }
                None => return Err(BusError::Other {
                    what: "watching the registry".into(),
                    reason: "the bus gave no more changes".into(),
                }),
            },
            told = presence.next() => match told {
                Some(Presence::Here(here)) => watch.roll(here, members(&context), Instant::now()),
                Some(Presence::Came { agent, instance }) => watch.came(agent, instance),
                Some(Presence::Went { agent, instance, reason }) => {
                    let known = is_of_fleet(&context, &agent);
                    watch.went(agent, &instance, &reason, known, Instant::now());
                }
                None => {
                    tracing::warn!("the server tells no more who comes and goes; asking again");
                    presence = tokio::time::sleep(PAUSE).then(|()| listen(context.bus.clone())).into_stream().flatten().boxed();
                }
            },
            () = tokio::time::sleep(wait) => {
                for lost in watch.due(Instant::now()) {
                    tell(&context, lost);
                }
            }
        }
    }
}

/// What the server tells; nothing ever where it does not.
async fn listen(bus: Bus) -> BoxStream<'static, Presence> {
    loop {
        match bus.presence().await {
            Ok(Some(told)) => return told,
            Ok(None) => {
                let (registry, queue) = (bus.settings().registry_ttl(), bus.settings().ack_wait);
                tracing::info!(
                    "no system account is set (bus.system_user): the death of an agent is noticed after {registry:?} \
                     by the registry, or after {queue:?} by its queue"
                );
                return stream::pending().boxed();
            }
            Err(error) if error.is_fatal() => {
                tracing::warn!(
                    %error,
                    "the system account cannot be used: deaths of agents are noticed late; check bus.system_user"
                );
                return stream::pending().boxed();
            }
            Err(error) => tracing::debug!(%error, "the system account cannot be reached; trying again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Who should be connected: the agents and the other orchestrators.
fn members(context: &OrchestratorContext) -> Vec<AgentId> {
    let orchestrators = context.ownership.sessions().others();
    context.capacity.agents().into_iter().chain(orchestrators).collect()
}

/// Whether it is an agent or an orchestrator that is known here, and not somebody who looks in.
fn is_of_fleet(context: &OrchestratorContext, agent: &AgentId) -> bool {
    context.capacity.knows(agent) || context.ownership.sessions().is_live(agent)
}

/// Empties the queue of an agent that left. What was in it is offered to others by the runs that it concerns.
fn clear_up_after(context: &Arc<OrchestratorContext>, agent: AgentId) {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        if let Err(error) = context.bus.tasks().abandon(&agent).await {
            tracing::debug!(%agent, %error, "what is left in the queue of an agent that left stays there");
        }
    });
}

fn tell(context: &Arc<OrchestratorContext>, Lost { agent, reason, of_connection }: Lost) {
    tracing::info!(%agent, reason, "a process of the fleet is lost");
    context.ownership.owner_lost(&agent);
    let in_hand = context.capacity.in_hand(&agent);
    if of_connection {
        context.missing(&agent);
        wake_others(context, &context.capacity.agents_changed(RegistryChange::Left(agent.clone())));
    }
    context.registry.tell_all(|| {
        let (agent, reason) = (agent.clone(), reason.clone());
        // Less what is the run's own, once it is told.
        RunMessage::Wake(Input::AgentLost { agent, reason, steps: BTreeMap::new(), elsewhere: in_hand })
    });
    if of_connection {
        let context = Arc::clone(context);
        tokio::spawn(async move {
            if let Err(error) = context.bus.registry().forget(&agent).await {
                tracing::debug!(%agent, %error, "the registry forgets a lost agent when its time is up");
            }
        });
    }
}
