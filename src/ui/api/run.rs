//! One run: as it stands, or stood at an entry; its entries, its spans, why it came out so.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use muster_bus::{Bus, Unreadable};
use muster_orchestrator::decide::{AgentsByRole, WaitsFor, waits_for_within};
use muster_shared::explain;
use muster_shared::ids::{RunId, Seq, TaskId};
use muster_shared::plan::progress::Detail;
use muster_shared::plan::summary;
use muster_shared::run::unguarded::Unguarded;
use muster_shared::run::{Entry, RunState};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::records::KeptRecord;
use super::super::reply::{Problem, Reply, json};
use super::super::state::Ui;
use super::super::timeline as spans;
use super::{After, Named, Shared, apart, record_of};
use crate::args::ShowArgs;
use crate::commands::show::ShownRun;
use crate::commands::{
    explain as explaining, replay as replaying, runs, select, show as showing, trace, within,
};
use crate::exit::Failure;
use crate::render::trace::{entry_json, stray_json};

/// How many entries are given where nothing is said, and at most.
const USUAL: usize = 1_000;
const MOST: usize = 20_000;

/// At which entry a run is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct At {
    at: Option<u64>,
}

/// A run as `muster show --json --full` shows it, or as it stood when an entry had been folded.
pub(crate) async fn show(State(ui): Shared, Named(run): Named<String>, After(At { at }): After<At>) -> Reply {
    let bus = ui.bus()?;
    let (run, record) = record_of(&ui, &run).await?;
    let record = record.followed()?;
    let agents: AgentsByRole = match at {
        // What waits for whom is told of now.
        Some(_) => AgentsByRole::default(),
        None => bus.registry().list().await?.iter().collect(),
    };
    let state = {
        let record = Arc::clone(&record);
        apart(move || folded(run, &record, at)).await?
    };
    let children = within_of(&ui, &bus, &state, at).await?;
    let told = apart(move || {
        let seq = at.map_or_else(|| record.entries.last().map_or(Seq(0), |entry| entry.seq), Seq);
        let entries = upto(&record.entries, at).len();
        let unguarded = Unguarded::of(upto(&record.entries, at));
        let missing = record.missing.clone().filter(|_| at.is_none());
        let shown = ShownRun::new(&state, &children, missing, unguarded);
        let child = |run: RunId| shown.children.iter().find(|child| child.id == run);
        let waits = if at.is_none() { waits_for_within(&shown.state, &agents, &child) } else { Vec::new() };
        Ok(in_full(&shown, &waits, seq, entries))
    })
    .await?;
    json(&told)
}

fn in_full(shown: &ShownRun, waits: &[WaitsFor], seq: Seq, entries: usize) -> Value {
    let args = ShowArgs {
        run: shown.state.id.to_string(),
        task: None,
        reflection: false,
        refinements: false,
        json: true,
        full: true,
    };
    let mut told = showing::told(shown, waits, &args);
    told["seq"] = json!(seq);
    told["entries"] = json!(entries);
    told
}

/// The entries up to one, or all.
fn upto(entries: &[Entry], at: Option<u64>) -> &[Entry] {
    let end = at.map_or(entries.len(), |at| entries.partition_point(|entry| entry.seq.0 <= at));
    entries.get(..end).unwrap_or(entries)
}

fn folded(run: RunId, record: &KeptRecord, at: Option<u64>) -> Result<RunState, Failure> {
    let entries = upto(&record.entries, at);
    if let (true, Some(first)) = (entries.is_empty(), record.entries.first()) {
        let short = run.short();
        return Err(Failure::usage(format!("run {short} has no entry up to {}", at.unwrap_or(0)))
            .help(format!("its first entry is {}", first.seq)));
    }
    select::fold(run, entries)
}

/// The runs within a run, as they stand or stood; each before those within it.
async fn within_of(ui: &Ui, bus: &Bus, state: &RunState, at: Option<u64>) -> Result<Vec<RunState>, Problem> {
    let (mut found, mut open) = (Vec::new(), within::first(state));
    while let Some(run) = open.pop() {
        let record = ui.records.of(bus, run).await?;
        if upto(&record.entries, at).is_empty() || found.len() >= within::MOST {
            continue;
        }
        let child = apart(move || folded(run, &record, at)).await?;
        open.extend(within::first(&child));
        found.push(child);
    }
    Ok(found)
}

/// Which entries are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FromEntry {
    from: u64,
    limit: Option<usize>,
}

/// A line of a record.
enum Line {
    Entry(Arc<Vec<Entry>>, usize),
    Stray(Box<Unreadable>),
}

/// The entries of a run and of those within it, as `muster trace --json` prints them: from one on, so many.
pub(crate) async fn entries(
    State(ui): Shared,
    Named(run): Named<String>,
    After(FromEntry { from, limit }): After<FromEntry>,
) -> Reply {
    let limit = limit.unwrap_or(USUAL).min(MOST);
    let bus = ui.bus()?;
    let mut next = Some(record_of(&ui, &run).await?);
    let mut lines: BTreeMap<(Seq, RunId), Line> = BTreeMap::new();
    let (mut open, mut looked_at) = (Vec::new(), 0);
    while let Some((run, record)) = next {
        looked_at += 1;
        if looked_at <= trace::MOST_WITHIN {
            open.extend(record.entries.iter().flat_map(trace::begun).map(|(_, child)| child));
        }
        let first = record.entries.partition_point(|entry| entry.seq.0 < from);
        let of_run = (first..record.entries.len()).take(limit);
        lines.extend(
            of_run.map(|n| ((record.entries[n].seq, run), Line::Entry(Arc::clone(&record.entries), n))),
        );
        let strays = record.strays.iter().filter(|stray| stray.seq.0 >= from);
        lines.extend(strays.map(|stray| ((stray.seq, run), Line::Stray(Box::new(stray.clone())))));
        next = match open.pop() {
            Some(run) => Some((run, ui.records.of(&bus, run).await?)),
            None => None,
        };
    }
    let told = apart(move || {
        let shown = lines.into_values().take(limit).map(|line| match line {
            Line::Entry(entries, n) => entry_json(&entries[n]),
            Line::Stray(stray) => stray_json(&stray),
        });
        Ok(shown.collect::<Vec<Value>>())
    })
    .await?;
    json(&told)
}

/// When what was done.
pub(crate) async fn timeline(State(ui): Shared, Named(run): Named<String>) -> Reply {
    let (_, record) = record_of(&ui, &run).await?;
    let drawn = apart(move || Ok(spans::timeline(&record.entries))).await?;
    json(&drawn)
}

/// The plan as nodes.
pub(crate) async fn graph(
    State(ui): Shared,
    Named(run): Named<String>,
    After(At { at }): After<At>,
) -> Reply {
    let (run, record) = record_of(&ui, &run).await?;
    let record = record.followed()?;
    let nodes = apart(move || {
        let state = folded(run, &record, at)?.as_seen().into_owned();
        let all = summary::all(&state, Detail::Seen);
        let tasks = state.plan.iter().flat_map(|plan| &plan.tasks);
        let node = |(index, task): (&muster_shared::ids::TaskIndex, &muster_shared::flow::PlanTask)| {
            let status = state.planned(index).map(|task| task.status);
            json!({
                "task": index, "title": task.name, "goal": task.goal, "role": task.role, "status": status,
                "depends_on": task.depends_on, "parent": index.parent(),
            })
        };
        Ok(json!({ "nodes": tasks.map(node).collect::<Vec<Value>>(), "summaries": all }))
    })
    .await?;
    json(&nodes)
}

/// Explained task; the whole run if empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Explained {
    task: String,
}

/// Explanation of a run, as `muster explain --json` prints it.
pub(crate) async fn explain(
    State(ui): Shared,
    Named(run): Named<String>,
    After(wanted): After<Explained>,
) -> Reply {
    let task: Option<TaskId> = match wanted.task.as_str() {
        "" => None,
        text => Some(text.parse().map_err(|error| Problem::bad(format!("{text:?} is no task: {error}")))?),
    };
    let (run, record) = record_of(&ui, &run).await?;
    let record = record.followed()?;
    let told = apart(move || {
        let state = select::fold(run, &record.entries)?;
        explaining::check(&state, task.as_ref())?;
        let explained = explain::explain(&state, &record.entries, task.as_ref());
        Ok(explaining::in_json(&explained, record.missing.as_deref()))
    })
    .await?;
    json(&told)
}

/// Two runs side by side.
pub(crate) async fn compare(State(ui): Shared, Named((one, other)): Named<(String, String)>) -> Reply {
    let mut sides = Vec::new();
    for named in [one, other] {
        let (run, record) = record_of(&ui, &named).await?;
        let record = record.followed()?;
        sides.push(apart(move || side(run, &record)).await?);
    }
    let b = sides.pop();
    json(&json!({ "a": sides.pop(), "b": b }))
}

fn side(run: RunId, record: &KeptRecord) -> Result<Value, Failure> {
    let state = select::fold(run, &record.entries)?;
    let explained = explain::explain(&state, &record.entries, None);
    let mut side = runs::brief(&state);
    side["cost"] = json!(explained.cost);
    side["summaries"] = json!(summary::all(&state, Detail::Seen));
    side["report"] = json!(state.report.as_ref().map(|report| &report.title));
    side["entries"] = json!(record.entries.len());
    Ok(side)
}

/// Makes every decision of a run again and compares it, as `muster replay --json` does.
pub(crate) async fn replay(State(ui): Shared, Named(run): Named<String>) -> Reply {
    let (run, record) = record_of(&ui, &run).await?;
    let record = record.followed()?;
    let told = apart(move || {
        Ok(match &record.missing {
            Some(missing) => replaying::not_whole(run, missing),
            // The same or not: both are told in the same way.
            None => replaying::compare(run, &record.entries).unwrap_or_else(|difference| difference),
        })
    })
    .await?;
    json(&told)
}
