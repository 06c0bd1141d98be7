//! `muster cancel`: asks a run to stop.

use muster_shared::wire::{Command, Encoding};
use serde_json::json;

use super::select;
use crate::app::{App, bus_failure};
use crate::args::CancelArgs;
use crate::exit::{Exit, Failure};
use crate::output;

/// Sends the durable command; the run's record has the answer.
pub(super) async fn cancel(app: &App, args: &CancelArgs) -> Result<Exit, Failure> {
    let bus = app.connect("cli").await?;
    let run = select::run(&bus, &args.run).await?;
    let state = select::fold(run, &select::entries(&bus, run).await?)?;
    if state.status.is_ended() {
        return Err(
            Failure::usage(format!("run {} has ended already", run.short())).help("`muster show` tells how")
        );
    }
    let command = Command::Cancel { run, reason: args.reason.clone(), id: Some(uuid::Uuid::new_v4()) };
    bus.commands().send(&command, Encoding::default()).await.map_err(bus_failure)?;
    if args.json {
        output::json(&json!({ "run": run, "asked_to_stop": true }))?;
    } else {
        output::line(&format!(
            "asked run {} to stop; `muster show {}` tells how it ended",
            run.short(),
            run.short()
        ))?;
    }
    Ok(Exit::Completed)
}
