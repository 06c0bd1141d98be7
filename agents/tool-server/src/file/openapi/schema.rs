//! Schemas of OpenAPI as JSON Schemas of arguments: references put in, and nothing kept that says more than what may be given.

use serde_json::{Map, Value, json};

use super::document::Document;

/// Deepest nesting, references counted.
const MOST_DEPTH: usize = 24;
/// Most parts of the schema of one operation.
const MOST_PARTS: usize = 4_000;

/// What is left of a schema, word by word. What the endpoint looks at itself (patterns, formats) and what other drafts mean
/// otherwise is left out.
const KEPT: [&str; 14] = [
    "type",
    "enum",
    "const",
    "default",
    "title",
    "description",
    "required",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// Makes schemas of those of a document.
pub(super) struct Schemas<'a> {
    document: &'a Document,
    left: usize,
    /// The references that are being put in.
    open: Vec<String>,
}

impl<'a> Schemas<'a> {
    pub(super) const fn of(document: &'a Document) -> Self {
        Self { document, left: MOST_PARTS, open: Vec::new() }
    }

    /// A schema with its references put in.
    pub(super) fn inlined(&mut self, schema: &Value) -> Result<Value, String> {
        self.at_depth(schema, MOST_DEPTH)
    }

    fn at_depth(&mut self, schema: &Value, depth: usize) -> Result<Value, String> {
        self.left =
            self.left.checked_sub(1).ok_or_else(|| format!("its schema has more than {MOST_PARTS} parts"))?;
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!("its schema is nested more than {MOST_DEPTH} levels deep"));
        };
        let fields = match schema {
            Value::Bool(_) => return Ok(schema.clone()),
            Value::Object(fields) => fields,
            _ => {
                return Err("a part of its schema is no schema".to_owned());
            }
        };
        if let Some(to) = fields.get("$ref") {
            return self.referred(to, depth);
        }
        let mut kept = Map::new();
        for (name, value) in fields {
            let value = match name.as_str() {
                "properties" => self.named(value, depth)?,
                "items" | "additionalProperties" | "not" => self.at_depth(value, depth)?,
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => self.listed(value, depth)?,
                word if KEPT.contains(&word) => value.clone(),
                // Words of a schema are open.
                _ => continue,
            };
            kept.insert(name.clone(), value);
        }
        if fields.get("nullable") == Some(&Value::Bool(true)) {
            nullable(&mut kept);
        }
        Ok(Value::Object(kept))
    }

    fn referred(&mut self, to: &Value, depth: usize) -> Result<Value, String> {
        let to = to.as_str().ok_or_else(|| "a `$ref` is no text".to_owned())?;
        if self.open.iter().any(|open| open == to) {
            let shown = muster_shared::text::beginning(to, 120);
            return Err(format!("its schema {shown:?} refers to itself"));
        }
        self.open.push(to.to_owned());
        let document = self.document;
        let inlined = document.at(to).and_then(|schema| self.at_depth(schema, depth));
        self.open.pop();
        inlined
    }

    fn named(&mut self, all: &Value, depth: usize) -> Result<Value, String> {
        let all = all.as_object().ok_or_else(|| "`properties` of its schema is no table".to_owned())?;
        let one = |(name, schema): (&String, &Value)| Ok((name.clone(), self.at_depth(schema, depth)?));
        all.iter().map(one).collect::<Result<Map<_, _>, String>>().map(Value::Object)
    }

    fn listed(&mut self, all: &Value, depth: usize) -> Result<Value, String> {
        let all = all.as_array().ok_or_else(|| "a part of its schema is no list".to_owned())?;
        all.iter().map(|schema| self.at_depth(schema, depth)).collect::<Result<Vec<_>, _>>().map(Value::Array)
    }
}

/// What 3.0 says by `nullable` is a type of its own in 3.1.
fn nullable(schema: &mut Map<String, Value>) {
    if let Some(Value::String(kind)) = schema.get("type") {
        let kinds = json!([kind, "null"]);
        schema.insert("type".to_owned(), kinds);
    }
    if let Some(Value::Array(all)) = schema.get_mut("enum")
        && !all.contains(&Value::Null)
    {
        all.push(Value::Null);
    }
}
