//! Keeping prompts: what was sent to a model, as a difference to what was sent before.

use std::borrow::Cow;
use std::fmt::Write as _;

use muster_shared::flow::{ModelCall, StoredMessage};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::chat::{ChatMessage, ChatRequest, ChatRole};
use crate::model::json::write_json;

/// A message as it stands in the record. Native calls follow the text, one line of JSON each; of
/// pictures, a line each says which they are.
#[must_use]
pub fn stored(message: &ChatMessage) -> StoredMessage {
    let content = stored_content(message).into_owned();
    StoredMessage { role: role_name(message.role).to_owned(), content }
}

/// Whether this is how a message stands in the record.
pub(super) fn is_stored_as(message: &ChatMessage, stored: &StoredMessage) -> bool {
    role_name(message.role) == stored.role && stored_content(message) == stored.content
}

fn stored_content(message: &ChatMessage) -> Cow<'_, str> {
    if message.tool_calls.is_empty() && message.tool_call_id.is_none() && message.pictures.is_empty() {
        return Cow::Borrowed(&message.content);
    }
    let mut content = String::new();
    if let Some(id) = &message.tool_call_id {
        let _ = write!(content, "[result of {id}] ");
    }
    content.push_str(&message.content);
    for picture in &message.pictures {
        let _ = write!(content, "\n{picture}");
    }
    for (at, call) in message.tool_calls.iter().enumerate() {
        if at > 0 || !message.content.is_empty() {
            content.push('\n');
        }
        let _ = write!(content, "[call {}] {} {}", call.id, call.name, canonical(&call.arguments));
    }
    Cow::Owned(content)
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
/// Where they name the tools, when these or what is promised are not those of the call before.
pub const TOOLS: &str = "tools";
/// Where they name the tools that may be used and are not declared, beside the tools.
pub const FURTHER: &str = "further_tools";
/// Where they hold the schema of the data that the role promises, beside the tools.
pub const PROMISED: &str = "promised";

/// The newest of these calls, the newest first, that names the tools: by its names and its promise go those after it too.
pub(super) fn naming<'a>(calls: impl IntoIterator<Item = &'a ModelCall>) -> Option<&'a ModelCall> {
    let of_conversation = calls.into_iter().filter(|call| !call.aside);
    of_conversation.into_iter().find(|call| call.parameters.get(TOOLS).is_some())
}

/// The tools as they are declared to a model, for the record.
#[must_use]
pub fn declared<T: Serialize>(tools: &[T]) -> Vec<Value> {
    tools.iter().map(|tool| serde_json::to_value(tool).unwrap_or(Value::Null)).collect()
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
        let mut text = Vec::new();
        write_canonical_array(declared, &mut text);
        hash.line(text);
        hash
    }

    /// Adds the next message, as the record holds it.
    pub fn message(&mut self, message: &StoredMessage) {
        self.said(&message.role, &message.content);
    }

    /// Adds the system prompt.
    pub fn system(&mut self, system: &str) {
        self.said(role_name(ChatRole::System), system);
    }

    /// Adds the next message of a conversation.
    pub fn chat(&mut self, message: &ChatMessage) {
        self.said(role_name(message.role), &stored_content(message));
    }

    /// A message's canonical JSON, written without the value in between.
    fn said(&mut self, role: &str, content: &str) {
        let mut text = Vec::with_capacity(content.len() + content.len() / 16 + 64);
        text.extend_from_slice(b"{\"content\":");
        write_json(&content, &mut text);
        text.extend_from_slice(b",\"role\":");
        write_json(&role, &mut text);
        text.push(b'}');
        self.line(text);
    }

    fn line(&mut self, mut text: Vec<u8>) {
        text.push(b'\n');
        self.state.update(text);
    }

    /// The hash of all that was added so far and of the parameters, in hexadecimal.
    #[must_use]
    pub fn hex(&self, parameters: &Value) -> String {
        let mut whole = self.clone();
        let mut text = Vec::new();
        write_canonical(parameters, &mut text);
        whole.line(text);
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
    let declared = declared(&request.tools);
    let messages = request.messages.iter().map(|message| stored(message));
    let messages: Vec<StoredMessage> =
        std::iter::once(stored_system(&request.system)).chain(messages).collect();
    let hash = hash_of_record(&declared, &messages, parameters);
    if !declared.is_empty() {
        parameters[DECLARED] = Value::Array(declared);
    }
    (hash, messages)
}

/// JSON with sorted keys.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = Vec::new();
    write_canonical(value, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Writes JSON with sorted keys: maps keep the order of insertion in this build.
fn write_canonical(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            into.push(b'{');
            for (at, (name, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    into.push(b',');
                }
                write_json(name, into);
                into.push(b':');
                write_canonical(value, into);
            }
            into.push(b'}');
        }
        Value::Array(items) => write_canonical_array(items, into),
        _ => write_json(value, into),
    }
}

fn write_canonical_array(items: &[Value], into: &mut Vec<u8>) {
    into.push(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            into.push(b',');
        }
        write_canonical(item, into);
    }
    into.push(b']');
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::chat::ToolCall;
    use crate::model::picture::ChatPicture;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_change_the_hash() {
        let with = |arguments: Value| ChatRequest {
            messages: vec![
                ChatMessage::calls(
                    "",
                    vec![ToolCall { raw: String::new(), ..ToolCall::new("1", "t", arguments) }],
                )
                .into(),
            ],
            ..ChatRequest::default()
        };
        let hash = |arguments: Value| keep_whole(&with(arguments), &mut json!({"b": 1, "a": 2})).0;
        let one = hash(json!({"a": 1, "b": {"c": 2, "d": [3]}}));
        assert_eq!(one, hash(json!({"b": {"d": [3], "c": 2}, "a": 1})));
        assert_ne!(one, hash(json!({"a": 2})));
        assert_ne!(one, keep_whole(&with(json!({"a": 1, "b": {"c": 2, "d": [3]}})), &mut json!({})).0);
    }

    /// The hash as it was made at first, by values.
    fn hash_by_values(declared: &[Value], messages: &[StoredMessage], parameters: &Value) -> String {
        fn sorted(value: &Value) -> String {
            match value {
                Value::Object(fields) => {
                    let by_name: BTreeMap<_, _> = fields.iter().collect();
                    let fields = by_name
                        .into_iter()
                        .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), sorted(value)));
                    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
                }
                Value::Array(items) => {
                    format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(","))
                }
                _ => value.to_string(),
            }
        }
        let mut state = Sha256::new();
        let messages = messages.iter().map(|message| serde_json::to_value(message).unwrap_or_default());
        for value in [Value::Array(declared.to_vec())].into_iter().chain(messages).chain([parameters.clone()])
        {
            state.update(sorted(&value).as_bytes());
            state.update(b"\n");
        }
        hex::encode(state.finalize())
    }

    #[test]
    fn hashes_are_those_of_old_records() {
        let hostile = "\"quotes\" \\ and \n\t\r\u{8}\u{c}\u{1}\u{7f} \u{2028} é 漢 🦀 </script>";
        let arguments = json!({"z": [1, 2.5, -3e-9, null], "a": {"é": true, "\n": hostile}});
        let call = |id: &str| ToolCall::new(id, "corpus_search", arguments.clone());
        let said = [
            ChatMessage::user(""),
            ChatMessage::user(hostile),
            ChatMessage::assistant("plain"),
            ChatMessage::calls("", vec![call("1")]),
            ChatMessage::calls(hostile, vec![call("1"), call("2")]),
            ChatMessage::tool_result("1", hostile),
            ChatMessage::tool_result("", ""),
            ChatMessage::system("late"),
        ];
        let declared = [json!({"name": "t", "parameters": arguments.clone()}), Value::Null];
        let parameters = json!({"b": 0.2, "a": [hostile], "big": 18_446_744_073_709_551_615_u64});
        for declared in [&declared[..], &[]] {
            let messages: Vec<StoredMessage> =
                std::iter::once(stored_system(hostile)).chain(said.iter().map(stored)).collect();
            let expected = hash_by_values(declared, &messages, &parameters);
            assert_eq!(hash_of_record(declared, &messages, &parameters), expected);
            let mut hash = RequestHash::begin(declared);
            hash.system(hostile);
            said.iter().for_each(|message| hash.chat(message));
            assert_eq!(hash.hex(&parameters), expected);
        }
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
        let picture = ChatPicture::read("image/png".to_owned(), "Ynl0ZXM=".to_owned());
        let shown = ChatMessage::user("look").showing(picture.into_iter().collect());
        let content = stored(&shown).content;
        assert!(content.starts_with("look\n[picture image/png, 5 bytes, sha256 277089d9"), "{content}");
        assert!(!content.contains("Ynl0ZXM="), "its bytes are in no record");
    }
}
