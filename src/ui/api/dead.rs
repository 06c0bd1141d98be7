//! Dead letters.

use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::reply::{Problem, Reply, json};
use super::{After, By, Named, Said, Shared};
use crate::commands::dead::{self as letters, Retried};
use crate::render;

/// How many are listed where nothing is said, and at most.
const USUAL: usize = 100;
const MOST: usize = 1_000;

/// How many are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    limit: Option<usize>,
}

/// The newest, as `muster dead list --json` lists them.
pub(crate) async fn list(State(ui): Shared, After(Wanted { limit }): After<Wanted>) -> Reply {
    let listed = ui.bus()?.dead().list(limit.unwrap_or(USUAL).min(MOST)).await?;
    json(&listed.iter().map(render::dead::json).collect::<Vec<Value>>())
}

/// Consent to a retry.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Consent {
    /// True if the person has seen the letter and agrees.
    confirmed: bool,
}

/// Retries a letter that the person has seen.
pub(crate) async fn retry(
    State(ui): Shared,
    By(by): By,
    Named(seq): Named<u64>,
    Said(consent): Said<Consent>,
) -> Reply {
    if !consent.confirmed {
        return Err(Problem::bad(format!("dead letter {seq} was not retried: it was not confirmed"))
            .help("send {\"confirmed\": true}"));
    }
    // No person may write there on the bus: the dashboard does it for those who may do it here.
    let (owner, own) = (ui.bus()?, ui.bus_for(&by)?);
    tracing::info!(seq, by = %by.name, "a dead letter is tried again from the dashboard");
    match Box::pin(letters::retried(&ui.app, &owner, &own, seq)).await? {
        Retried::Sent => json(&json!({ "seq": seq, "done": "retried" })),
        Retried::Offered(answered) => json(&answered.in_json()),
    }
}

/// Throws one away.
pub(crate) async fn discard(State(ui): Shared, By(by): By, Named(seq): Named<u64>) -> Reply {
    letters::dropped(&*ui.bus()?, seq).await?;
    tracing::info!(seq, by = %by.name, "a dead letter was dropped from the dashboard");
    json(&json!({ "seq": seq, "done": "dropped" }))
}
