//! How calls of tools went, and what runs taught.

use axum::extract::State;
use muster_bus::Bus;
use muster_shared::flow::RunLessons;
use muster_shared::ids::RunId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::reply::{Problem, Reply, json};
use super::{After, By, Named, Shared, run_of};
use crate::args::ToolsStatsArgs;
use crate::commands::tools::stats as counting;

/// How many runs, newest first, are counted where nothing is said, as `muster tools stats` does; and at most.
const USUAL: usize = 20;
const MOST: usize = 500;

/// Of which runs calls are counted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    run: Option<String>,
    limit: Option<usize>,
}

/// How calls of tools went, as `muster tools stats --json` tells it.
pub(crate) async fn stats(State(ui): Shared, After(Wanted { run, limit }): After<Wanted>) -> Reply {
    let run = match run.filter(|named| !named.is_empty()) {
        Some(named) => Some(run_of(&ui, &named).await?.to_string()),
        None => None,
    };
    let args = ToolsStatsArgs { run, limit: limit.unwrap_or(USUAL).min(MOST), json: true };
    json(&counting::told(&*ui.bus()?, &args).await?)
}

/// What is looked for in lessons.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LookedFor {
    q: String,
}

/// The lessons that are kept, those of the newest run first.
pub(crate) async fn lessons(State(ui): Shared, After(LookedFor { q }): After<LookedFor>) -> Reply {
    let mut all = ui.bus()?.lessons().all().await?;
    all.sort_by_key(|one| std::cmp::Reverse(one.run));
    let wanted = q.to_lowercase();
    let has = |lessons: &&RunLessons| {
        let texts = std::iter::once(&lessons.goal).chain(&lessons.lessons);
        wanted.is_empty() || texts.into_iter().any(|text| text.to_lowercase().contains(&wanted))
    };
    json(&all.iter().filter(has).map(|lessons| json!(lessons)).collect::<Vec<Value>>())
}

/// Has the lessons of a run forgotten. Its record may be gone already.
pub(crate) async fn forget(State(ui): Shared, By(by): By, Named(run): Named<String>) -> Reply {
    let run: RunId = match run.parse() {
        Ok(run) => run,
        Err(_) => run_of(&ui, &run).await?,
    };
    // No person may write there on the bus: the dashboard does it for those who may do it here.
    let bus: &Bus = &*ui.bus()?;
    if !bus.lessons().forget(run).await? {
        return Err(Problem::not_found(format!("no lessons of run {} are kept", run.short())));
    }
    tracing::info!(%run, by = %by.name, "the lessons of a run were forgotten from the dashboard");
    json(&json!({ "run": run, "done": "forgotten" }))
}
