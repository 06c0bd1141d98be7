//! One step: what was thought, done and seen, and exactly what the model was sent for it.

use axum::extract::State;
use muster_agents::react::declaration::Declarations;
use muster_agents::react::sent::{before, choose, requests};
use muster_shared::flow::Step;
use muster_shared::ids::{Generation, TaskId};
use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::reply::{Problem, Reply, json};
use super::{After, Named, Shared, apart, record_of};
use crate::commands::prompt;

/// Which call of the step is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Call {
    call: Option<usize>,
}

/// A step of a task, with its prompt.
pub(crate) async fn show(
    State(ui): Shared,
    Named((run, task, generation, number)): Named<(String, String, u32, u32)>,
    After(Call { call }): After<Call>,
) -> Reply {
    let task: TaskId = task.parse().map_err(|error| Problem::bad(format!("{task:?} is no task: {error}")))?;
    let bus = ui.bus()?;
    let (run, record) = record_of(&ui, &run).await?;
    let declarations = Declarations::of(&bus.store(), &record.entries, Some(&task)).await?;
    let told = apart(move || {
        let sent = requests(&record.entries, &task, &declarations);
        let generation = Generation(generation);
        let at = choose(&sent, Some(generation), Some(number), call);
        let prompt = at.and_then(|at| Some((sent.get(at)?, before(&sent, at))));
        let found = find(&record.entries, &task, generation, number);
        if found.is_none() && prompt.is_none() {
            return Ok(None);
        }
        let mut told = json!({ "run": run, "task": task, "generation": generation, "number": number });
        if let Some((entry, step, by)) = found {
            told["seq"] = json!(entry.seq);
            told["at"] = json!(entry.at);
            told["by"] = by;
            told["step"] = json!(step);
        }
        if let Some((this, last)) = prompt {
            told["prompt"] = prompt::in_json(&task, this, last, false);
            told["new"] = prompt::in_json(&task, this, last, true);
        }
        Ok(Some(told))
    })
    .await?;
    let told = told.ok_or_else(|| {
        Problem::not_found("the record has no such step")
            .help("the entries of the run have the steps there are")
    })?;
    json(&told)
}

/// The step as it stands in the record; of a task that ended with it, within the outcome.
fn find<'a>(
    entries: &'a [Entry],
    task: &TaskId,
    generation: Generation,
    number: u32,
) -> Option<(&'a Entry, &'a Step, Value)> {
    entries.iter().rev().find_map(|entry| {
        let RecordEvent::Agent(key, event) = &entry.event else { return None };
        if key.task != *task || key.generation != generation {
            return None;
        }
        let step = match event {
            AgentEvent::Step(step) => Some(step),
            AgentEvent::ToolStarted(begun) => Some(&begun.step),
            AgentEvent::Outcome(outcome) => outcome.last_step.as_deref(),
            _ => None,
        };
        step.filter(|step| step.number == number).map(|step| (entry, step, json!(key.agent)))
    })
}
