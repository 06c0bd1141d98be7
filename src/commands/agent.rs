//! `muster agent`: be an agent of a role.

use std::sync::Arc;

use crate::app::{App, bus_failure, no_fleet};
use crate::args::AgentArgs;
use crate::exit::{Exit, Failure};
use crate::signals::StopSignals;

/// Works until told to stop.
pub(super) async fn agent(app: &App, args: &AgentArgs) -> Result<Exit, Failure> {
    let stop = StopSignals::listen()?.into_token();
    let url = app.url().ok_or_else(no_fleet)?;
    let bus = app.connect_to(&url, &args.role.to_string()).await?;
    // An agent may be the first on a bus; doing it again changes nothing.
    bus.provision().await.map_err(bus_failure)?;
    tracing::info!(
        "joining the fleet at {} as {}; Ctrl-C or SIGTERM leaves it in good order",
        app.redactor.redact(&url),
        args.role
    );
    let mut settings = app.settings().agent.clone();
    settings.cache_dir = app.beside_fleet(&settings.cache_dir);
    settings.workspace_dir = app.beside_fleet(&settings.workspace_dir);
    settings.fleet = app.settings().fleet.whole_budget();
    muster_agents::run_agent(bus, args.role.clone(), settings, Arc::clone(&app.redactor), stop)
        .await
        .map_err(|error| {
            Failure::failed(format!("the {} cannot go on: {error}", args.role))
                .help("`muster doctor` checks the bus and the models")
        })?;
    Ok(Exit::Completed)
}
