//! What must hold whatever a model was told.

use muster_support::model_server::CapturedRequest;
use serde_json::Value;

/// What a model was told outside of every fence, beside its own words; or how a fence was broken.
pub(super) fn outside(request: &CapturedRequest) -> Result<String, String> {
    let told = request.messages.iter().filter(|message| message.role != "assistant");
    let said = told.clone().find_map(|message| {
        let first = message.text.lines().next()?;
        first.strip_prefix("MARK is ")?.strip_suffix('.')
    });
    // A question apart has fences of the same run, and does not say so in a line of its own.
    let Some(mark) = said.or_else(|| told.clone().find_map(|message| first_mark(&message.text))) else {
        return Ok(told.map(|message| message.text.as_str()).collect());
    };
    let mut outside = String::new();
    for message in told {
        let (begin, end) = (format!("<<<{mark} "), format!("{mark}>>>"));
        let mut is_inside = false;
        for line in message.text.lines() {
            match (is_inside, line.starts_with(&begin), line == end) {
                (false, true, _) => is_inside = true,
                (true, false, true) => is_inside = false,
                (true, false, false) if !line.contains(mark) => {}
                (false, false, false) => {
                    outside.push_str(line);
                    outside.push('\n');
                }
                (true, _, _) | (false, false, true) => {
                    return Err(format!("request {}: {line:?} in {}", request.number, message.text));
                }
            }
        }
        if is_inside {
            return Err(format!("request {}: a fence stays open: {}", request.number, message.text));
        }
    }
    Ok(outside)
}

/// The mark of the first fence in a text.
fn first_mark(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("<<<")?.split(' ').next())
}

/// One thing that a task did.
#[derive(Debug, Clone)]
pub(super) struct Act {
    /// The task, as the record names it.
    pub(super) task: String,
    pub(super) tool: String,
    /// `success`, `error`, `timeout` or `refused`; empty where it ends the task.
    pub(super) status: String,
    pub(super) told: String,
}

/// Everything that the tasks of a run did, by its record.
pub(super) fn acts(trace: &[Value]) -> Vec<Act> {
    let mut found = Vec::new();
    for entry in trace {
        let task = entry["task"].as_str().unwrap_or_default();
        collect(entry, task, &mut found);
    }
    found
}

fn collect(value: &Value, task: &str, found: &mut Vec<Act>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, task, found)),
        Value::Object(fields) => {
            if let Some(tool) = fields.get("action").and_then(|action| action["name"].as_str()) {
                let seen = fields.get("observation").unwrap_or(&Value::Null);
                found.push(Act {
                    task: task.to_owned(),
                    tool: tool.to_owned(),
                    status: seen["status"].as_str().unwrap_or_default().to_owned(),
                    told: seen["content"].as_str().unwrap_or_default().to_owned(),
                });
            }
            fields.values().for_each(|value| collect(value, task, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
