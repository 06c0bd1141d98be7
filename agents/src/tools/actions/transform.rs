//! `transform`: a text in another form. What can be computed is computed; the rest is put to the model.

use async_trait::async_trait;
use muster_shared::text::numerals;
use serde_json::{Map, Value, json};

use super::think::{MAX_MATERIAL, needs_a_model};
use super::{Thinking, one_text, text_of};
use crate::tools::spec::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

pub(super) const TRANSFORM: &str = "transform";
/// The forms that are computed.
const COMPUTED: [&str; 8] = [
    "sorted lines",
    "unique lines",
    "numbered lines",
    "upper case",
    "lower case",
    "csv to json",
    "json to csv",
    "numbers",
];

pub(super) struct Transform;

#[async_trait]
impl Tool for Transform {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            TRANSFORM,
            format!(
                "Gives a text another form and keeps its content. Computed, and so exact: {}. Any other form is written by \
                 the model: another language, a table, a shorter text.",
                COMPUTED.join(", ")
            ),
            json!({
                "text": {"type": "string", "minLength": 1, "maxLength": MAX_MATERIAL},
                "into": {"type": "string", "minLength": 1, "maxLength": 500}
            }),
            &["text", "into"],
        )
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let (text, into) = (text_of(&arguments, "text"), text_of(&arguments, "into"));
        match computed(text, into) {
            Some(made) => made.map(ToolOutput::text).map_err(ToolFailure::InvalidArguments),
            None => Err(needs_a_model(TRANSFORM)),
        }
    }
}

pub(super) fn by_model(arguments: &Value) -> Option<Thinking> {
    let (text, into) = (text_of(arguments, "text"), text_of(arguments, "into"));
    if text.is_empty() || into.is_empty() || text.len() > MAX_MATERIAL || is_computed(into) {
        return None;
    }
    Some(Thinking {
        system: "You give a text another form for an agent. Keep its content: add nothing, and leave out nothing that the \
                 form does not ask to leave out."
            .to_owned(),
        text: format!("Form: {into}\n\nText:\n{text}"),
        schema: one_text(),
    })
}

fn is_computed(into: &str) -> bool {
    COMPUTED.contains(&into.to_lowercase().as_str())
}

/// The text in a form that is computed, or what is wrong with it; nothing when the form is none of those.
fn computed(text: &str, into: &str) -> Option<Result<String, String>> {
    let lines = || text.lines().map(str::to_owned).collect::<Vec<_>>();
    Some(match into.to_lowercase().as_str() {
        "sorted lines" => {
            let mut lines = lines();
            lines.sort();
            Ok(lines.join("\n"))
        }
        "unique lines" => {
            let mut seen = std::collections::BTreeSet::new();
            Ok(lines().into_iter().filter(|line| seen.insert(line.clone())).collect::<Vec<_>>().join("\n"))
        }
        "numbered lines" => {
            let numbered = (1..).zip(lines()).map(|(number, line)| format!("{number}. {line}"));
            Ok(numbered.collect::<Vec<_>>().join("\n"))
        }
        "upper case" => Ok(text.to_uppercase()),
        "lower case" => Ok(text.to_lowercase()),
        "csv to json" => from_csv(text),
        "json to csv" => to_csv(text),
        "numbers" => {
            Ok(numerals(text).into_iter().map(|number| &text[number.at]).collect::<Vec<_>>().join("\n"))
        }
        // Any other form needs a model.
        _ => return None,
    })
}

fn from_csv(text: &str) -> Result<String, String> {
    let mut rows = records(text)?.into_iter();
    let head = rows.next().ok_or("there is no first line with the names of the columns")?;
    let object = |row: Vec<String>| {
        let fields = head.iter().zip(row).map(|(name, value)| (name.clone(), Value::String(value)));
        Value::Object(fields.collect::<Map<_, _>>())
    };
    serde_json::to_string_pretty(&rows.map(object).collect::<Vec<_>>()).map_err(|error| error.to_string())
}

/// The records of comma-separated text. A field in double quotes may hold commas, line breaks, and quotes written twice.
fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut characters) = (false, text.chars().peekable());
    while let Some(c) = characters.next() {
        match (c, quoted) {
            ('"', true) if characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            ('"', true) => quoted = false,
            ('"', false) if field.trim().is_empty() => {
                field.clear();
                quoted = true;
            }
            (',', false) => row.push(std::mem::take(&mut field)),
            ('\n', false) => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            ('\r', false) => {}
            (c, _) => field.push(c),
        }
    }
    if quoted {
        return Err("a double quote is not closed".to_owned());
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows.retain(|row| row.iter().any(|field| !field.trim().is_empty()));
    Ok(rows)
}

fn to_csv(text: &str) -> Result<String, String> {
    let rows: Vec<Map<String, Value>> = serde_json::from_str(text)
        .map_err(|error| format!("the text is no JSON list of objects: {error}"))?;
    let mut head: Vec<&String> = Vec::new();
    for name in rows.iter().flat_map(Map::keys) {
        if !head.contains(&name) {
            head.push(name);
        }
    }
    let line = |fields: Vec<String>| fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",");
    let field = |value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let first = line(head.iter().map(|name| (*name).clone()).collect());
    let rest = rows.iter().map(|row| line(head.iter().map(|name| field(row.get(*name))).collect()));
    Ok(std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n"))
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_computed_is_computed() {
        let table = [
            ("b\na", "sorted lines", "a\nb"),
            ("b\na\nb", "unique lines", "b\na"),
            ("b\na", "Numbered Lines", "1. b\n2. a"),
            ("Ab", "upper case", "AB"),
            ("Ab", "lower case", "ab"),
            ("from 1,200 to -3.5.", "numbers", "1,200\n-3.5"),
            ("[{\"a\": 1, \"b\": \"x, y\"}, {\"c\": null}]", "json to csv", "a,b,c\n1,\"x, y\",\n,,"),
        ];
        for (text, into, made) in table {
            assert_eq!(computed(text, into).unwrap().unwrap(), made, "{into}");
        }
        assert!(computed("x", "French").is_none());
        assert!(computed("no json", "json to csv").unwrap().unwrap_err().contains("list of objects"));
    }

    #[test]
    fn csv_keeps_what_stands_in_quotes() {
        let made = computed("name,said\nada,\"yes, \"\"no\"\"\"\n", "csv to json").unwrap().unwrap();
        let made: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(made, json!([{"name": "ada", "said": "yes, \"no\""}]));
        assert!(computed("a\n\"b", "csv to json").unwrap().is_err());
    }

    #[test]
    fn another_form_is_put_to_the_model() {
        assert!(by_model(&json!({"text": "x", "into": "French"})).is_some());
        assert_eq!(by_model(&json!({"text": "x", "into": "upper case"})), None);
    }
}
