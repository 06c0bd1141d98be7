//! `muster show`: one run in full.

use super::select;
use crate::app::{App, now};
use crate::args::ShowArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::supervisor::Reading;
use crate::{output, render};
use muster_shared::run::RunState;

/// Prints a run.
pub(super) async fn show(app: &App, args: &ShowArgs) -> Result<Exit, Failure> {
    let reading = Reading::open(app).await?;
    let found = read(&reading, &args.run).await;
    reading.close().await;
    let state = found?;
    if args.json {
        output::json(&state)?;
    } else {
        output::line(&render::run::show(&state, now(), app.paint()))?;
    }
    Ok(Exit::Completed)
}

async fn read(reading: &Reading, wanted: &str) -> Result<RunState, Failure> {
    let run = select::run(&reading.bus, wanted).await?;
    select::fold(run, &select::entries(&reading.bus, run).await?)
}
