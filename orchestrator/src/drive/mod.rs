//! Drives runs: actors that build inputs, have them decided, write the decision, and carry it out.
//!
//! Everything here may die at any time. What counts stands in the record, and whoever takes a run over folds it.

mod admission;
mod asks;
mod capacity;
mod context;
mod deaths;
mod intake;
mod lessons;
mod line;
mod owners;
mod ownership;
mod perform;
mod registry;
mod rest;
mod room;
mod run_actor;
mod sessions;
mod settings;
mod signals;
mod snapshots;
mod takeover;
mod track_record;
mod trials;
mod turn;
mod upkeep;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix::Arbiter;
use futures::FutureExt;
use muster_bus::{Bus, BusError, Places, memory};
use muster_shared::run::EVENT_VERSION;
use muster_shared::time::Millis;
use muster_shared::wire::{Advertised, Profile};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

pub use capacity::{Capacity, Holding};
use context::OrchestratorContext;
pub use room::{Roomed, decide_with_room};
pub use settings::OrchestratorSettings;

/// How often the registry hears how many runs are in hand.
const COUNT: Duration = Duration::from_secs(1);

/// Looks without a run in hand after which a rest is a long one.
const LONG_REST: u64 = memory::LONG.as_secs() / COUNT.as_secs();

/// Why an orchestrator stopped.
#[derive(Debug, thiserror::Error)]
pub enum OrchestratorError {
    /// The bus failed for good.
    #[error("the orchestrator cannot go on: {0}")]
    Bus(#[from] BusError),
    /// There is no actor system, or none could be built.
    #[error("no actor system: {0}")]
    System(String),
}

/// Orchestrates runs until told to stop. Must be polled inside an actix system, see [`with_system`].
///
/// # Errors
/// When the bus is of no use any more.
pub async fn run(
    bus: Bus,
    settings: OrchestratorSettings,
    stop: CancellationToken,
) -> Result<(), OrchestratorError> {
    let arbiter = Arbiter::try_current()
        .ok_or_else(|| OrchestratorError::System("run it inside `with_system`".into()))?;
    let clock = bus.allowances().clock().await?;
    let announced = bus.registry().announce(profile(&bus, &settings, clock.now())).await?;
    let context = Arc::new(OrchestratorContext::new(bus.clone(), settings, arbiter, clock));
    let (registry, record) = (bus.registry(), bus.record());
    // Signals are followed from before the first run is read, so that none falls between.
    let (agents, after) = tokio::try_join!(registry.list(), record.newest())?;
    context.capacity.expect(context.settings.expected_roles.iter().cloned());
    for agent in agents {
        drop(context.capacity.agents_changed(muster_bus::RegistryChange::Joined(agent)));
    }
    context.ownership.reached_all(&after);
    context.ownership.begin(|| context.load()).await?;
    let mut parts = begin_parts(&context, after);
    let ended = tokio::select! {
        () = stop.cancelled() => Ok(()),
        error = bus.failed() => Err(error),
        Some(ended) = parts.join_next() => end_of_part(ended),
        () = count(&context, &announced) => Ok(()),
    };
    // None of them begins anything while what is in hand is finished.
    parts.shutdown().await;
    hand_over(&context).await;
    if let Err(error) = announced.leave().await {
        tracing::warn!(%error, "the registry forgets this orchestrator only after a while");
    }
    Ok(ended?)
}

/// What an orchestrator does for as long as it lives, each in a task of its own: what wakes one of them concerns no other.
/// Whichever ends first ends the orchestrator.
fn begin_parts(context: &Arc<OrchestratorContext>, after: Places) -> JoinSet<Result<(), BusError>> {
    let mut parts = JoinSet::new();
    parts.spawn(signals::follow_agents(Arc::clone(context), after));
    parts.spawn(deaths::watch_agents(Arc::clone(context)));
    parts.spawn(intake::take_commands(Arc::clone(context)));
    parts.spawn(asks::answer_all(Arc::clone(context)));
    let tasks = context.bus.tasks();
    parts.spawn(async move { tasks.make_for_agents().await });
    parts.spawn(takeover::adopt_orphans(Arc::clone(context)));
    parts.spawn(owners::hear(Arc::clone(context)));
    let keeping = Arc::clone(context);
    parts.spawn(async move {
        keeping.ownership.keep(|| keeping.load(), || keeping.dismiss_runs()).await;
        Ok(())
    });
    parts.spawn(lessons::follow(Arc::clone(context)).map(Ok));
    parts.spawn(track_record::follow(Arc::clone(context)).map(Ok));
    parts.spawn(trials::follow(Arc::clone(context)).map(Ok));
    parts.spawn(upkeep::keep(Arc::clone(context)));
    parts
}

/// Runs `read` again, a second after each end, for as long as it is polled. A failure is logged with the words `cannot`.
async fn repeat<F: Future<Output = Result<(), BusError>>>(cannot: &str, read: impl Fn() -> F) {
    loop {
        if let Err(error) = read().await {
            tracing::warn!(%error, "{cannot}; trying again");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// How a part ended. A fault in one of them is one of the orchestrator.
fn end_of_part(ended: Result<Result<(), BusError>, JoinError>) -> Result<(), BusError> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(ended) => ended,
        Err(Ok(fault)) => std::panic::resume_unwind(fault),
        // Nobody ends them but this orchestrator, when it is not waiting for them any more.
        Err(Err(_)) => Ok(()),
    }
}

/// Finishes the turns and commands in hand, and leaves the runs to others.
async fn hand_over(context: &OrchestratorContext) {
    context.closed.cancel();
    context.in_hand.close();
    // Longer than the lease lasts nothing could be written anyway.
    let limit = context.bus.settings().lease_ttl;
    if tokio::time::timeout(limit, context.in_hand.wait()).await.is_err() {
        tracing::warn!("what is in hand was not finished in time; it is left to others as it is");
    }
    context.ownership.give_up(|| context.load()).await;
    context.dismiss_runs();
}

/// Builds an actix system and runs a future in it to its end. Actors and tasks share one thread; what blocks has threads of
/// its own. A fleet spreads over cores by its processes: more threads in one mostly hand short pieces of work to each other.
///
/// # Errors
/// When the runtime cannot be built.
pub fn with_system<F: Future>(work: impl FnOnce() -> F) -> Result<F::Output, OrchestratorError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| OrchestratorError::System(error.to_string()))?;
    let runtime = std::cell::Cell::new(Some(runtime));
    let system = actix::System::with_tokio_rt(|| {
        #[expect(clippy::expect_used, reason = "the factory of the system is called once")]
        runtime.take().expect("the runtime is taken once")
    });
    Ok(system.block_on(async move { work().await }))
}

async fn count(context: &OrchestratorContext, announced: &muster_bus::Announced) {
    let mut rest = rest::Rest::default();
    loop {
        let runs = context.registry.len();
        announced.set_busy(u32::try_from(runs).unwrap_or(u32::MAX));
        match rest.look(runs, LONG_REST) {
            rest::Given::Nothing => {}
            rest::Given::Free => memory::give_back(),
            rest::Given::Program => memory::rest(),
        }
        let (set_aside, times) = context.runs_set_aside();
        announced.set_aside(set_aside, times, context.capacity.count_tries(None, context.now()));
        tokio::time::sleep(COUNT).await;
        context.mind_the_clock().await;
        context.judge_all();
    }
}

fn profile(bus: &Bus, settings: &OrchestratorSettings, now: Millis) -> Profile {
    Profile {
        agent: bus.who().clone(),
        role: capacity::ORCHESTRATOR.into(),
        pid: std::process::id(),
        host: muster_bus::host_name().unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").into(),
        event_version: EVENT_VERSION,
        slots: u32::try_from(settings.max_runs).unwrap_or(u32::MAX),
        busy: 0,
        model: String::new(),
        tools: Vec::new(),
        started_at: now.0,
        resident_bytes: 0,
        specialist: domains(settings),
        name: settings.name.clone(),
        quiet_ms: 0,
        set_aside: Vec::new(),
        by_gateway: false,
        times_set_aside: 0,
        excluded: Vec::new(),
        metrics: String::new(),
        presence: muster_shared::flow::Presence::default(),
    }
}

/// What an orchestrator says of its domains, if it is of some.
fn domains(settings: &OrchestratorSettings) -> Option<Box<Advertised>> {
    let capabilities = settings.domains.clone();
    let description = "Sees to the runs of its domains.".to_owned();
    (!capabilities.is_empty())
        .then(|| Box::new(Advertised { description, capabilities, ..Advertised::default() }))
}
