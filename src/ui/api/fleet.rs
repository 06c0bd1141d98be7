//! The processes of the fleet: shown, started, stopped.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::super::reply::{Problem, Reply, json};
use super::super::session::Person;
use super::super::state::Ui;
use super::{By, Said, Shared};
use crate::fleet::wish;

/// Most processes of one role that can be started from the dashboard. More than one machine has work for, and few
/// enough that a slip does not fill it.
const MAX_PROCESSES: u16 = 16;

/// The processes as `muster ps --json` lists them, and what happened to them.
pub(crate) async fn show(State(ui): Shared) -> Reply {
    ui.bus()?;
    let fleet = ui.hub.fleet().await;
    json(&fleet.ok_or_else(|| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the dashboard ends"))?)
}

/// Which processes are to be started or stopped.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scaled {
    role: String,
    #[serde(default = "one")]
    count: u16,
}

const fn one() -> u16 {
    1
}

/// Starts so many processes of a role more.
pub(crate) async fn start(State(ui): Shared, By(by): By, Said(asked): Said<Scaled>) -> Reply {
    scale(&ui, &by, &asked, u16::saturating_add)
}

/// Stops so many processes of a role, the newest first. They hand over what they have in hand.
pub(crate) async fn stop(State(ui): Shared, By(by): By, Said(asked): Said<Scaled>) -> Reply {
    scale(&ui, &by, &asked, u16::saturating_sub)
}

fn scale(ui: &Ui, by: &Person, asked: &Scaled, target: impl Fn(u16, u16) -> u16) -> Reply {
    let Scaled { role, count } = asked;
    if *count == 0 {
        return Err(Problem::bad("this would change nothing").help("give a count of 1 or more"));
    }
    let live = ui.app.fleet.live().ok_or_else(|| {
        Problem::conflict("no fleet is supervised here").help(
            "processes are started where they run: `muster up --scale ROLE=N`, or `muster join` on another machine",
        )
    })?;
    let was = wish::count(&live, role);
    let wanted = target(was, *count);
    let most = MAX_PROCESSES;
    if wanted > was && wanted > most {
        return Err(Problem::conflict(format!(
            "at most {most} processes of a role are started from the dashboard"
        ))
        .help("`muster scale` starts more"));
    }
    let word = BTreeMap::from([(role.clone(), wanted)]);
    wish::leave(&ui.app, &word, by.name.as_str())?;
    tracing::info!(role, was, wanted, by = %by.name, "the fleet is scaled from the dashboard");
    json(&json!({ "role": role, "was": was, "count": wanted }))
}
