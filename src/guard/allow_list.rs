//! The guard `allow-list`: holds tool calls against a file. Pure.

use std::collections::BTreeMap;

use muster_shared::flow::{GuardReply, GuardRequest, Hook};
use muster_shared::plan::tools::means;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

/// A list as it stands in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListFile {
    #[serde(default)]
    default: Otherwise,
    #[serde(default)]
    allow: Vec<EntryFile>,
    #[serde(default)]
    refuse: Vec<EntryFile>,
}

/// What holds for a call that no entry is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Otherwise {
    Allow,
    #[default]
    Refuse,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryFile {
    tool: String,
    #[serde(default)]
    arguments: BTreeMap<String, String>,
    #[serde(default)]
    reason: String,
}

/// An entry: the calls that it is about.
#[derive(Debug)]
struct ListEntry {
    tool: String,
    /// By the way to an argument, what all of it has to match.
    arguments: Vec<(String, Regex)>,
    reason: String,
}

/// What may be called.
#[derive(Debug)]
pub(crate) struct AllowList {
    default: Otherwise,
    allow: Vec<ListEntry>,
    refuse: Vec<ListEntry>,
}

impl AllowList {
    /// Reads a list.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        // Without the line itself: it may be one of another file.
        let placed = |error: toml::de::Error| {
            let before = error.span().and_then(|at| text.get(..at.start)).unwrap_or_default();
            format!("line {}: {}", before.matches('\n').count() + 1, error.message())
        };
        let ListFile { default, allow, refuse } = toml::from_str(text).map_err(placed)?;
        let entries = |kind: &'static str, list: Vec<EntryFile>| -> Result<Vec<ListEntry>, String> {
            let named =
                |(at, entry)| ListEntry::of(entry).map_err(|why| format!("[[{kind}]] {}: {why}", at + 1));
            list.into_iter().enumerate().map(named).collect()
        };
        Ok(Self { default, allow: entries("allow", allow)?, refuse: entries("refuse", refuse)? })
    }

    /// The verdict: what is refused by name goes before what is allowed. What is no tool call is no concern of the list.
    pub(crate) fn verdict(&self, request: &GuardRequest) -> GuardReply {
        if request.hook != Hook::BeforeTool {
            return GuardReply::allow();
        }
        let Some(tool) = request.payload["tool"].as_str() else {
            return GuardReply::refuse("the request names no tool".to_owned());
        };
        let arguments = &request.payload["arguments"];
        if let Some(entry) = self.refuse.iter().find(|entry| entry.is_about(tool, arguments)) {
            let usual = || format!("{tool} is on the list of what is refused");
            return GuardReply::refuse(
                Some(entry.reason.clone()).filter(|why| !why.is_empty()).unwrap_or_else(usual),
            );
        }
        if self.allow.iter().any(|entry| entry.is_about(tool, arguments)) || self.default == Otherwise::Allow
        {
            return GuardReply::allow();
        }
        let of_tool: Vec<&ListEntry> = self.allow.iter().filter(|entry| means(&entry.tool, tool)).collect();
        GuardReply::refuse(match of_tool.first().and_then(|entry| entry.differs(arguments)) {
            Some(argument) if of_tool.len() == 1 => {
                format!("{tool} is allowed with another `{argument}` only")
            }
            Some(_) => format!("{tool} is allowed with other arguments only"),
            None => format!("{tool} is not on the allow-list"),
        })
    }
}

impl ListEntry {
    fn of(EntryFile { tool, arguments, reason }: EntryFile) -> Result<Self, String> {
        if tool.trim().is_empty() {
            return Err("`tool` is empty".to_owned());
        }
        let whole = |(name, pattern): (String, String)| match Regex::new(&format!("^(?s:{pattern})$")) {
            Ok(regex) => Ok((name, regex)),
            Err(error) => {
                Err(format!("arguments.{name} is no regular expression: {}", last_line(&error.to_string())))
            }
        };
        let arguments: Result<Vec<_>, String> = arguments.into_iter().map(whole).collect();
        Ok(Self { tool, arguments: arguments?, reason })
    }

    fn is_about(&self, tool: &str, arguments: &Value) -> bool {
        means(&self.tool, tool) && self.differs(arguments).is_none()
    }

    /// The first argument that is not as the entry has it.
    fn differs(&self, arguments: &Value) -> Option<&str> {
        let differs = |(name, regex): &&(String, Regex)| {
            let path = name.split('.').try_fold(arguments, |value, part| value.get(part));
            !path.is_some_and(|value| match value {
                Value::String(text) => regex.is_match(text),
                other => regex.is_match(&other.to_string()),
            })
        };
        self.arguments.iter().find(differs).map(|(name, _)| name.as_str())
    }
}

/// What an expression is refused for stands in the last line.
fn last_line(text: &str) -> &str {
    text.lines().next_back().unwrap_or(text).trim_start_matches("error: ")
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::Ruling;
    use serde_json::json;

    use super::*;

    const LIST: &str = r#"
        [[allow]]
        tool = "calculator"
        [[allow]]
        tool = "file.*"
        arguments = { path = "notes/[a-z]+\\.md" }
        [[allow]]
        tool = "http.get"
        arguments = { "request.url" = "https://example\\.org/.*", "request.tries" = "[1-3]" }
        [[refuse]]
        tool = "file.delete"
        reason = "nothing is deleted here"
    "#;

    fn asked(list: &str, tool: &str, arguments: &Value) -> (Ruling, String) {
        let run = "0190a1b2c3d4700080000000000000aa".parse().unwrap();
        let (agent, role) = ("worker-1".to_owned(), "worker".to_owned());
        let payload = json!({ "tool": tool, "arguments": arguments });
        let request = GuardRequest { hook: Hook::BeforeTool, run, task: None, agent, role, payload };
        let reply = AllowList::read(list).unwrap().verdict(&request);
        (reply.verdict, reply.reason)
    }

    #[test]
    fn calls_are_held_against_the_list() {
        let table = [
            ("calculator", json!({ "expression": "1" }), Ruling::Allow, ""),
            ("file.write", json!({ "path": "notes/a.md" }), Ruling::Allow, ""),
            ("file_write", json!({ "path": "notes/a.md" }), Ruling::Allow, ""),
            ("file.write", json!({ "path": "notes/../x.md" }), Ruling::Refuse, "another `path`"),
            ("file.write", json!({ "path": "x/notes/a.md" }), Ruling::Refuse, "another `path`"),
            ("file.write", json!({}), Ruling::Refuse, "another `path`"),
            ("file.delete", json!({ "path": "notes/a.md" }), Ruling::Refuse, "nothing is deleted here"),
            (
                "http.get",
                json!({ "request": { "url": "https://example.org/a", "tries": 2 } }),
                Ruling::Allow,
                "",
            ),
            (
                "http.get",
                json!({ "request": { "url": "https://example.org/a", "tries": 9 } }),
                Ruling::Refuse,
                "request.tries",
            ),
            ("http.get", json!({ "request": "https://example.org/a" }), Ruling::Refuse, "request.tries"),
            ("shell", json!(null), Ruling::Refuse, "not on the allow-list"),
        ];
        for (tool, arguments, ruling, words) in table {
            let (verdict, reason) = asked(LIST, tool, &arguments);
            assert_eq!(verdict, ruling, "{tool} {arguments}: {reason}");
            assert!(reason.contains(words), "{tool} {arguments}: {reason}");
        }
        assert_eq!(asked("", "calculator", &json!({})).0, Ruling::Refuse, "an empty list allows nothing");
        assert_eq!(asked("default = \"allow\"", "calculator", &json!({})).0, Ruling::Allow);
    }

    #[test]
    fn a_list_that_cannot_be_read_says_why() {
        for (list, words) in [
            ("[[allow]\n", "line 1"),
            ("default = \"allow\"\nHOME=/secret\n", "line 2"),
            ("[[allow]]\nname = \"x\"\n", "unknown field `name`"),
            ("[[allow]]\ntool = \" \"\n", "[[allow]] 1: `tool` is empty"),
            (
                "[[allow]]\ntool = \"x\"\n[[refuse]]\ntool = \"y\"\narguments = { a = \"(\" }\n",
                "[[refuse]] 1: arguments.a is no regular",
            ),
            ("default = \"perhaps\"\n", "perhaps"),
        ] {
            let error = AllowList::read(list).unwrap_err();
            assert!(error.contains(words) && !error.contains("secret"), "{list}: {error}");
        }
    }
}
