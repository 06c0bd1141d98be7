//! `muster ps`: the processes of the fleet.

use crate::app::{App, bus_failure, now};
use crate::args::JsonArgs;
use crate::exit::{Exit, Failure};
use crate::{output, render};

/// Prints the registry.
pub(super) async fn ps(app: &App, args: &JsonArgs) -> Result<Exit, Failure> {
    let bus = app.connect("reader").await?;
    let profiles = bus.registry().list().await.map_err(bus_failure)?;
    if args.json {
        output::json(&profiles)?;
    } else {
        output::line(&render::processes::table(profiles, now()))?;
    }
    Ok(Exit::Completed)
}
