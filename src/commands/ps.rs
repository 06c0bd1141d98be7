//! `muster ps`: the processes of the fleet.

use crate::app::{App, bus_failure, now};
use crate::args::JsonArgs;
use crate::exit::{Exit, Failure};
use crate::{output, render};

/// How many runs, newest first, are looked at for those that are paused.
const LOOKED_AT: usize = 20;

/// Prints the registry.
pub(super) async fn ps(app: &App, args: &JsonArgs) -> Result<Exit, Failure> {
    let bus = app.connect("reader").await?;
    let profiles = bus.registry().list().await.map_err(bus_failure)?;
    if args.json {
        output::json(&profiles)?;
    } else {
        if let Some(team) = app.fleet.live().and_then(|state| state.team) {
            output::line(&format!("team {team}"))?;
        }
        output::line(&render::processes::table(profiles, now()))?;
        for file in app.fleet.live().into_iter().flat_map(|state| state.refused) {
            output::line(&format!("an agent file is left out: {}", file.reason))?;
        }
        for run in super::runs::newest(&bus, LOOKED_AT).await?.iter().filter(|run| run.paused.is_some()) {
            let short = run.id.short();
            output::line(&format!("run {short} is paused; `muster resume {short}` lets it go on"))?;
        }
    }
    Ok(Exit::Completed)
}
