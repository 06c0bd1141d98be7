//! `muster show`: one run in full, or a part of it.

use muster_shared::ids::RunId;
use muster_shared::plan::unknown_task;
use muster_shared::run::RunState;
use serde_json::{Value, json};

use super::select;
use crate::app::{App, now};
use crate::args::ShowArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::supervisor::Reading;
use crate::{output, render};

/// Most runs within a run that are shown.
const MOST_WITHIN: usize = 100;

/// Prints a run, or what of it is asked for.
pub(super) async fn show(app: &App, args: &ShowArgs) -> Result<Exit, Failure> {
    let reading = Reading::open(app).await?;
    let found = read(&reading, &args.run).await;
    reading.close().await;
    let (state, children) = found?;
    check(&state, args)?;
    if args.json {
        output::json(&in_json(&state, args))?;
    } else {
        output::line(&in_words(app, &state, args))?;
        let is_whole = args.task.is_none() && !args.reflection && !args.refinements;
        let within = render::run::within(&children, now(), app.paint());
        if is_whole && !within.is_empty() {
            output::line(&format!("\n{within}"))?;
        }
    }
    Ok(Exit::Completed)
}

/// The run, and the runs within it.
async fn read(reading: &Reading, wanted: &str) -> Result<(RunState, Vec<RunState>), Failure> {
    let run = select::run(&reading.bus, wanted).await?;
    let state = select::fold(run, &select::entries(&reading.bus, run).await?)?;
    let children = within(reading, &state).await?;
    Ok((state, children))
}

/// The runs within a run, each before those within it. One that has no record yet is left out.
async fn within(reading: &Reading, state: &RunState) -> Result<Vec<RunState>, Failure> {
    let (mut found, mut open) = (Vec::new(), first(state));
    while let Some(run) = open.pop() {
        let entries = select::entries(&reading.bus, run).await?;
        if entries.is_empty() || found.len() >= MOST_WITHIN {
            continue;
        }
        let child = select::fold(run, &entries)?;
        open.extend(first(&child));
        found.push(child);
    }
    Ok(found)
}

/// The children of a run, the first at the end.
fn first(state: &RunState) -> Vec<RunId> {
    let mut children: Vec<(u64, RunId)> =
        state.children.iter().map(|(run, child)| (child.asked_at.0, *run)).collect();
    children.sort_by(|one, other| other.cmp(one));
    children.into_iter().map(|(_, run)| run).collect()
}

fn check(state: &RunState, args: &ShowArgs) -> Result<(), Failure> {
    let Some(index) = &args.task else { return Ok(()) };
    let short = state.id.short();
    match &state.plan {
        None => Err(Failure::usage(format!("run {short} has no plan yet"))
            .help(format!("`muster show {short}` tells how far it is"))),
        Some(plan) if !plan.tasks.contains_key(index) => {
            Err(Failure::usage(unknown_task(plan, index))
                .help(format!("`muster show {short}` lists the tasks")))
        }
        Some(_) => Ok(()),
    }
}

fn in_words(app: &App, state: &RunState, args: &ShowArgs) -> String {
    let width = output::is_terminal().then(|| usize::from(termimad::terminal_size().0).clamp(20, 400));
    let (paint, task) = (app.paint(), args.task.as_ref());
    let none = |what: &str| match task {
        Some(index) => format!("no {what} of {index} so far"),
        None => format!("no {what} so far"),
    };
    if args.reflection {
        let shown = render::run::reflections_of(state, task).unwrap_or_else(|| none("reflection"));
        return width.map_or(shown.clone(), |width| render::figures::wrap(&shown, width));
    }
    if args.refinements {
        let shown = render::run::refinements_of(state).unwrap_or_else(|| none("change of plan"));
        return width.map_or(shown.clone(), |width| render::figures::wrap(&shown, width));
    }
    match task {
        Some(index) => render::run::task(state, index, width, paint).unwrap_or_default(),
        None => render::run::show(state, now(), width, paint),
    }
}

fn in_json(state: &RunState, args: &ShowArgs) -> Value {
    if args.refinements {
        let refinements = state.wanted.iter().map(|(wanted, reasons)| {
            let done = render::run::refinement_of(state, *wanted);
            json!({
                "number": wanted,
                "wanted": reasons,
                "changes": done.map(|(changes, _)| changes),
                "refused": done.map(|(_, refused)| refused),
            })
        });
        return Value::Array(refinements.collect());
    }
    match (&args.task, args.reflection) {
        (Some(index), true) => json!(state.reflections.get(index)),
        (None, true) => json!(state.reflections),
        (None, false) => json!(state),
        (Some(index), false) => json!({
            "index": index,
            "task": state.plan.as_ref().and_then(|plan| plan.tasks.get(index)),
            "state": state.planned(index),
            "reflection": state.reflections.get(index),
            "stale": state.stale.get(index),
        }),
    }
}
