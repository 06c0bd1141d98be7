//! `muster explain`: result, evidence, failures, and cost of a run.

use muster_shared::explain::{self, Explanation};
use muster_shared::ids::TaskId;
use muster_shared::plan::unknown_task;
use muster_shared::run::RunState;
use serde_json::{Value, json};

use super::select;
use crate::app::App;
use crate::args::ExplainArgs;
use crate::exit::{Exit, Failure, usage};
use crate::place::run_of;
use crate::{output, render};

/// Explains a run, or one task of it.
pub(super) async fn explain(app: &App, args: &ExplainArgs) -> Result<Exit, Failure> {
    let run = run_of(args.task.as_ref(), &args.run);
    let (run, entries, missing) =
        select::reading(app, async |bus| select::wanted_whole(bus, &run).await).await?;
    let state = select::fold(run, &entries)?;
    let task = args.task.as_ref().map(|task| &task.at);
    check(&state, task)?;
    let short = state.id.short();
    if let Some(missing) = &missing {
        output::note!("the record of run {short} is damaged, so that this may not be all: {missing}");
    }
    let explained = explain::explain(&state, &entries, task);
    let width = output::is_terminal().then(output::columns);
    output::json_or_line(
        args.json,
        || in_json(&explained, missing.as_deref()),
        || render::explain::text(&explained, args.full, width, app.paint()),
    )
}

/// An explanation as `muster explain --json` gives it.
pub(crate) fn in_json(explained: &Explanation, missing: Option<&str>) -> Value {
    let mut shown = json!(explained);
    if let (Some(missing), Value::Object(fields)) = (missing, &mut shown) {
        fields.insert("missing".to_owned(), json!(missing));
    }
    shown
}

/// Whether there is such a task in the run.
pub(crate) fn check(state: &RunState, task: Option<&TaskId>) -> Result<(), Failure> {
    let Some(task) = task.filter(|task| !state.tasks.contains_key(task)) else { return Ok(()) };
    let short = state.id.short();
    match (task.as_leaf(), &state.plan) {
        (Some(index), Some(plan)) if plan.tasks.contains_key(index) => Ok(()),
        (Some(index), Some(plan)) => {
            Err(Failure::usage(unknown_task(plan, index))
                .help(format!("`muster show {short}` lists the tasks")))
        }
        (Some(_), None) => {
            Err(usage!("run {short} has no plan yet")
                .help(format!("`muster show {short}` shows its progress")))
        }
        (None, _) => Err(usage!("nothing in this run is about task {task}")
            .help("`muster show` lists its tasks; phases are called plan, reflect-1-2, refine-1 and write")),
    }
}
