//! Structured answers: the JSON document a planner, reflector, refiner or writer was asked for.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answer::ParseFailure;
use super::{clean, json, limits, withheld};

/// Reads the document in `text` that fits `schema`, repairing what can be repaired.
///
/// # Errors
/// A [`ParseFailure`]; [`ParseFailure::DoesNotFit`] names the first wrong place.
pub fn parse_document<T: DeserializeOwned>(text: &str, schema: &Value) -> Result<T, ParseFailure> {
    parse_whole_document(text, schema, false)
}

/// The same; an answer that may have been `cut` has to close its document itself. One that ends within a string never
/// counts.
///
/// # Errors
/// As for [`parse_document`]; [`ParseFailure::CutOff`] when the document is only half there.
pub fn parse_whole_document<T: DeserializeOwned>(
    text: &str,
    schema: &Value,
    cut: bool,
) -> Result<T, ParseFailure> {
    limits::check(text)?;
    let cleaned = clean::clean(text).text;
    if cleaned.is_empty() {
        return Err(if cut { ParseFailure::CutOff } else { ParseFailure::Empty });
    }
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| ParseFailure::Unreadable { why: format!("the schema itself is wrong: {error}") })?;
    let (mut found, mut failure) = (json::objects(&cleaned), None);
    if found.iter().any(|found| found.torn || (cut && !found.closed)) {
        failure = Some(ParseFailure::CutOff);
        found.retain(|found| found.closed);
    }
    for candidate in candidates(found) {
        match fit(&candidate, &validator) {
            Ok(value) => match serde_json::from_value(value) {
                Ok(document) => return Ok(document),
                Err(error) => failure = failure.or(Some(wrong("/", &error.to_string()))),
            },
            Err(wrong) => failure = failure.or(Some(wrong)),
        }
    }
    Err(failure.or_else(|| withheld(&cleaned)).unwrap_or_else(|| {
        if cleaned.starts_with(['{', '[']) {
            ParseFailure::Unreadable { why: "it begins like JSON but is none".to_owned() }
        } else {
            ParseFailure::NoAction
        }
    }))
}

/// Values that may be the document, the largest first, each also without a wrapper.
fn candidates(mut found: Vec<json::Found>) -> Vec<Value> {
    found.sort_by_key(|found| std::cmp::Reverse(found.end - found.start));
    found
        .into_iter()
        .flat_map(|found| {
            let inner = match &found.value {
                Value::Object(map) if map.len() == 1 => {
                    map.values().next().filter(|inner| inner.is_object()).cloned()
                }
                Value::Array(items) if items.len() == 1 => items.first().cloned(),
                _ => None,
            };
            [Some(found.value), inner]
        })
        .flatten()
        .collect()
}

fn fit(value: &Value, validator: &jsonschema::Validator) -> Result<Value, ParseFailure> {
    let Some(error) = validator.iter_errors(value).next() else {
        return Ok(value.clone());
    };
    // Providers that fill every optional member with null mean "absent".
    let bare = without_nulls(value.clone());
    if validator.is_valid(&bare) {
        return Ok(bare);
    }
    let path = error.instance_path().to_string();
    Err(wrong(if path.is_empty() { "/" } else { &path }, &error.to_string()))
}

fn wrong(path: &str, why: &str) -> ParseFailure {
    ParseFailure::DoesNotFit { path: path.to_owned(), why: why.chars().take(300).collect() }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}
