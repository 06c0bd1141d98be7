//! Values for the parameters of a blueprint.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::names::hint;
use super::{Blueprint, Filled, MAX_VALUE_BYTES, MAX_VALUES, Param, ParamKind};

/// Why a value cannot be taken, or which one is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("params.{param}: {why}")]
pub struct FillError {
    /// The parameter.
    pub param: String,
    /// What is wrong, and what to do.
    pub why: String,
}

/// Puts values into a blueprint. Those that are not given have their default.
///
/// # Errors
/// With everything that is wrong with the values.
pub fn fill(blueprint: &Blueprint, given: &BTreeMap<String, Value>) -> Result<Filled, Vec<FillError>> {
    let (mut params, mut wrong) = (BTreeMap::new(), Vec::new());
    for name in given.keys().filter(|name| !blueprint.params.contains_key(*name)) {
        let near = hint(name, blueprint.params.keys().map(String::as_str));
        let known: Vec<&str> = blueprint.params.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let why = format!("{} has no such parameter (it has {known}){near}", blueprint.name);
        wrong.push(FillError { param: name.clone(), why });
    }
    for (name, param) in &blueprint.params {
        let value = given.get(name).filter(|value| !value.is_null()).or(param.default.as_ref());
        match value {
            Some(value) => match fits(param, value) {
                Ok(()) => {
                    params.insert(name.clone(), value.clone());
                }
                Err(why) => wrong.push(FillError { param: name.clone(), why }),
            },
            None if param.required => {
                let what = if param.description.is_empty() {
                    String::new()
                } else {
                    format!(": {}", param.description)
                };
                wrong.push(FillError {
                    param: name.clone(),
                    why: format!("it is not given, and there is no default{what}"),
                });
            }
            None => {}
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let filled = Filled { blueprint: blueprint.clone(), params };
    if filled.goal().trim().is_empty() {
        let why = "with these values the goal is empty".to_owned();
        return Err(vec![FillError { param: "*".to_owned(), why }]);
    }
    Ok(filled)
}

/// Reads values as they are written on a command line: by the kind of their parameter. A list is written as
/// `a, b, c`, or as JSON.
///
/// # Errors
/// With everything that is wrong with the values.
pub fn fill_text(blueprint: &Blueprint, given: &BTreeMap<String, Value>) -> Result<Filled, Vec<FillError>> {
    let read = given.iter().map(|(name, value)| {
        let kind = blueprint.params.get(name).map(|param| param.kind);
        let value = match (kind, value) {
            (Some(kind), Value::String(text)) => from_text(kind, text),
            (_, value) => value.clone(),
        };
        (name.clone(), value)
    });
    fill(blueprint, &read.collect())
}

fn from_text(kind: ParamKind, text: &str) -> Value {
    let as_is = || Value::String(text.to_owned());
    match kind {
        ParamKind::String => as_is(),
        ParamKind::Integer => text.trim().parse::<i64>().map_or_else(|_| as_is(), |number| json!(number)),
        ParamKind::Number => text.trim().parse::<f64>().map_or_else(|_| as_is(), |number| json!(number)),
        ParamKind::Boolean => match text.trim().to_lowercase().as_str() {
            "true" | "yes" => json!(true),
            "false" | "no" => json!(false),
            _ => as_is(),
        },
        ParamKind::List => serde_json::from_str::<Vec<String>>(text).map_or_else(
            |_| {
                let items = text.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty());
                json!(items.collect::<Vec<_>>())
            },
            |items| json!(items),
        ),
    }
}

/// The parameters that have to be given and are not.
#[must_use]
pub fn missing<'a>(blueprint: &'a Blueprint, given: &BTreeMap<String, Value>) -> Vec<&'a str> {
    let needed = blueprint.params.iter().filter(|(_, param)| param.required && param.default.is_none());
    let open = needed.filter(|(name, _)| given.get(*name).is_none_or(Value::is_null));
    open.map(|(name, _)| name.as_str()).collect()
}

/// The parameters as a JSON Schema.
#[must_use]
pub fn schema(blueprint: &Blueprint) -> Value {
    let properties: Map<String, Value> =
        blueprint.params.iter().map(|(name, param)| (name.clone(), property(param))).collect();
    let required: Vec<&str> = missing(blueprint, &BTreeMap::new());
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn property(param: &Param) -> Value {
    let mut text = json!({ "type": "string", "maxLength": MAX_VALUE_BYTES });
    if !param.choices.is_empty() {
        text["enum"] = json!(param.choices);
    }
    let mut schema = match param.kind {
        ParamKind::String => text,
        ParamKind::Integer => json!({ "type": "integer" }),
        ParamKind::Number => json!({ "type": "number" }),
        ParamKind::Boolean => json!({ "type": "boolean" }),
        ParamKind::List => json!({ "type": "array", "items": text, "maxItems": MAX_VALUES }),
    };
    if !param.description.is_empty() {
        schema["description"] = json!(param.description);
    }
    if let Some(default) = &param.default {
        schema["default"] = default.clone();
    }
    schema
}

/// Whether a parameter takes a value, or why not.
pub(super) fn fits(param: &Param, value: &Value) -> Result<(), String> {
    let text = |text: &str| {
        if text.len() > MAX_VALUE_BYTES {
            return Err(format!(
                "the text has {} bytes, {MAX_VALUE_BYTES} is the most: put long material into a file and give its \
                 folder with --docs",
                text.len()
            ));
        }
        if param.choices.is_empty() || param.choices.iter().any(|choice| choice == text) {
            return Ok(());
        }
        let near = hint(text, param.choices.iter().map(String::as_str));
        Err(format!("{text:?} is none of {}{near}", param.choices.join(", ")))
    };
    match (param.kind, value) {
        (ParamKind::String, Value::String(found)) => {
            if param.required && found.trim().is_empty() {
                return Err("it is empty".to_owned());
            }
            text(found)
        }
        (ParamKind::Integer, Value::Number(number)) if number.is_i64() => Ok(()),
        (ParamKind::Number, Value::Number(_)) | (ParamKind::Boolean, Value::Bool(_)) => Ok(()),
        (ParamKind::List, Value::Array(items)) => {
            if items.len() > MAX_VALUES {
                return Err(format!("{} items, {MAX_VALUES} is the most", items.len()));
            }
            if param.required && items.is_empty() {
                return Err("the list is empty".to_owned());
            }
            items.iter().try_for_each(|item| match item {
                Value::String(item) if item.trim().is_empty() => {
                    Err("an item of the list is empty".to_owned())
                }
                Value::String(item) => text(item),
                other => Err(format!("{other} is no text: the items of a list are texts")),
            })
        }
        (kind, other) => {
            let wanted = match kind {
                ParamKind::String => "a text",
                ParamKind::Integer => "a whole number",
                ParamKind::Number => "a number",
                ParamKind::Boolean => "true or false",
                ParamKind::List => "a list of texts",
            };
            let shown: String = other.to_string().chars().take(60).collect();
            Err(format!("{shown} is not {wanted}"))
        }
    }
}
