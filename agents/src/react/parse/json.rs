//! JSON in a text: finding it, reading it leniently, and choosing the action among what was found.

use serde_json::Value;

use super::Reading;
use super::answer::AnswerForm;
use super::fields::{self, Fields};
use super::scan;
use super::tools::KnownTools;

/// The most values looked at in one text.
const MAX_VALUES: usize = 64;
/// The most bytes looked at in one text: each place that looks like the beginning of a value costs a pass over the
/// rest of the text, so that ten thousand brackets would cost ten thousand passes.
const MAX_LOOKED_AT: usize = 2 * 1024 * 1024;

/// A value found in a text.
pub(super) struct Found {
    pub(super) value: Value,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) repaired: bool,
    /// Whether its brackets were closed by the text itself.
    pub(super) closed: bool,
    /// Whether the text ended within one of its strings. What was made of it is a guess and never carried out.
    pub(super) torn: bool,
}

/// Whether the last object in `text` ends within a string because the text does.
pub(super) fn ends_torn(text: &str) -> bool {
    objects(text).last().is_some_and(|last| last.torn)
}

/// Every object (or array of objects) in `text`, outermost ones only, in order.
pub(super) fn objects(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut looked_at = 0;
    while found.len() < MAX_VALUES
        && looked_at < MAX_LOOKED_AT
        && let Some(start) = next_start(text, at)
    {
        looked_at += text.len() - start;
        match value_at(text, start) {
            Some(value) => {
                at = value.end.max(start + 1);
                found.push(value);
            }
            None => at = start + 1,
        }
    }
    found
}

/// Where the next object begins, or an array that holds objects.
fn next_start(text: &str, from: usize) -> Option<usize> {
    text[from..]
        .char_indices()
        .filter(|(_, c)| matches!(c, '{' | '['))
        .map(|(offset, c)| (from + offset, c))
        .find(|(at, c)| {
            let inner = text[at + 1..].trim_start();
            *c == '{' || inner.starts_with('{')
        })
        .map(|(at, _)| at)
}

fn value_at(text: &str, start: usize) -> Option<Found> {
    strict(text, start).or_else(|| lenient(text, start))
}

fn strict(text: &str, start: usize) -> Option<Found> {
    let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    let value = stream.next()?.ok().filter(holds_something)?;
    Some(Found {
        value,
        start,
        end: start + stream.byte_offset(),
        repaired: false,
        closed: true,
        torn: false,
    })
}

fn lenient(text: &str, start: usize) -> Option<Found> {
    let rest = &text[start..];
    if let Some(inner) = rest.strip_prefix("{{") {
        // A template's doubled braces.
        let single = inner.replace("}}", "}").replace("{{", "{");
        let found = value_at(&format!("{{{single}"), 0)?;
        return Some(Found { start, end: text.len(), repaired: true, ..found });
    }
    if is_escaped(rest) {
        let found = value_at(&rest.replace("\\\"", "\"").replace("\\n", "\n"), 0)?;
        return Some(Found { start, end: text.len(), repaired: true, ..found });
    }
    let careful = scan::scan(rest, false);
    let read = repaired(&careful.text);
    if let (true, Some(value)) = (careful.closed, read.clone()) {
        return Some(Found {
            value,
            start,
            end: start + careful.end,
            repaired: true,
            closed: true,
            torn: false,
        });
    }
    let trusting = scan::scan(rest, true);
    if trusting.closed
        && let Some(value) = repaired(&trusting.text)
    {
        return Some(Found {
            value,
            start,
            end: start + trusting.end,
            repaired: true,
            closed: true,
            torn: false,
        });
    }
    let (end, torn) = (start + careful.end, careful.torn);
    read.map(|value| Found { value, start, end, repaired: true, closed: false, torn })
}

fn repaired(text: &str) -> Option<Value> {
    if let Some(value) = serde_json::from_str(text).ok().filter(holds_something) {
        return Some(value);
    }
    let text = jsonrepair_rs::jsonrepair(text).ok()?;
    serde_json::from_str(&text).ok().filter(holds_something)
}

/// An object with members, or an array with such an object.
fn holds_something(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => items.iter().any(holds_something),
        _ => false,
    }
}

/// `{\"a\": \"b\"}`: JSON that was encoded once too often.
fn is_escaped(text: &str) -> bool {
    text.contains("\\\"") && !text.replace("\\\"", "").contains('"')
}

/// The action among the objects in `text`: the first that names a known tool, else the first that is an action.
pub(super) fn action(text: &str, tools: &KnownTools<'_>) -> Option<Reading> {
    let found = objects(text);
    let read: Vec<(&Found, Fields)> = found
        .iter()
        .filter_map(|found| fields::read(&found.value, tools).map(|fields| (found, fields)))
        .collect();
    let known = |fields: &Fields| fields.actions.first().is_some_and(|action| tools.knows(&action.name));
    let chosen = read
        .iter()
        .position(|(_, fields)| known(fields))
        .or_else(|| read.iter().position(|(_, fields)| !fields.actions.is_empty()))?;
    let (at, first) = &read[chosen];
    let mut fields = first.clone();
    // Objects written one after the other: thoughts from those without an action, further actions from the rest,
    // unless the model went on to imagine what came of the first.
    for (other, extra) in &read {
        fields.borrow_thoughts(extra);
        let imagined = || text[at.end..other.start].to_ascii_lowercase().contains("observation");
        if other.start > at.start && !imagined() {
            fields.actions.extend(extra.actions.iter().cloned());
        }
    }
    for thoughts in found.iter().filter_map(|found| fields::thoughts(&found.value)) {
        fields.borrow_thoughts(&thoughts);
    }
    if fields.thought.is_none() {
        fields.thought = super::prose(&text[..at.start]);
    }
    Some(Reading {
        fields,
        form: AnswerForm::Json,
        repaired: at.repaired,
        open_ended: !at.closed,
        torn: at.torn,
    })
}

/// Reads a lone value: JSON of any kind, or nothing.
pub(super) fn literal(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    match text {
        "True" => return Some(Value::Bool(true)),
        "False" => return Some(Value::Bool(false)),
        "None" => return Some(Value::Null),
        _ => {}
    }
    if text.starts_with(['{', '[']) {
        return lenient(text, 0).map(|found| found.value);
    }
    let quoted = |quote: char| text.len() >= 2 && text.starts_with(quote) && text.ends_with(quote);
    (quoted('\'') || quoted('"') || quoted('`')).then(|| Value::String(text[1..text.len() - 1].to_owned()))
}
