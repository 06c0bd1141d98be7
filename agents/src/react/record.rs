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

/// The hash of a request that grows: what was hashed once is not hashed again, so that a step costs the
/// same at the end of a long task as at its beginning.
#[derive(Debug, Clone)]
pub struct RequestHash {
    state: Sha256,
}

impl RequestHash {
    /// Begins with what comes before the messages: system prompt, tools, schema and parameters.
    #[must_use]
    pub fn begin(request: &ChatRequest) -> Self {
        let head = ChatRequest { messages: Vec::new(), ..request.clone() };
        let mut hash = Self { state: Sha256::new() };
        hash.add(&serde_json::to_value(&head).unwrap_or(Value::Null));
        hash
    }

    /// Adds the next message.
    pub fn message(&mut self, message: &ChatMessage) {
        self.add(&serde_json::to_value(message).unwrap_or(Value::Null));
    }

    fn add(&mut self, value: &Value) {
        self.state.update(canonical(value).as_bytes());
        self.state.update(b"\n");
    }

    /// The hash of all that was added so far, in hexadecimal.
    #[must_use]
    pub fn hex(&self) -> String {
        hex::encode(self.state.clone().finalize())
    }
}

/// The hash of a whole request: SHA-256 over the canonical JSON of its head and of each message, one a line.
#[must_use]
pub fn request_hash(request: &ChatRequest) -> String {
    let mut hash = RequestHash::begin(request);
    for message in &request.messages {
        hash.message(message);
    }
    hash.hex()
}

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
        let one = with(json!({"a": 1, "b": {"c": 2, "d": [3]}}));
        let other = with(json!({"b": {"d": [3], "c": 2}, "a": 1}));
        assert_eq!(request_hash(&one), request_hash(&other));
        assert_ne!(request_hash(&one), request_hash(&with(json!({"a": 2}))));
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
