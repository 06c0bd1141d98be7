//! `muster show`: one run in full, or a part of it.

use muster_shared::plan::progress::Detail;
use muster_shared::plan::{summary, unknown_task};
use muster_shared::run::RunState;
use serde_json::{Value, json};

use super::{select, within};
use crate::app::{App, now};
use crate::args::ShowArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::supervisor::Reading;
use crate::{output, render};

/// Prints a run, or what of it is asked for.
pub(super) async fn show(app: &App, args: &ShowArgs) -> Result<Exit, Failure> {
    let reading = Reading::open(app).await?;
    let run = args.task.as_ref().map_or_else(|| args.run.clone(), |task| task.run(&args.run));
    let found = read(&reading, &run).await;
    reading.close().await;
    let (state, children) = found?;
    check(&state, args)?;
    if args.json {
        output::json(&in_json(&state, args))?;
    } else {
        output::line(&in_words(app, &state, args))?;
        let is_whole = args.task.is_none() && !args.reflection && !args.refinements;
        let inner = render::run::within(&state, &children, now(), app.paint());
        if is_whole && !inner.is_empty() {
            output::line(&format!("\n{inner}"))?;
        }
    }
    Ok(Exit::Completed)
}

/// The run, and the runs within it.
async fn read(reading: &Reading, wanted: &str) -> Result<(RunState, Vec<RunState>), Failure> {
    let run = select::run(&reading.bus, wanted).await?;
    let state = select::fold(run, &select::entries(&reading.bus, run).await?)?;
    let children = within::all(&reading.bus, &state).await?;
    Ok((state, children))
}

fn check(state: &RunState, args: &ShowArgs) -> Result<(), Failure> {
    let Some(index) = args.task.as_ref().map(|task| &task.at) else { return Ok(()) };
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
    let (paint, task) = (app.paint(), args.task.as_ref().map(|task| &task.at));
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
    match (args.task.as_ref().map(|task| &task.at), args.reflection) {
        (Some(index), true) => json!(state.reflections.get(index)),
        (None, true) => json!(state.reflections),
        (None, false) => {
            let mut whole = json!(state);
            whole["summaries"] = json!(summary::all(state, Detail::Seen));
            whole
        }
        (Some(index), false) => json!({
            "index": index,
            "task": state.plan.as_ref().and_then(|plan| plan.tasks.get(index)),
            "state": state.planned(index),
            "reflection": state.reflections.get(index),
            "stale": state.stale.get(index),
            "summary": summary::of(state, index, Detail::Seen),
        }),
    }
}
