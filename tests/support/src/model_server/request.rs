//! What the server was asked, in terms common to all protocols, and the rules every request must keep.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use super::protocol::Protocol;

/// One request as it arrived.
#[derive(Debug, Clone)]
pub struct CapturedRequest {
    /// From 1, in order of arrival.
    pub number: usize,
    /// When it arrived, since the start of the server.
    pub at: Duration,
    /// The protocol it came by.
    pub protocol: Protocol,
    /// The model asked for.
    pub model: String,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// The key that was sent, whichever header it came in.
    pub key: Option<String>,
    /// System prompt and conversation, in order.
    pub messages: Vec<SeenMessage>,
    /// The declared tools' names.
    pub tools: Vec<String>,
    /// The body as it came.
    pub body: Value,
    /// Rules of the protocol that the request breaks.
    pub violations: Vec<String>,
}

/// One message of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SeenMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// Its text.
    pub text: String,
    /// Tool calls (assistant).
    pub calls: Vec<SeenCall>,
    /// The call answered (tool); the tool's name in protocols without ids.
    pub answers: Option<String>,
}

/// One tool call of a request's history.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenCall {
    /// Its id; the tool's name in protocols without ids.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
}

/// What stands in these fences is of the work around a run within a run.
const BACKGROUND: [&str; 4] = ["asked by the person", "task above", "result above", "lesson from above"];

fn without_background(text: &str) -> String {
    let mut kept = String::new();
    let mut is_background = false;
    for line in text.lines() {
        let label = line.strip_prefix("<<<").and_then(|fence| fence.split_once(' '));
        is_background |= label.is_some_and(|(_, label)| BACKGROUND.contains(&label));
        if !is_background {
            kept.push_str(line);
            kept.push('\n');
        }
        is_background &= !line.ends_with(">>>");
    }
    kept
}

impl CapturedRequest {
    /// The system prompt; empty when there is none.
    #[must_use]
    pub fn system(&self) -> &str {
        self.messages.iter().find(|message| message.role == "system").map_or("", |message| &message.text)
    }

    /// The last message's text.
    #[must_use]
    pub fn last_text(&self) -> &str {
        self.messages.last().map_or("", |message| &message.text)
    }

    /// Whether any message holds `text`.
    #[must_use]
    pub fn holds(&self, text: &str) -> bool {
        self.messages.iter().any(|message| message.text.contains(text))
    }

    /// Whether any message holds `text` elsewhere than in what a run within a run is told of the work around it.
    #[must_use]
    pub fn holds_itself(&self, text: &str) -> bool {
        self.messages.iter().any(|message| without_background(&message.text).contains(text))
    }

    /// The text between the first `before` and the next `after`, in any message: for markers such as a task's index.
    #[must_use]
    pub fn between(&self, before: &str, after: &str) -> Option<&str> {
        self.messages.iter().find_map(|message| {
            let (_, rest) = message.text.split_once(before)?;
            Some(rest.split_once(after)?.0)
        })
    }

    /// How many tool results the conversation holds.
    #[must_use]
    pub fn tool_results(&self) -> usize {
        self.messages.iter().filter(|message| message.role == "tool").count()
    }

    /// How many turns the model has had.
    #[must_use]
    pub fn turns(&self) -> usize {
        self.messages.iter().filter(|message| message.role == "assistant").count()
    }
}

/// The rules of the protocols that a careless client breaks, checked on every request.
pub(super) fn check(messages: &[SeenMessage], tools: &[String]) -> Vec<String> {
    let mut violations = check_tools(tools);
    if messages.iter().all(|message| message.role == "system") {
        violations.push("no message besides the system prompt".to_owned());
    }
    if messages.last().is_some_and(|message| message.role == "assistant") {
        violations.push("the last message is the model's own".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match message.role.as_str() {
            "tool" => {
                let id = message.answers.as_deref().unwrap_or_default();
                match open.iter().position(|call| *call == id) {
                    Some(found) => {
                        open.remove(found);
                    }
                    None => {
                        violations.push(format!("message {at} answers the call {id:?}, which is not open"))
                    }
                }
            }
            "system" | "user" | "assistant" => {
                if !open.is_empty() {
                    violations.push(format!("message {at} comes before the calls {open:?} are answered"));
                    open.clear();
                }
                open.extend(message.calls.iter().map(|call| call.id.as_str()));
                if message.role != "system" && message.text.is_empty() && message.calls.is_empty() {
                    violations.push(format!("message {at} ({}) is empty", message.role));
                }
            }
            other => violations.push(format!("message {at} has the unknown role {other:?}")),
        }
    }
    if !open.is_empty() {
        violations.push(format!("the calls {open:?} are never answered"));
    }
    violations
}

fn check_tools(tools: &[String]) -> Vec<String> {
    let mut known = HashSet::new();
    let mut violations = Vec::new();
    for tool in tools {
        if !known.insert(tool) {
            violations.push(format!("the tool {tool:?} is declared twice"));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if tool.is_empty() || tool.len() > 64 || !tool.chars().all(fits) {
            violations.push(format!("the tool name {tool:?} is not allowed"));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(role: &str, text: &str) -> SeenMessage {
        SeenMessage { role: role.into(), text: text.into(), ..SeenMessage::default() }
    }

    fn call(id: &str) -> SeenMessage {
        SeenMessage {
            calls: vec![SeenCall { id: id.into(), name: "t".into(), arguments: json!({}) }],
            ..message("assistant", "")
        }
    }

    fn result(id: &str) -> SeenMessage {
        SeenMessage { answers: Some(id.into()), ..message("tool", "r") }
    }

    #[test]
    fn broken_conversations_are_named() {
        let user = message("user", "hi");
        let cases: &[(Vec<SeenMessage>, &str)] = &[
            (vec![user.clone()], ""),
            (vec![message("system", "s"), user.clone(), call("a"), result("a")], ""),
            (vec![message("system", "s")], "besides the system prompt"),
            (vec![user.clone(), message("assistant", "x")], "model's own"),
            (vec![user.clone(), result("a")], "not open"),
            (vec![user.clone(), call("a"), result("a"), result("a")], "not open"),
            (vec![user.clone(), call("a"), user.clone()], "before the calls"),
            (vec![user.clone(), message("robot", "x")], "unknown role"),
            (vec![message("user", "")], "is empty"),
        ];
        for (messages, expected) in cases {
            let got = check(messages, &[]).join("; ");
            if expected.is_empty() {
                assert_eq!(got, "");
            } else {
                assert!(got.contains(expected), "{got:?} lacks {expected:?}");
            }
        }
        assert_eq!(check(&[user], &["a b".into(), "ok".into(), "ok".into()]).len(), 2);
    }
}
