//! Keeping prompts: what was sent to a model, as a difference to what was sent before.

use std::fmt::Write as _;

use muster_shared::flow::StoredMessage;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::chat::{ChatMessage, ChatRequest, ChatRole};

/// A message as it stands in the record. Native calls follow the text, one line of JSON each.
#[must_use]
pub fn stored(message: &ChatMessage) -> StoredMessage {
    let mut content = message.content.clone();
    for call in &message.tool_calls {
        if !content.is_empty() {
            content.push('\n');
        }
        let _ = write!(content, "[call {}] {} {}", call.id, call.name, canonical(&call.arguments));
    }
    if let Some(id) = &message.tool_call_id {
        content.insert_str(0, &format!("[result of {id}] "));
    }
    StoredMessage { role: role_name(message.role).to_owned(), content }
}

/// The system prompt as it stands in the record: the first message of every request.
#[must_use]
pub fn stored_system(system: &str) -> StoredMessage {
    StoredMessage { role: role_name(ChatRole::System).to_owned(), content: system.to_owned() }
}

const fn role_name(role: ChatRole) -> &'static str {
    match role {
        ChatRole::System => "system",
        ChatRole::User => "user",
        ChatRole::Assistant => "assistant",
        ChatRole::Tool => "tool",
    }
}

/// Where the parameters of a call hold the tools as they were declared, when they are not those of the call before.
pub const DECLARED: &str = "declared";
/// Where they say that the hash is that of what the record holds.
pub const HASHED: &str = "hashed";

/// The tools as they are declared to a model, for the record.
#[must_use]
pub fn declared(request: &ChatRequest) -> Vec<Value> {
    request.tools.iter().map(|tool| serde_json::to_value(tool).unwrap_or(Value::Null)).collect()
}

/// The hash of a request that grows: what was hashed once is not hashed again, so that a step costs the
/// same at the end of a long task as at its beginning.
#[derive(Debug, Clone)]
pub struct RequestHash {
    state: Sha256,
}

impl RequestHash {
    /// Begins with the tools as they were declared; the messages follow, the system prompt first.
    #[must_use]
    pub fn begin(declared: &[Value]) -> Self {
        let mut hash = Self { state: Sha256::new() };
        hash.add(&Value::Array(declared.to_vec()));
        hash
    }

    /// Adds the next message.
    pub fn message(&mut self, message: &StoredMessage) {
        self.add(&serde_json::to_value(message).unwrap_or(Value::Null));
    }

    fn add(&mut self, value: &Value) {
        self.state.update(canonical(value).as_bytes());
        self.state.update(b"\n");
    }

    /// The hash of all that was added so far and of the parameters, in hexadecimal.
    #[must_use]
    pub fn hex(&self, parameters: &Value) -> String {
        let mut whole = self.clone();
        whole.add(parameters);
        hex::encode(whole.state.finalize())
    }
}

/// The hash of a request as the record holds it: SHA-256 over the canonical JSON of the declared tools, of each
/// message, and of the parameters without the tools, one a line.
#[must_use]
pub fn hash_of_record(declared: &[Value], messages: &[StoredMessage], parameters: &Value) -> String {
    let mut hash = RequestHash::begin(declared);
    for message in messages {
        hash.message(message);
    }
    hash.hex(parameters)
}

/// What the record holds of a request that is asked apart from any conversation: its hash and all its messages. The
/// parameters are completed.
#[must_use]
pub fn keep_whole(request: &ChatRequest, parameters: &mut Value) -> (String, Vec<StoredMessage>) {
    let declared = declared(request);
    let messages = std::iter::once(stored_system(&request.system)).chain(request.messages.iter().map(stored));
    let messages: Vec<StoredMessage> = messages.collect();
    parameters[HASHED] = Value::from(AS_RECORDED);
    let hash = hash_of_record(&declared, &messages, parameters);
    if !declared.is_empty() {
        parameters[DECLARED] = Value::Array(declared);
    }
    (hash, messages)
}

/// What stands under [`HASHED`].
pub(super) const AS_RECORDED: &str = "as recorded";

fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

/// Writes JSON with sorted keys: maps keep the order of insertion in this build.
pub(crate) fn write_canonical(value: &Value, into: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            into.push('{');
            for (at, (name, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    into.push(',');
                }
                let _ = write!(into, "{}:", Value::from(name.as_str()));
                write_canonical(value, into);
            }
            into.push('}');
        }
        Value::Array(items) => {
            into.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    into.push(',');
                }
                write_canonical(item, into);
            }
            into.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(into, "{value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::chat::ToolCall;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_change_the_hash() {
        let with = |arguments: Value| ChatRequest {
            messages: vec![ChatMessage::calls(
                "",
                vec![ToolCall { raw: String::new(), ..ToolCall::new("1", "t", arguments) }],
            )],
            ..ChatRequest::default()
        };
        let hash = |arguments: Value| keep_whole(&with(arguments), &mut json!({"b": 1, "a": 2})).0;
        let one = hash(json!({"a": 1, "b": {"c": 2, "d": [3]}}));
        assert_eq!(one, hash(json!({"b": {"d": [3], "c": 2}, "a": 1})));
        assert_ne!(one, hash(json!({"a": 2})));
        assert_ne!(one, keep_whole(&with(json!({"a": 1, "b": {"c": 2, "d": [3]}})), &mut json!({})).0);
    }

    #[test]
    fn calls_and_their_results_are_kept_in_words() {
        let call = ChatMessage::calls(
            "think",
            vec![ToolCall::new("step-1", "corpus_search", json!({"query": "x"}))],
        );
        assert_eq!(stored(&call).content, "think\n[call step-1] corpus_search {\"query\":\"x\"}");
        let result = ChatMessage::tool_result("step-1", "found");
        assert_eq!(stored(&result).content, "[result of step-1] found");
        assert_eq!(stored(&result).role, "tool");
    }
}
