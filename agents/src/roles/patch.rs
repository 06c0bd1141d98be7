//! Changes to a plan that was submitted, in place of the whole of it again. Pure, on plans as they were submitted.

use serde_json::{Map, Value, json};

/// The field of a submission that holds them.
pub const FIELD: &str = "patch";

/// Deepest level of a plan that is looked at.
const MAX_DEPTH: usize = muster_shared::ids::TaskIndex::MAX_DEPTH;

/// What a model is told of the field.
pub(super) fn schema() -> Value {
    json!({
        "type": "array",
        "items": {"type": "object"},
        "description": "only after a refusal, instead of all tasks: changes to the plan you submitted, each {\"task\": index or name, \"set\": {field: value}}, {\"delete\": index or name} or {\"add\": task, \"under\": index or name}"
    })
}

/// The changes that a submission brings instead of a plan; nothing where it brings none.
#[must_use]
pub fn of(arguments: &Value) -> Option<&[Value]> {
    let has_tasks = arguments["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty());
    let changes = arguments.get(FIELD)?.as_array().filter(|changes| !changes.is_empty() && !has_tasks)?;
    Some(changes)
}

/// One change, once it is read.
enum Change<'a> {
    Set { at: Vec<usize>, fields: &'a Map<String, Value> },
    Delete { at: Vec<usize> },
    Add { under: Option<Vec<usize>>, task: &'a Value },
}

/// The plan with the changes made. Indices are those of the plan as it was submitted: nothing moves before all is done.
///
/// # Errors
/// What cannot be made of them, one line each.
pub fn patched(plan: &Value, changes: &[Value]) -> Result<Value, Vec<String>> {
    let (mut read, mut faults) = (Vec::new(), Vec::new());
    for (number, change) in (1..).zip(changes) {
        match read_change(plan, change) {
            Ok(change) => read.push(change),
            Err(why) => faults.push(format!("change {number} of `{FIELD}`: {why}")),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut patched = plan.clone();
    let mut gone: Vec<Vec<usize>> = Vec::new();
    for change in read {
        match change {
            Change::Set { at, fields } => set(&mut patched, &at, fields),
            Change::Add { under, task } => add(&mut patched, under.as_deref(), task),
            Change::Delete { at } => gone.push(at),
        }
    }
    if !gone.is_empty() {
        name_by_names(&mut patched, &gone);
        gone.sort();
        gone.dedup();
        // The last first: what lies before them stays where it is.
        gone.iter().rev().for_each(|at| delete(&mut patched, at));
    }
    Ok(patched)
}

fn read_change<'a>(plan: &Value, change: &'a Value) -> Result<Change<'a>, String> {
    let found = |name: &str| {
        let said = change.get(name).filter(|said| !said.is_null());
        said.map(|said| place(plan, said).ok_or_else(|| format!("the plan has no task {said}"))).transpose()
    };
    if let Some(at) = found("delete")? {
        return Ok(Change::Delete { at });
    }
    if let Some(task) = change.get("add").filter(|task| task.is_object()) {
        return Ok(Change::Add { under: found("under")?, task });
    }
    let fields = change.get("set").and_then(Value::as_object);
    match (found("task")?, fields) {
        (Some(at), Some(fields)) => Ok(Change::Set { at, fields }),
        _ => Err("it is none of {task, set}, {delete} and {add}".to_owned()),
    }
}

/// Where a task lies that is named by its index (`1-2`) or by its name, if one has it.
fn place(plan: &Value, said: &Value) -> Option<Vec<usize>> {
    let said = said.as_str().map_or_else(|| said.to_string(), |said| said.trim().to_owned());
    let positions = said.split('-').map(|part| part.parse::<usize>().ok().and_then(|n| n.checked_sub(1)));
    if let Some(at) = positions.collect::<Option<Vec<usize>>>().filter(|at| task(plan, at).is_some()) {
        return Some(at);
    }
    let mut named = places(plan).into_iter().filter(|at| name(plan, at).is_some_and(|name| name == said));
    named.next().filter(|_| named.next().is_none())
}

/// The places of all tasks, depth first.
fn places(plan: &Value) -> Vec<Vec<usize>> {
    fn under(tasks: Option<&Value>, above: &[usize], found: &mut Vec<Vec<usize>>) {
        let tasks = tasks.and_then(Value::as_array).filter(|_| above.len() < MAX_DEPTH);
        for (number, task) in tasks.into_iter().flatten().enumerate() {
            let at = [above, &[number]].concat();
            found.push(at.clone());
            under(task.get("subtasks"), &at, found);
        }
    }
    let mut found = Vec::new();
    under(plan.get("tasks"), &[], &mut found);
    found
}

fn task<'a>(plan: &'a Value, at: &[usize]) -> Option<&'a Value> {
    let (first, rest) = at.split_first()?;
    let first = plan.get("tasks")?.get(first)?;
    rest.iter().try_fold(first, |above, number| above.get("subtasks")?.get(number))
}

fn task_mut<'a>(plan: &'a mut Value, at: &[usize]) -> Option<&'a mut Value> {
    let (first, rest) = at.split_first()?;
    let first = plan.get_mut("tasks")?.get_mut(first)?;
    rest.iter().try_fold(first, |above, number| above.get_mut("subtasks")?.get_mut(number))
}

fn name<'a>(plan: &'a Value, at: &[usize]) -> Option<&'a str> {
    task(plan, at)?.get("name")?.as_str().map(str::trim)
}

/// Nothing takes a field away.
fn set(plan: &mut Value, at: &[usize], fields: &Map<String, Value>) {
    let Some(Value::Object(task)) = task_mut(plan, at) else { return };
    for (field, value) in fields {
        match value {
            Value::Null => drop(task.remove(field)),
            value => drop(task.insert(field.clone(), value.clone())),
        }
    }
}

fn add(plan: &mut Value, under: Option<&[usize]>, new: &Value) {
    let (above, field) = match under {
        Some(at) => (task_mut(plan, at), "subtasks"),
        None => (Some(plan), "tasks"),
    };
    let Some(Value::Object(above)) = above else { return };
    let tasks = above.entry(field).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(tasks) = tasks {
        tasks.push(new.clone());
    }
}

fn delete(plan: &mut Value, at: &[usize]) {
    let Some((last, above)) = at.split_last() else { return };
    let tasks = if above.is_empty() {
        plan.get_mut("tasks")
    } else {
        task_mut(plan, above).and_then(|above| above.get_mut("subtasks"))
    };
    if let Some(Value::Array(tasks)) = tasks.filter(|tasks| tasks.get(last).is_some()) {
        tasks.remove(*last);
    }
}

/// Indices move when tasks go: what names a task by its index names it by its name from now on, and nothing depends on
/// what goes.
fn name_by_names(plan: &mut Value, gone: &[Vec<usize>]) {
    let index = |at: &[usize]| at.iter().map(|n| (n + 1).to_string()).collect::<Vec<_>>().join("-");
    let all = places(plan);
    let is_gone = |at: &Vec<usize>| gone.iter().any(|gone| at.starts_with(gone));
    let names: Vec<(String, Option<String>, bool)> =
        all.iter().map(|at| (index(at), name(plan, at).map(str::to_owned), is_gone(at))).collect();
    for at in &all {
        let Some(task) = task_mut(plan, at) else { continue };
        if let Some(Value::Array(needed)) = task.get_mut("depends_on") {
            needed.retain_mut(|needed| {
                let said = needed.as_str().map_or_else(|| needed.to_string(), |said| said.trim().to_owned());
                let known =
                    names.iter().find(|(index, name, _)| *index == said || name.as_ref() == Some(&said));
                let Some((_, name, is_gone)) = known else { return true };
                if let Some(name) = name {
                    *needed = Value::from(name.as_str());
                }
                !is_gone
            });
        }
        let Some(goal) = task.get("goal").and_then(Value::as_str) else { continue };
        let kept = names.iter().filter_map(|(index, name, _)| Some((index, name.as_ref()?)));
        let goal = kept.fold(goal.to_owned(), |goal, (index, name)| {
            goal.replace(&format!("{{{{{index}."), &format!("{{{{{name}."))
        });
        task["goal"] = Value::from(goal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Value {
        json!({"goal": "g", "tasks": [
            {"name": "Read", "goal": "read"},
            {"name": "Check", "goal": "check {{1.result}}", "depends_on": ["1"]},
            {"name": "Sum up", "goal": "sum up {{2.result}}", "depends_on": ["2", "Read"],
             "subtasks": [{"name": "First", "goal": "f"}, {"name": "Second", "goal": "s", "depends_on": ["3-1"]}]}
        ]})
    }

    #[test]
    fn fields_are_set_and_taken_away() {
        let changes = json!([
            {"task": "2", "set": {"role": "worker", "depends_on": null}},
            {"task": "Second", "set": {"goal": "other"}},
            {"task": 1, "set": {"critical": true}}
        ]);
        let patched = patched(&plan(), changes.as_array().unwrap()).unwrap();
        assert_eq!(
            patched["tasks"][1],
            json!({"name": "Check", "goal": "check {{1.result}}", "role": "worker"})
        );
        assert_eq!(patched["tasks"][2]["subtasks"][1]["goal"], "other");
        assert_eq!(patched["tasks"][0]["critical"], true);
    }

    #[test]
    fn tasks_come_and_go_and_the_others_keep_what_they_mean() {
        let changes = json!([
            {"delete": "1"},
            {"delete": "3-1"},
            {"add": {"name": "Last", "goal": "l"}},
            {"add": {"name": "Third", "goal": "t"}, "under": "Sum up"}
        ]);
        let patched = patched(&plan(), changes.as_array().unwrap()).unwrap();
        let names: Vec<&str> = places(&patched).iter().map(|at| name(&patched, at).unwrap()).collect();
        assert_eq!(names, ["Check", "Sum up", "Second", "Third", "Last"]);
        assert_eq!(patched["tasks"][0]["depends_on"], json!([]));
        assert_eq!(patched["tasks"][1]["depends_on"], json!(["Check"]));
        assert_eq!(patched["tasks"][1]["goal"], "sum up {{Check.result}}");
        assert_eq!(patched["tasks"][1]["subtasks"][0]["depends_on"], json!([]));
    }

    #[test]
    fn what_cannot_be_made_is_said_and_nothing_is_changed() {
        let changes = json!([{"task": "9", "set": {}}, {"delete": "Nobody"}, {"move": "1"}]);
        let faults = patched(&plan(), changes.as_array().unwrap()).unwrap_err();
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[0].contains("no task \"9\"") && faults[2].contains("none of"), "{faults:?}");
    }

    #[test]
    fn a_whole_plan_is_no_change() {
        assert!(of(&plan()).is_none() && of(&json!({"patch": []})).is_none());
        assert!(of(&json!({"patch": [{"delete": "1"}], "tasks": [{"name": "n"}]})).is_none());
        assert_eq!(of(&json!({"patch": [{"delete": "1"}]})).map(<[Value]>::len), Some(1));
    }
}
