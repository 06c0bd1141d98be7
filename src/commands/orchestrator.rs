//! `muster orchestrator`: be an orchestrator.

use std::sync::Arc;

use muster_bus::Bus;
use muster_shared::flow::goal::{GoalError, MAX_DOMAIN_BYTES, is_domain};

use tokio_util::sync::CancellationToken;

use crate::app::{App, no_fleet};
use crate::exit::{Exit, Failure};
use crate::signals::StopSignals;
use crate::telemetry::Role;

/// Orchestrates runs until told to stop.
pub(super) async fn orchestrator(app: &App) -> Result<Exit, Failure> {
    if let Some(wrong) = app.settings().orchestrator.domains.iter().find(|name| !is_domain(name)) {
        let wrong = GoalError::NoDomain { name: wrong.chars().take(MAX_DOMAIN_BYTES).collect() };
        return Err(Failure::usage(wrong).help("fix `orchestrator.domains` in the settings"));
    }
    let stop = StopSignals::listen()?.into_token();
    let url = app.url().ok_or_else(no_fleet)?;
    let bus = app.connect_with_system(&url, "orchestrator").await?;
    bus.provision().await?;
    let work = async |bus: &Bus| serve(app, bus, stop).await;
    super::rejoin::with_telemetry(app, (bus, &url), Role::Orchestrator, work).await
}

/// Decides runs and serves programs until `stop` fires.
pub(super) async fn serve(app: &App, bus: &Bus, stop: CancellationToken) -> Result<(), Failure> {
    let mut settings = app.settings().orchestrator.clone();
    settings.limits = app.settings().limits.clone();
    settings.name.clone_from(&app.settings().agent.name);
    if let Some(fleet) = app.fleet.live().filter(|fleet| fleet.host.is_none()) {
        let starts = |name: &str| fleet.members.iter().any(|member| member.role() == name);
        settings.expected_roles.retain(|role| starts(role.as_str()));
    }
    let gateway = tokio::spawn(gateway(app.clone(), bus.clone(), stop.clone()));
    let worked = Box::pin(muster_orchestrator::run(bus.clone(), settings, stop.clone())).await;
    // What ends the one ends the other: programs go on at another gateway.
    stop.cancel();
    let _ended = gateway.await;
    worked.map_err(|error| Failure::failed(error).help("`muster doctor` checks the bus"))
}

/// Serves programs in other languages, if settings want that. Runs do not depend on it.
async fn gateway(app: App, bus: Bus, stop: CancellationToken) {
    let settings = app.settings().gateway.clone();
    if !settings.enabled {
        return;
    }
    let (agents, redactor) = (super::agent::settings(&app), Arc::clone(&app.redactor));
    if let Err(error) = muster_gateway::serve(bus, settings, agents, redactor, stop).await {
        tracing::error!(%error, "programs in other languages are not served here");
    }
}
