//! Which blueprints a task may be done by (R7), and what becomes of a task that names another.

use serde_json::Value;

use super::reference;
use super::tools::{Nameable, nearest};
use crate::flow::{BlueprintBrief, BlueprintCall, TaskDraft};

/// Longest values of a blueprint that a plan may hold in one task, in bytes of JSON.
const MAX_VALUES_BYTES: usize = 8 * 1024;

/// What is wrong with how a task speaks of a blueprint, with what to do; nothing when it is in order.
pub(super) fn problem(task: &TaskDraft, nameable: Nameable<'_>) -> Option<String> {
    let known = nameable.blueprints;
    let call = task.blueprint.as_ref()?;
    let said = |what: String| Some(format!("task {:?} {what}", task.name));
    let names = || known.iter().map(|brief| brief.name.clone()).collect::<Vec<_>>();
    let Some(brief) = find(call, known) else {
        let instead = match (nearest(&call.name, &names()), known.is_empty()) {
            (Some(near), _) => format!("did you mean {near}?"),
            (None, true) => "there is none here: leave `blueprint` out".to_owned(),
            (None, false) => format!("there are {}", names().join(", ")),
        };
        return said(format!("is done by the blueprint {:?}, which is not there: {instead}", call.name));
    };
    let unknown = call.params.keys().find(|param| !brief.params.contains_key(*param));
    if let Some(param) = unknown {
        let takes: Vec<&str> = brief.params.keys().map(String::as_str).collect();
        return said(format!(
            "gives the blueprint {} a value for {param:?}, which it does not take: it takes {}",
            call.name,
            takes.join(", ")
        ));
    }
    if let Some((param, _)) = call.params.iter().find(|(_, value)| refers(value)) {
        return said(format!(
            "gives the blueprint {} a reference for {param:?}: leave it out, and whoever does the task fills it in from \
             what the task builds on",
            call.name
        ));
    }
    let bytes = bytes(call);
    (bytes > MAX_VALUES_BYTES)
        .then(|| said(format!("gives its blueprint {bytes} bytes of values, {MAX_VALUES_BYTES} is the most")))
        .flatten()
}

/// Mends what [`problem`] finds: a blueprint that is not there is left out or replaced by the nearest, and so are values
/// that cannot be taken. Says what was done.
pub(super) fn fit(task: &mut TaskDraft, nameable: Nameable<'_>, notes: &mut Vec<String>) {
    let known = nameable.blueprints;
    let Some(call) = &mut task.blueprint else { return };
    if find(call, known).is_none() {
        let names: Vec<String> = known.iter().map(|brief| brief.name.clone()).collect();
        let near = nearest(&call.name, &names);
        let done = near.as_ref().map_or_else(|| "left it out".to_owned(), |near| format!("took {near}"));
        notes
            .push(format!("{:?} names the blueprint {:?}, which is not there: {done}", task.name, call.name));
        match near {
            Some(near) => call.name = near,
            None => {
                task.blueprint = None;
                return;
            }
        }
    }
    let Some(brief) = find(call, known) else { return };
    let is_sound = |param: &String, value: &Value| brief.params.contains_key(param) && !refers(value);
    let before = call.params.len();
    call.params.retain(|param, value| is_sound(param, value));
    if bytes(call) > MAX_VALUES_BYTES {
        call.params.clear();
    }
    if call.params.len() < before {
        notes.push(format!("{:?}: values that {} cannot take are left out", task.name, call.name));
    }
}

fn find<'a>(call: &BlueprintCall, known: &'a [BlueprintBrief]) -> Option<&'a BlueprintBrief> {
    known.iter().find(|brief| brief.name == call.name)
}

fn bytes(call: &BlueprintCall) -> usize {
    serde_json::to_string(&call.params).map_or(0, |text| text.len())
}

/// Whether a value stands for what a task will give: nobody resolves it there.
fn refers(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            reference::find(text).next().is_some() || reference::find_context(text).next().is_some()
        }
        Value::Array(items) => items.iter().any(refers),
        Value::Object(entries) => entries.values().any(refers),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn known() -> Vec<BlueprintBrief> {
        let params = [("topic".to_owned(), "text".to_owned())].into();
        vec![BlueprintBrief { name: "weekly_report".to_owned(), description: String::new(), params }]
    }

    fn nameable(blueprints: &[BlueprintBrief]) -> Nameable<'_> {
        Nameable { tools: &[], blueprints }
    }

    fn task(name: &str, params: &Value) -> TaskDraft {
        let params = serde_json::from_value(params.clone()).unwrap();
        let blueprint = Some(BlueprintCall { name: name.to_owned(), params });
        TaskDraft { name: "part".to_owned(), blueprint, ..TaskDraft::default() }
    }

    #[test]
    fn what_cannot_be_done_by_a_blueprint_is_told_and_mended() {
        let whole = json!({ "topic": "tea" });
        let long = "x".repeat(MAX_VALUES_BYTES);
        // What is given, what is said, which blueprint and which values are left.
        let weekly = |params: Value| task("weekly_report", &params);
        let left = |values: usize| Some(("weekly_report", values));
        let cases = [
            (weekly(whole.clone()), None, left(1)),
            (weekly(json!({})), None, left(0)),
            (task("weekly_reports", &whole), Some("did you mean weekly_report?"), left(1)),
            (task("cooking", &whole), Some("there are weekly_report"), None),
            (weekly(json!({ "topics": "tea" })), Some("it takes topic"), left(0)),
            (weekly(json!({ "topic": ["{{1.result}}"] })), Some("leave it out"), left(0)),
            (weekly(json!({ "topic": "{{context.tea}}" })), Some("leave it out"), left(0)),
            (weekly(json!({ "topic": long })), Some("is the most"), left(0)),
            (TaskDraft::default(), None, None),
        ];
        for (mut task, said, left) in cases {
            let found = problem(&task, nameable(&known()));
            assert_eq!(found.is_some(), said.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(said.unwrap_or_default()), "{said:?}");
            let mut notes = Vec::new();
            fit(&mut task, nameable(&known()), &mut notes);
            assert_eq!(notes.is_empty(), said.is_none(), "{notes:?}");
            let is_left = task.blueprint.as_ref().map(|call| (call.name.as_str(), call.params.len()));
            assert_eq!(is_left, left);
            assert_eq!(problem(&task, nameable(&known())), None);
        }
        assert!(
            problem(&task("weekly_report", &whole), nameable(&[])).unwrap().contains("leave `blueprint` out")
        );
    }
}
