//! JSON Schemas of arguments, as files have them.

use muster_shared::text::bracket_depth;
use serde_json::{Value, json};

/// Deepest nesting of a schema as it is written.
const MAX_DEPTH: usize = 32;

/// Reads a schema.
pub(super) fn read(text: &str) -> Result<Value, String> {
    if bracket_depth(text) > MAX_DEPTH {
        return Err(format!("brackets stand in each other, more than {MAX_DEPTH} levels deep"));
    }
    let schema = serde_json::from_str(text).map_err(|error| error.to_string())?;
    check(schema)
}

/// A schema of arguments: one of an object, that can be compiled.
pub(super) fn check(mut schema: Value) -> Result<Value, String> {
    let Some(fields) = schema.as_object_mut() else { return Err("it is no object".to_owned()) };
    // What is called has arguments by name.
    match fields.get("type") {
        None => drop(fields.insert("type".to_owned(), json!("object"))),
        Some(kind) if kind == "object" => {}
        Some(_) => return Err("its `type` must be \"object\"".to_owned()),
    }
    jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
    Ok(schema)
}
