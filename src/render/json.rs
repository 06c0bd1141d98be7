//! A run as programs are shown it. How its state is grouped is a matter of this build; the fields that programs read
//! stand side by side and keep their names.

use std::collections::BTreeMap;

use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::run::{InheritedPlanning, RunState, TaskState};
use serde_json::{Map, Value, json};

/// The groups of the state that are shown field by field.
const GROUPS: [&str; 6] = ["control", "planning", "refining", "responses", "conflicts", "spending"];

/// A run in full.
pub(crate) fn run(state: &RunState) -> Value {
    let mut fields = Map::new();
    if let Value::Object(kept) = json!(state) {
        fields.extend(kept.into_iter().filter(|(name, _)| !GROUPS.contains(&name.as_str())));
    }
    let tasks: BTreeMap<&TaskId, Value> = state.tasks.iter().map(|(id, found)| (id, task(found))).collect();
    fields.insert("tasks".to_owned(), json!(tasks));
    always(state, &mut fields);
    where_any(state, &mut fields);
    Value::Object(fields)
}

/// What of a task's state stands in fields of the run, by task.
const OF_THE_RUN: [&str; 4] = ["reflection", "handed_over_by", "auction", "answers"];

/// A task of a run.
pub(crate) fn task(state: &TaskState) -> Value {
    let mut shown = json!(state);
    if let Value::Object(fields) = &mut shown {
        fields.retain(|name, _| !OF_THE_RUN.contains(&name.as_str()));
    }
    shown
}

/// Fields that are there whether or not there is anything to say.
fn always(state: &RunState, fields: &mut Map<String, Value>) {
    let shown = [
        ("reflections", json!(state.reflections().collect::<BTreeMap<_, _>>())),
        ("paused", json!(state.control.paused)),
        ("refused_plans", json!(state.planning.refused)),
        ("wanted", json!(state.refining.wanted)),
        ("refinements", json!(state.refining.done)),
        ("usage", json!(state.used())),
        ("allotted", json!(state.spending.allotted)),
    ];
    fields.extend(shown.map(|(name, value)| (name.to_owned(), value)));
}

/// Fields that are left out where they say nothing.
fn where_any(state: &RunState, fields: &mut Map<String, Value>) {
    let shown = [
        ("requests", json!(state.control.requests)),
        ("lessons", json!(state.planning.lessons)),
        ("expansion", json!(state.planning.expansion)),
        ("planning", json!(InheritedPlanning::from(&state.planning))),
        ("delegated", of_leaves(state, |task| Some(json!(task.handed_over_by.as_ref()?)))),
        ("auctions", of_leaves(state, |task| Some(json!(task.auction.as_ref()?)))),
        ("responses", responses(state)),
        ("conflicts", json!(state.conflicts.found)),
        ("settling", json!(state.conflicts.settling)),
    ];
    let shown = shown.into_iter().filter(|(_, value)| match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(items) => !items.is_empty(),
        _ => true,
    });
    fields.extend(shown.map(|(name, value)| (name.to_owned(), value)));
}

/// What was done about failures, in the run and for each task.
fn responses(state: &RunState) -> Value {
    let mut shown = json!(state.responses);
    let answered = state.tasks.iter().filter(|(_, task)| !task.answers.is_empty());
    let answers: BTreeMap<&TaskId, Value> = answered.map(|(id, task)| (id, json!(task.answers))).collect();
    if let Value::Object(fields) = &mut shown
        && !answers.is_empty()
    {
        fields.insert("tasks".to_owned(), json!(answers));
    }
    shown
}

fn of_leaves(state: &RunState, of: impl Fn(&TaskState) -> Option<Value>) -> Value {
    let found: BTreeMap<&TaskIndex, Value> =
        state.leaves().filter_map(|(index, task)| Some((index, of(task)?))).collect();
    json!(found)
}
