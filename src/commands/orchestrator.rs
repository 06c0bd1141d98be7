//! `muster orchestrator`: be an orchestrator.

use crate::app::{App, bus_failure, no_fleet};
use crate::exit::{Exit, Failure};
use crate::signals::StopSignals;

/// Orchestrates runs until told to stop.
pub(super) async fn orchestrator(app: &App) -> Result<Exit, Failure> {
    let stop = StopSignals::listen()?.into_token();
    let url = app.url().ok_or_else(no_fleet)?;
    let bus = app.connect_with_system(&url, "orchestrator").await?;
    bus.provision().await.map_err(bus_failure)?;
    let mut settings = app.settings().orchestrator.clone();
    settings.limits = (&app.settings().limits).into();
    Box::pin(muster_orchestrator::run(bus, settings, stop))
        .await
        .map_err(|error| Failure::failed(error.to_string()).help("`muster doctor` checks the bus"))?;
    Ok(Exit::Completed)
}
