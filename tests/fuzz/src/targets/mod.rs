//! The doors, by topic. Those of the binary are in its own tests (`src/doors.rs`).

mod answered;
mod answers;
mod blueprints;
mod documents;
mod files;
mod gateway;
mod models;
mod plans;
mod record;
mod texts;
mod trust;
mod wire;

use serde::Deserialize;
use serde_json::Value;

use crate::Target;

/// All targets of the libraries.
pub const ALL: &[&Target] = &[
    &wire::JSON,
    &wire::MESSAGE_PACK,
    &wire::SUBJECTS,
    &record::ENTRIES,
    &record::EVENTS,
    &record::SNAPSHOTS,
    &answers::TEXT,
    &answers::NATIVE,
    &answers::DOCUMENTS,
    &answers::SUBMISSIONS,
    &models::STREAMS,
    &models::NAMES,
    &gateway::REQUESTS,
    &plans::DRAFTS,
    &plans::REFINEMENTS,
    &plans::PATCHES,
    &blueprints::FILES,
    &blueprints::CONDITIONS,
    &blueprints::TEXTS,
    &files::AGENTS,
    &files::TEMPLATES,
    &files::CONTRACTS,
    &files::PATHS,
    &documents::CORPUS,
    &documents::CITATIONS,
    &texts::CALCULATOR,
    &texts::RULES,
    &trust::CREDENTIALS,
    &trust::INVITATIONS,
    &trust::HEADERS,
    &trust::ORDERS,
    &trust::LEDGER,
    &answered::HOSTS,
    &answered::VERDICTS,
];

/// Text that is read where a file or an answer would be: what is none is shown as readers show it.
fn text_of(input: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(input)
}

/// Fails where something does not hold.
fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// A fixture of the repository as text.
fn fixture(path: &str) -> Result<String, String> {
    std::fs::read_to_string(crate::root().join(path)).map_err(|error| format!("{path}: {error}"))
}

/// A line of the golden set: a message in both encodings.
#[derive(Deserialize)]
struct Golden {
    name: String,
    json: Value,
    msgpack: String,
}

fn golden() -> Result<Vec<Golden>, String> {
    let text = fixture("shared/tests/golden.jsonl")?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| error.to_string())).collect()
}

/// The golden messages as JSON.
fn golden_json() -> Result<Vec<Vec<u8>>, String> {
    Ok(golden()?.into_iter().map(|line| line.json.to_string().into_bytes()).collect())
}

/// The golden messages as MessagePack.
fn golden_msgpack() -> Result<Vec<Vec<u8>>, String> {
    golden()?.into_iter().map(|line| hex::decode(line.msgpack).map_err(|error| error.to_string())).collect()
}

/// The golden message of a name, as JSON.
fn golden_message(name: &str) -> Result<Value, String> {
    let found = golden()?.into_iter().find(|line| line.name == name);
    found.map(|line| line.json).ok_or_else(|| format!("no golden message {name}"))
}

/// How deep a value is nested.
fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    1 + below.unwrap_or(0)
}
