//! Runs are steered, by the same requests as from the command line and in the name of whoever asks.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::routing::{MethodRouter, post};
use muster_shared::ids::TaskIndex;
use serde::Deserialize;

use super::super::reply::{Problem, Reply, json};
use super::super::session::Person;
use super::super::state::Ui;
use super::{By, Named, Said, Shared, run_of};
use crate::args::{EditArgs, OrderArgs, ResumeArgs, SteerCommand, TaskArgs};
use crate::commands::steer as steering;
use crate::place::Place;

/// How long a run's record is watched for the answer.
pub(super) const WAIT: Duration = Duration::from_secs(10);
/// Longest reason, in bytes.
const LONGEST: usize = 16 * 1024;

/// Why something is asked.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Why {
    reason: String,
}

/// What every request to a run says: which, and why.
pub(super) async fn order(ui: &Ui, person: &Person, run: &str, reason: &str) -> Result<OrderArgs, Problem> {
    if reason.len() > LONGEST {
        return Err(Problem::bad(format!("a reason has at most {LONGEST} bytes")));
    }
    let run = run_of(ui, run).await?.to_string();
    Ok(OrderArgs { run, reason: ui.reason(person, reason), by: person.author(), wait: WAIT, json: true })
}

/// Has it done, and tells what came of it.
pub(super) async fn perform(ui: &Ui, person: &Person, command: &SteerCommand) -> Reply {
    let bus = ui.bus_for(person)?;
    let answered = Box::pin(steering::answered(&ui.app, &bus, command)).await?;
    json(&answered.in_json())
}

/// Where a run is asked for what takes nothing but a reason.
pub(super) fn of_run(command: fn(OrderArgs) -> SteerCommand) -> MethodRouter<Arc<Ui>> {
    post(move |State(ui): Shared, By(by): By, Named(run): Named<String>, Said(why): Said<Why>| async move {
        let order = order(&ui, &by, &run, &why.reason).await?;
        perform(&ui, &by, &command(order)).await
    })
}

/// Where a task is asked for what takes nothing but a reason.
pub(super) fn of_task(command: fn(TaskArgs) -> SteerCommand) -> MethodRouter<Arc<Ui>> {
    post(
        move |State(ui): Shared,
              By(by): By,
              Named((run, task)): Named<(String, String)>,
              Said(why): Said<Why>| async move {
            let task = place(&task)?;
            let order = order(&ui, &by, &run, &why.reason).await?;
            perform(&ui, &by, &command(TaskArgs { order, task })).await
        },
    )
}

/// Lets a run go on, for as long as it had left.
pub(super) fn resumed(order: OrderArgs) -> SteerCommand {
    SteerCommand::Resume(ResumeArgs { order, deadline: None })
}

fn place(task: &str) -> Result<Place<TaskIndex>, Problem> {
    task.parse().map_err(|error: String| Problem::bad(format!("{task:?} is no task: {error}")))
}

/// Another goal for a run, or for a task of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    task: Option<String>,
    goal: String,
    #[serde(default)]
    reason: String,
}

/// Edits a goal, as `muster edit` does.
pub(crate) async fn edit(
    State(ui): Shared,
    By(by): By,
    Named(run): Named<String>,
    Said(asked): Said<Edit>,
) -> Reply {
    if asked.goal.trim().is_empty() {
        return Err(Problem::bad("there is no goal").help("say what is to be done instead"));
    }
    let task = asked.task.as_deref().map(place).transpose()?;
    let order = order(&ui, &by, &run, &asked.reason).await?;
    let args = EditArgs { order, task, goal: Some(asked.goal), editor: false };
    perform(&ui, &by, &SteerCommand::Edit(args)).await
}
