//! What people, models and tools said, in the form of the conventions. Told only where that was asked for.

use serde_json::{Value, json};

use crate::flow::{ModelCall, StoredMessage};
use crate::text::beginning;

/// Longest text that is told, in characters. Backends refuse spans of some hundred KiB.
const LONGEST: usize = 16_000;

/// Most messages of one call that are told: the newest.
const MOST_MESSAGES: usize = 50;

/// A text, cut to what is told.
pub(super) fn brief(text: &str) -> String {
    beginning(text, LONGEST)
}

/// A value as JSON, cut to what is told.
pub(super) fn brief_json(value: &Value) -> String {
    brief(&value.to_string())
}

fn message(role: &str, text: &str) -> Value {
    let part = match role {
        "tool" => json!({ "type": "tool_call_response", "result": brief(text) }),
        _ => json!({ "type": "text", "content": brief(text) }),
    };
    json!({ "role": role, "parts": [part] })
}

/// What a person asked, as input.
pub(super) fn asked(text: &str) -> String {
    json!([message("user", text)]).to_string()
}

/// An answer, as output.
pub(super) fn answered(text: &str, finish: &str) -> String {
    let mut said = message("assistant", text);
    said["finish_reason"] = Value::from(finish);
    json!([said]).to_string()
}

/// The newest messages of a call, each cut to what is told.
pub(super) fn newest(messages: &[StoredMessage]) -> Vec<StoredMessage> {
    let skipped = messages.len().saturating_sub(MOST_MESSAGES);
    let cut = |one: &StoredMessage| StoredMessage { role: one.role.clone(), content: brief(&one.content) };
    messages.iter().skip(skipped).map(cut).collect()
}

/// What a call told the model that the call before it had not: a span of each call with all that came before would grow
/// with the square of their number.
pub(super) fn input(call: &ModelCall) -> String {
    let told = call.messages.iter().map(|one| message(&one.role, &one.content));
    Value::from(told.collect::<Vec<_>>()).to_string()
}
