//! What a tool asks a person for in the middle of its call (MCP calls it elicitation): plain values, or a visit to an address.
//!
//! The task is put down meanwhile, as for any question. The reply comes with its next offer, and the call is made again with
//! it: the same question is then answered without asking anybody.

use std::fmt;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::question::{MAX_QUESTION_BYTES, Reply};
use crate::text::beginning;

/// Most values of one form.
pub const MAX_FIELDS: usize = 32;
/// Longest address that a person is sent to, in bytes.
pub const MAX_ADDRESS: usize = 2_048;
/// What a person says who gives nothing.
const DECLINE: &str = "decline";
/// What a person says who did what was asked.
const DONE: [&str; 4] = ["done", "yes", "ok", "accept"];

/// What a person is asked for, beside the words of the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Values that fit this JSON Schema: an object of plain values.
    Values(Value),
    /// That they open this address, and say when it is done. What they do there is not seen by anybody here.
    Visit(String),
}

/// A form, and the question of a call that it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CallForm {
    /// Names the question within its call: the same each time the call is made.
    pub id: String,
    /// What is asked for.
    pub form: Form,
}

/// What came of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct FormReply {
    /// The question of the call.
    pub id: String,
    /// What was given.
    pub given: Given,
    /// Who answered; nobody when the time for it was up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What somebody gave who was asked for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Given {
    /// The values; none where none were asked for.
    Values(Value),
    /// Nothing: they declined.
    Declined,
    /// Nothing: nobody answered in time.
    Nothing,
}

/// A value that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is, in words.
    pub about: &'a str,
    /// Its type, and what it may be.
    pub kind: String,
    /// Whether it may be left out.
    pub is_optional: bool,
}

impl Form {
    /// Why nobody can be asked for this, in words; nothing when somebody can.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        match self {
            Self::Values(schema) => schema_fault(schema),
            Self::Visit(url) if !(url.starts_with("https://") || url.starts_with("http://")) => {
                Some("an address begins with https://".to_owned())
            }
            Self::Visit(url) if url.len() > MAX_ADDRESS => {
                Some(format!("an address has at most {MAX_ADDRESS} bytes"))
            }
            Self::Visit(_) => None,
        }
    }

    /// The values that are asked for, in their order.
    #[must_use]
    pub fn fields(&self) -> Vec<Field<'_>> {
        match self {
            Self::Values(schema) => fields(schema),
            Self::Visit(_) => Vec::new(),
        }
    }

    /// What a person gives by a text: `decline`; or a JSON object of the values, or where one value is asked for, it alone;
    /// or where none is, that it is done.
    ///
    /// # Errors
    /// What is wrong with it, and what to say instead.
    pub fn read(&self, text: &str) -> Result<Given, String> {
        let text = text.trim();
        if text.len() > MAX_QUESTION_BYTES {
            return Err(format!("the answer has {} bytes, {MAX_QUESTION_BYTES} is the most", text.len()));
        }
        if text.eq_ignore_ascii_case(DECLINE) {
            return Ok(Given::Declined);
        }
        match self {
            Self::Values(schema) => values_in(schema, text).map(Given::Values),
            Self::Visit(_) if is_done(text) => Ok(Given::Values(Value::Object(Map::new()))),
            Self::Visit(url) => {
                Err(format!("open {url} and say `done` when you have done what it asks, or `{DECLINE}`"))
            }
        }
    }

    /// How to answer, in a few words.
    #[must_use]
    pub fn how(&self) -> String {
        let fields = self.fields();
        match fields.as_slice() {
            [] => "\"done\"".to_owned(),
            [one] => format!("\"{}\"", one.name),
            all => {
                let one = |field: &Field<'_>| format!("\"{}\": …", field.name);
                format!("'{{{}}}'", all.iter().map(one).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl CallForm {
    /// What came of it, by what was recorded for an answer.
    #[must_use]
    pub fn reply(&self, reply: &Reply) -> FormReply {
        let given = reply.text.as_deref().and_then(|text| self.form.read(text).ok());
        FormReply { id: self.id.clone(), given: given.unwrap_or(Given::Nothing), by: reply.by.clone() }
    }
}

/// `ann gave {"name":"x"}`, in a line.
impl fmt::Display for FormReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = self.by.as_deref().unwrap_or("nobody");
        match &self.given {
            Given::Values(values) => write!(f, "{by} gave {values}"),
            Given::Declined => write!(f, "{by} declined"),
            Given::Nothing => f.write_str("nobody answered in time"),
        }
    }
}

fn is_done(text: &str) -> bool {
    DONE.iter().any(|done| text.eq_ignore_ascii_case(done))
}

fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, of)| (name.as_str(), of))
}

fn fields(schema: &Value) -> Vec<Field<'_>> {
    let is_required =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let mut found = Vec::new();
    for (name, of) in properties(schema) {
        let about = of["description"].as_str().or_else(|| of["title"].as_str()).unwrap_or_default();
        found.push(Field { name, about, kind: kind(of), is_optional: !is_required(name) });
    }
    found
}

/// The type of a value and what it may be, in words.
fn kind(of: &Value) -> String {
    let allowed = |of: &Value| {
        let plain = of["enum"].as_array().map(|all| all.iter().map(shown).collect::<Vec<_>>());
        let titled = ["oneOf", "anyOf"].into_iter().find_map(|name| of[name].as_array());
        plain.or_else(|| titled.map(|all| all.iter().map(|one| shown(&one["const"])).collect()))
    };
    let listed = |all: Vec<String>| format!("one of {}", all.join(", "));
    let several = |of: &Value| {
        allowed(of).map_or_else(|| "texts".to_owned(), |all| format!("any of {}", all.join(", ")))
    };
    let mut kind = match (allowed(of), of["type"].as_str()) {
        (Some(all), _) => listed(all),
        (None, Some("array")) => several(&of["items"]),
        (None, Some("boolean")) => "true or false".to_owned(),
        (None, Some("integer")) => "a whole number".to_owned(),
        (None, Some("number")) => "a number".to_owned(),
        (None, _) => "text".to_owned(),
    };
    if let Some(format) = of["format"].as_str() {
        kind.push_str(&format!(" ({})", beginning(format, 30)));
    }
    if !of["default"].is_null() {
        kind.push_str(&format!(", {} if left out", shown(&of["default"])));
    }
    kind
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    beginning(&text, 60)
}

/// Why a schema cannot be put to a person.
fn schema_fault(schema: &Value) -> Option<String> {
    let bytes = schema.to_string().len();
    if bytes > MAX_QUESTION_BYTES {
        return Some(format!("the schema of the values has {bytes} bytes, {MAX_QUESTION_BYTES} is the most"));
    }
    if schema["type"] != "object" {
        return Some("the values asked for are an object".to_owned());
    }
    if properties(schema).count() > MAX_FIELDS {
        return Some(format!("at most {MAX_FIELDS} values are asked for at once"));
    }
    if let Some((name, _)) = properties(schema).find(|(_, of)| !is_plain(of)) {
        return Some(format!("{:?} is no plain value", beginning(name, 60)));
    }
    jsonschema::validator_for(schema)
        .err()
        .map(|error| format!("the schema of the values cannot be used: {error}"))
}

/// Whether it is a text, a number, a yes or no, or several texts of a list.
fn is_plain(of: &Value) -> bool {
    match of["type"].as_str() {
        Some("string" | "number" | "integer" | "boolean") => true,
        Some("array") => !matches!(of["items"]["type"].as_str(), Some("object" | "array")),
        Some(_) | None => false,
    }
}

fn values_in(schema: &Value, text: &str) -> Result<Value, String> {
    let mut values = written(schema, text)?;
    for (name, of) in properties(schema).filter(|(_, of)| !of["default"].is_null()) {
        values.entry(name).or_insert_with(|| of["default"].clone());
    }
    if let Some(unknown) = values.keys().find(|name| properties(schema).all(|(known, _)| known != *name)) {
        return Err(format!("{:?} is not asked for: {}", beginning(unknown, 60), wanted(schema)));
    }
    let values = Value::Object(values);
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| format!("nothing fits what is asked for: {error}"))?;
    let faults: Vec<String> =
        validator.iter_errors(&values).take(4).map(|fault| beginning(&fault.to_string(), 200)).collect();
    if faults.is_empty() { Ok(values) } else { Err(format!("{}: {}", faults.join("; "), wanted(schema))) }
}

/// The values as they are written, fitting or not.
fn written(schema: &Value, text: &str) -> Result<Map<String, Value>, String> {
    if text.starts_with('{') {
        let read = serde_json::from_str(text);
        return read.map_err(|error| format!("it is no JSON object ({error}): {}", wanted(schema)));
    }
    let fields = fields(schema);
    match fields.as_slice() {
        [] if is_done(text) => Ok(Map::new()),
        [one] => {
            Ok(std::iter::once((one.name.to_owned(), value_of(&schema["properties"][one.name], text)))
                .collect())
        }
        [] | [_, _, ..] => Err(wanted(schema)),
    }
}

/// What a text stands for where a value of this type is asked for.
fn value_of(of: &Value, text: &str) -> Value {
    let as_json = || serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    match of["type"].as_str() {
        Some("boolean") if ["yes", "true"].iter().any(|yes| text.eq_ignore_ascii_case(yes)) => {
            Value::Bool(true)
        }
        Some("boolean") if ["no", "false"].iter().any(|no| text.eq_ignore_ascii_case(no)) => {
            Value::Bool(false)
        }
        Some("array") if !text.starts_with('[') => {
            text.split(',').map(|one| Value::from(one.trim())).collect()
        }
        Some("boolean" | "number" | "integer" | "array") => as_json(),
        Some(_) | None => Value::from(text),
    }
}

/// What to say, in a sentence.
fn wanted(schema: &Value) -> String {
    let one = |field: &Field<'_>| {
        let optional = if field.is_optional { ", may be left out" } else { "" };
        format!("{:?} ({}{optional})", field.name, field.kind)
    };
    let fields = fields(schema);
    match fields.as_slice() {
        [] => format!("say `done`, or `{DECLINE}`"),
        all => {
            let all: Vec<String> = all.iter().map(one).collect();
            format!("give a JSON object with {}, or `{DECLINE}`", all.join(", "))
        }
    }
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
