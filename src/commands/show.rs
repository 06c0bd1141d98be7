//! `muster show`: one run in full, or a part of it.

use std::collections::BTreeMap;

use muster_orchestrator::decide::{AgentsByRole, WaitsFor, waits_for_within};
use muster_shared::ids::{RunId, TaskId};
use muster_shared::plan::progress::Detail;
use muster_shared::plan::summary;
use muster_shared::run::unguarded::Unguarded;
use muster_shared::run::{RunState, count, note_waiting, shortfalls};
use serde_json::{Value, json};

use super::{explain, keep, runs, select, within};
use crate::app::{App, now};
use crate::args::ShowArgs;
use crate::exit::{Exit, Failure};
use crate::fleet::supervisor::ReadAccess;
use crate::place::run_of;
use crate::{output, render};

/// Prints a run, or what of it is asked for.
pub(super) async fn show(app: &App, args: &ShowArgs) -> Result<Exit, Failure> {
    let reading = ReadAccess::open(app).await?;
    let run = run_of(args.task.as_ref(), &args.run);
    let found = match gone(&reading, &run).await {
        Ok(None) => read(&reading, &run).await,
        Ok(Some(gone)) => {
            reading.close().await;
            return keep::shown(&gone, args);
        }
        Err(failure) => Err(failure),
    };
    let agents = agents(&reading).await;
    reading.close().await;
    let shown = found?;
    let ShownRun { state, children, missing, unguarded } = &shown;
    let child = |run: RunId| children.iter().find(|child| child.id == run);
    let task = args.task.as_ref().map(|task| TaskId::Leaf(task.at.clone()));
    explain::check(state, task.as_ref())?;
    let waits = agents.as_ref().map(|agents| waits_for_within(state, agents, &child)).unwrap_or_default();
    if let Some(missing) = missing {
        let short = state.id.short();
        output::note!("the record of run {short} is damaged, so that this may not be all: {missing}");
    }
    if args.json {
        output::json(&told(&shown, &waits, args))?;
    } else {
        output::line(&in_words(app, state, children, args))?;
        let is_whole = args.task.is_none() && !args.reflection && !args.refinements;
        let inner = render::run::within(state, children, now(), app.paint());
        if is_whole && !inner.is_empty() {
            output::line!("\n{inner}")?;
        }
        for line in unguarded.in_words().filter(|_| is_whole) {
            output::line!("not all was done: {line}")?;
        }
        if let Some(request) = state.guarding.edit().filter(|_| is_whole) {
            output::line!(
                "guards are asked about a change of the plan by {}",
                render::figures::one_line(&request.by, 60)
            )?;
        }
        if is_whole && !state.status.is_ended() {
            match &agents {
                Some(_) => {
                    for waits in waits {
                        output::line!("waits for {waits}")?;
                    }
                }
                None => output::line(
                    "waits for a fleet: `muster up` brings one up, and the run goes on where it stands",
                )?,
            }
        }
    }
    Ok(Exit::Completed)
}

/// A run, the runs within it, and what is missing from its record.
pub(crate) struct ShownRun {
    /// The run.
    pub(crate) state: RunState,
    /// The runs within it.
    pub(crate) children: Vec<RunState>,
    /// What its record lacks, in words.
    pub(crate) missing: Option<String>,
    /// What was refused for want of a guard's verdict.
    pub(crate) unguarded: Unguarded,
}

impl ShownRun {
    /// The run and its child runs as people see them.
    pub(crate) fn new(
        state: &RunState,
        children: &[RunState],
        missing: Option<String>,
        unguarded: Unguarded,
    ) -> Self {
        let mut state = state.as_seen().into_owned();
        let mut children: Vec<RunState> = children.iter().map(|run| run.as_seen().into_owned()).collect();
        note_waiting(&mut std::iter::once(&mut state).chain(&mut children).collect::<Vec<_>>());
        Self { state, children, missing, unguarded }
    }
}

/// A run as `muster show --json` tells it: what was asked for of it, and with `full` all of that.
pub(crate) fn told(shown: &ShownRun, waits: &[WaitsFor], args: &ShowArgs) -> Value {
    let ShownRun { state, children, missing, unguarded } = shown;
    let mut told = in_json(state, children, waits, args);
    if !args.full {
        in_brief(&mut told);
    }
    if let (Some(missing), Value::Object(fields)) = (missing, &mut told) {
        fields.insert("missing".to_owned(), json!(missing));
    }
    if let (false, Value::Object(fields)) = (unguarded.is_empty(), &mut told) {
        fields.insert("complete".to_owned(), json!(false));
        fields.insert("refused_without_verdict".to_owned(), json!(unguarded));
    }
    told
}

/// What is left of the run, where its record was removed.
async fn gone(reading: &ReadAccess, wanted: &str) -> Result<Option<keep::Gone>, Failure> {
    keep::removed(&reading.bus, select::any(&reading.bus, wanted).await?).await
}

async fn read(reading: &ReadAccess, wanted: &str) -> Result<ShownRun, Failure> {
    let run = select::run(&reading.bus, wanted).await?;
    let (entries, missing) = select::whole(&reading.bus, run).await?;
    let state = select::fold(run, &entries)?;
    let children = within::all(&reading.bus, &state).await?;
    let unguarded = Unguarded::of(&entries);
    Ok(ShownRun::new(&state, &children, missing, unguarded))
}

/// Who is there; nothing where no fleet is up.
async fn agents(reading: &ReadAccess) -> Option<AgentsByRole> {
    if reading.is_served_here() {
        return None;
    }
    reading.bus.registry().list().await.ok().map(|profiles| profiles.iter().collect())
}

fn in_words(app: &App, state: &RunState, children: &[RunState], args: &ShowArgs) -> String {
    let width = output::is_terminal().then(output::columns);
    let (paint, task) = (app.paint(), args.task.as_ref().map(|task| &task.at));
    let none = |what: &str| match task {
        Some(index) => format!("no {what} of {index} so far"),
        None => format!("no {what} so far"),
    };
    if args.reflection {
        let shown = render::run::reflections_of(state, task).unwrap_or_else(|| none("reflection"));
        return render::figures::fitted(shown, width);
    }
    if args.refinements {
        let shown = render::run::refinements_of(state).unwrap_or_else(|| none("change of plan"));
        return render::figures::fitted(shown, width);
    }
    match task {
        Some(index) => render::run::task(state, index, width, paint).unwrap_or_default(),
        None => render::run::show(state, children, now(), width, paint),
    }
}

/// What only whoever looks into the works wants to see: how the orchestrator keeps its books.
const BOOKKEEPING: [&str; 6] = ["requests", "allotted", "batch", "decided", "decided_at", "tallies"];

/// Takes out what makes the whole large: last steps with all that models were sent, and products that stand elsewhere
/// (the plan, reflections, the report). `--full` shows it.
fn in_brief(shown: &mut Value) {
    if let Some(whole) = shown.as_object_mut().filter(|whole| whole.contains_key("tasks")) {
        for name in BOOKKEEPING {
            whole.remove(name);
        }
        if let Some(goal) = whole.get_mut("goal").and_then(Value::as_object_mut) {
            goal.remove("blueprints");
        }
        for (_, task) in whole.get_mut("tasks").and_then(Value::as_object_mut).into_iter().flatten() {
            brief_task(task);
        }
    }
    if let Some(task) = shown.get_mut("state") {
        brief_task(task);
    }
}

fn brief_task(task: &mut Value) {
    let Some(outcome) = task.get_mut("outcome").and_then(Value::as_object_mut) else { return };
    outcome.remove("last_step");
    if outcome.get("product").is_some_and(|product| product.get("result").is_none()) {
        outcome.remove("product");
    }
}

fn in_json(state: &RunState, children: &[RunState], waits: &[WaitsFor], args: &ShowArgs) -> Value {
    if args.refinements {
        let refinements = state.refining.wanted.iter().map(|(wanted, reasons)| {
            let done = state.refinement(*wanted);
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
        (Some(index), true) => json!(state.reflection(index)),
        (None, true) => json!(state.reflections().collect::<BTreeMap<_, _>>()),
        (None, false) => {
            let mut whole = render::json::run(state);
            whole["state"] = json!(render::runs::word(state));
            whole["waits_for"] = json!(waits);
            whole["summaries"] = json!(summary::all(state, Detail::Seen));
            whole["complete"] = json!(runs::is_complete(state));
            whole["count"] = json!(count(state));
            let used = render::run::usage(state, children);
            whole["usage_own"] = json!(used.own);
            whole["usage_with_children"] = json!(used.with_children);
            whole["missing"] = json!(shortfalls(state));
            whole
        }
        (Some(index), false) => json!({
            "index": index,
            "task": state.plan.as_ref().and_then(|plan| plan.tasks.get(index)),
            "state": state.planned(index).map(render::json::task),
            "reflection": state.reflection(index),
            "summary": summary::of(state, index, Detail::Seen),
        }),
    }
}
