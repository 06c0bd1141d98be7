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

/// How deep a value is nested.
fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    1 + below.unwrap_or(0)
}
