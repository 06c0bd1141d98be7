//! Calls written like code: `search(query="x", limit=3)`, `search("x")`, `search[x]`, `search {"query": "x"}`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::fields::{self, Fields};
use super::json;
use super::tools::KnownTools;

#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)^\s*[`*]*(?:print\()?((?:default_api\.|functions\.|tools\.)?[A-Za-z_][\w-]*(?:\.call)?)[`*]*\s*(?:\((.*?)\)+|\[(.*)\]|(\{.*\})|:\s*(\{.*\}))[`*;\s]*$")
        .unwrap()
});
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static NAMED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?s)^\s*([A-Za-z_]\w*)\s*[=:]\s*(.*)$").unwrap());

/// Reads `text` as one call of a tool, known or not.
pub(super) fn call(text: &str, tools: &KnownTools<'_>) -> Option<Fields> {
    let found = CALL.captures(text)?;
    let name = tools.resolve(found.get(1)?.as_str())?;
    let given = match (found.get(2), found.get(3), found.get(4).or_else(|| found.get(5))) {
        (Some(inner), _, _) => listed(inner.as_str(), &name, tools),
        (_, Some(inner), _) => {
            fields::arguments(Value::String(inner.as_str().trim().to_owned()), &name, tools)
        }
        (_, _, Some(object)) => fields::arguments(json::literal(object.as_str())?, &name, tools),
        (None, None, None) => return None,
    };
    Some(Fields::act(name, given))
}

/// Reads a text, or a fenced part of it, that is nothing but calls of known tools.
pub(super) fn alone(text: &str, tools: &KnownTools<'_>) -> Option<Fields> {
    let fenced =
        text.split("```").nth(1).map(|block| block.split_once('\n').map_or(block, |(_, inner)| inner));
    [Some(text), fenced].into_iter().flatten().find_map(|part| {
        let part = part.trim();
        let listed = part.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        let one = call(listed.unwrap_or(part), tools)?;
        one.actions.first().is_some_and(|action| tools.knows(&action.name)).then_some(one)
    })
}

/// The arguments between a call's brackets.
fn listed(inner: &str, tool: &str, tools: &KnownTools<'_>) -> Value {
    let inner = inner.trim();
    if inner.is_empty() {
        return fields::empty();
    }
    if inner.starts_with('{') {
        return json::literal(inner)
            .map_or_else(fields::empty, |value| fields::arguments(value, tool, tools));
    }
    let parts = split(inner);
    let named: Option<Map<String, Value>> = parts
        .iter()
        .map(|part| {
            let found = NAMED.captures(part)?;
            Some((found[1].to_owned(), value(&found[2])))
        })
        .collect();
    match named {
        Some(named) => Value::Object(named),
        None => fields::arguments(value(inner), tool, tools),
    }
}

/// `key=value` pairs without brackets around them, when the whole text is such pairs.
pub(super) fn pairs(text: &str) -> Option<Value> {
    let parts = split(text);
    let named: Option<Map<String, Value>> = parts
        .iter()
        .map(|part| {
            let (name, given) = part.split_once('=')?;
            let name = name.trim();
            let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            fits.then(|| (name.to_owned(), value(given)))
        })
        .collect();
    named.map(Value::Object)
}

fn value(text: &str) -> Value {
    json::literal(text).unwrap_or_else(|| Value::String(text.trim().to_owned()))
}

/// Splits at commas outside quotes and brackets.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quote) = (0, 0_usize, None);
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}
