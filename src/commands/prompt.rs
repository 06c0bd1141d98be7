//! `muster prompt`: exactly what a model was sent for a step.

use muster_agents::react::declaration::Declarations;
use muster_agents::react::sent::{SentRequest, before, choose, requests};
use muster_bus::Bus;
use muster_shared::ids::{Generation, TaskId};
use muster_shared::run::Entry;
use serde_json::{Value, json};

use super::select;
use crate::app::App;
use crate::args::PromptArgs;
use crate::exit::{Exit, Failure, failed, usage};
use crate::{output, render};

/// Prints a request as it was sent.
pub(super) async fn prompt(app: &App, args: &PromptArgs) -> Result<Exit, Failure> {
    let (entries, declarations) = select::reading(app, async |bus| read(bus, args).await).await?;
    let sent = requests(&entries, &args.task.at, &declarations);
    let at = choose(&sent, args.generation.map(Generation), args.step, args.call);
    let (this, last) = match at.and_then(|at| Some((sent.get(at)?, before(&sent, at)))) {
        Some(found) => found,
        None => return Err(missing(&entries, &sent, args)),
    };
    let task = &args.task.at;
    let in_words = || {
        if args.diff {
            render::prompt::difference(task, this, last, app.paint())
        } else {
            render::prompt::whole(task, this, app.paint())
        }
    };
    output::json_or_line(args.json, || in_json(task, this, last, args.diff), in_words)
}

/// The record of the run, and the tools that the calls of the task refer to.
async fn read(bus: &Bus, args: &PromptArgs) -> Result<(Vec<Entry>, Declarations), Failure> {
    let run = select::run(bus, &args.task.run(&args.run)).await?;
    let entries = select::entries(bus, run).await?;
    let store = bus.store();
    let declarations = Declarations::of(&store, &entries, Some(&args.task.at)).await?;
    Ok((entries, declarations))
}

/// A request as `muster prompt --json` tells it.
pub(crate) fn in_json(task: &TaskId, this: &SentRequest, last: Option<&SentRequest>, diff: bool) -> Value {
    let mut value = json!(this);
    value["task"] = json!(task);
    if diff {
        let change = render::prompt::PromptChange::between(last, this);
        value["since"] = json!(last.map(|last| json!({ "step": last.step, "call": last.call })));
        value["same_messages"] = json!(change.same);
        value["removed"] = json!(change.removed);
        value["messages"] = json!(change.added);
    }
    value
}

/// Why there is nothing to show, and what to do.
fn missing(entries: &[Entry], sent: &[SentRequest], args: &PromptArgs) -> Failure {
    let task = &args.task.at;
    if !sent.is_empty() {
        let mut steps: Vec<String> = sent.iter().map(|sent| sent.step.to_string()).collect();
        steps.dedup();
        let what = args.step.map_or_else(|| "such a request".to_owned(), |step| format!("step {step}"));
        return usage!("the record has no prompt for {what} of task {task}").help(format!(
            "there are requests for steps {}",
            render::figures::one_line(&steps.join(", "), 200)
        ));
    }
    let was_taken = entries.iter().any(|entry| match &entry.event {
        muster_shared::run::RecordEvent::Agent(key, _) => key.task == *task,
        muster_shared::run::RecordEvent::Decided(_) | muster_shared::run::RecordEvent::Offered(_) => false,
    });
    if was_taken {
        failed!("no model was asked for task {task}, or none has answered yet")
            .help("the offline rules need no prompt; `muster trace RUN TASK` shows what was done")
    } else {
        usage!("nothing in this run is about task {task}")
            .help("`muster show` lists its tasks; phases are called plan, reflect-1-2, refine-1 and write")
    }
}
