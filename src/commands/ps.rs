//! `muster ps`: the processes of the fleet.

use muster_shared::standing::Standings;

use crate::app::{App, bus_failure, now};
use crate::args::JsonArgs;
use crate::exit::{Exit, Failure};
use crate::render::processes::Listed;
use crate::{output, render};

/// How many runs, newest first, are looked at for those that are paused.
const LOOKED_AT: usize = 20;

/// Prints the registry.
pub(super) async fn ps(app: &App, args: &JsonArgs) -> Result<Exit, Failure> {
    let bus = app.connect("reader").await?;
    let profiles = bus.registry().list().await.map_err(bus_failure)?;
    let mut standings = Standings::default();
    // A fleet of before there was this has no place for it.
    for kept in bus.standing().all().await.unwrap_or_default() {
        standings.learn(kept);
    }
    let listed: Vec<Listed> = profiles
        .into_iter()
        .map(|profile| Listed { standing: standings.of_agent(&profile.agent), profile })
        .collect();
    if args.json {
        output::json(&listed)?;
    } else {
        if let Some(team) = app.fleet.live().and_then(|state| state.team) {
            output::line(&format!("team {team}"))?;
        }
        output::line(&render::processes::table(listed, now()))?;
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
