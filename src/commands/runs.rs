//! `muster runs`: all runs, newest first.

use serde_json::{Value, json};

use super::select;
use crate::app::{App, bus_failure, now};
use crate::args::RunsArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::supervisor::Reading;
use crate::{output, render};
use muster_bus::{Bus, BusError, RecordFilter};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::RunState;

/// Prints the newest runs.
pub(super) async fn runs(app: &App, args: &RunsArgs) -> Result<Exit, Failure> {
    let reading = Reading::open(app).await?;
    let found = newest(&reading.bus, args.limit).await;
    reading.close().await;
    let runs = found?;
    if args.json {
        output::json(&runs.iter().map(brief).collect::<Vec<Value>>())?;
    } else {
        output::line(&render::runs::table(&runs, now()))?;
    }
    Ok(Exit::Completed)
}

/// The newest runs that can be followed.
pub(super) async fn newest(bus: &Bus, limit: usize) -> Result<Vec<RunState>, Failure> {
    let mut runs = Vec::new();
    for run in bus.record().runs().await.map_err(bus_failure)?.into_iter().take(limit) {
        match bus.record().read(&RecordFilter::Run(run), Seq(0)).await {
            Ok(entries) => match select::fold(run, &entries) {
                Ok(state) => runs.push(state),
                Err(failure) => pass_over(run, &failure.to_string()),
            },
            Err(unreadable @ BusError::Unreadable { .. }) => pass_over(run, &unreadable.to_string()),
            Err(error) => return Err(bus_failure(error)),
        }
    }
    Ok(runs)
}

/// One record that cannot be followed must not hide the others.
fn pass_over(run: RunId, why: &str) {
    output::note(&format!("run {} is left out: {why}", run.short()));
}

fn brief(state: &RunState) -> Value {
    json!({
        "run": state.id, "status": state.status, "goal": state.goal.text, "created_at": state.created_at,
        "ended_at": state.ended_at, "paused": state.paused, "parent": state.goal.parent, "usage": state.usage, "reason": state.reason,
    })
}
