//! Contracts of specialists: JSON Schemas of what they take on and of what they give. Whoever chooses an agent and the
//! agent itself judge by the same rule.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

use crate::flow::{ContractSide, ContractViolation};
use crate::text::quoted;

/// Most faults that are named.
const MOST_FAULTS: usize = 8;
/// Longest text of one fault, in characters.
const MAX_FAULT: usize = 300;
/// Longest text that says why a schema is none, in characters.
const MAX_REASON: usize = 1_000;
/// Most alternatives in a schema by how much JSON, in bytes, of which each is asked what is wrong with it: whoever asks them all
/// is given a copy of the value by each.
const MOST_ASKED: usize = 16 * 1024 * 1024;
/// Most fields of data that are read from a text.
const MOST_FIELDS: usize = 32;

/// A JSON Schema, compiled.
#[derive(Debug, Clone)]
pub struct Schema {
    written: Arc<Value>,
    validator: Arc<Validator>,
    /// How many alternatives it gives.
    alternatives: usize,
}

impl Schema {
    /// Largest schema, in bytes as JSON: it stands in every heartbeat's registry entry.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// Compiles a schema.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(written: Value) -> Result<Self, String> {
        let validator = jsonschema::validator_for(&written).map_err(|error| {
            let at = error.instance_path().to_string();
            quoted(&if at.is_empty() { error.to_string() } else { format!("{at}: {error}") }, MAX_REASON)
        })?;
        let alternatives = alternatives(&written);
        Ok(Self { written: Arc::new(written), validator: Arc::new(validator), alternatives })
    }

    /// As it was written.
    #[must_use]
    pub fn written(&self) -> &Value {
        &self.written
    }

    /// What of a value does not fit, one line each, each beginning with the place in what `name` stands for.
    #[must_use]
    pub fn faults(&self, name: &str, value: &Value) -> Vec<String> {
        // Most schemas give a few, and the value need not be measured.
        if self.alternatives > 16 && self.alternatives.saturating_mul(value.to_string().len()) > MOST_ASKED {
            let fault = || {
                format!("`{name}`: it does not fit, and the schema gives too many alternatives to say why")
            };
            return if self.validator.is_valid(value) { Vec::new() } else { vec![fault()] };
        }
        let faults = self.validator.iter_errors(value).take(MOST_FAULTS).map(|error| {
            let place = error.instance_path().to_string().replace('/', ".");
            quoted(&format!("`{name}{place}`: {error}"), MAX_FAULT)
        });
        faults.collect()
    }

    /// Why a task is not taken on of which this is asked, by what it is given (see
    /// [`given`](crate::flow::specialist::given)); nothing when it fits.
    #[must_use]
    pub fn refuses(&self, given: &Value) -> Option<ContractViolation> {
        let faults = self.faults("input", given);
        (!faults.is_empty()).then_some(ContractViolation { side: ContractSide::Input, faults })
    }

    /// Whether it names a field, at its top.
    #[must_use]
    pub fn names(&self, field: &str) -> bool {
        let properties = self.written.get("properties").and_then(|all| all.get(field));
        let required = self.written.get("required").and_then(Value::as_array);
        properties.is_some() || required.is_some_and(|all| all.iter().any(|name| name == field))
    }
}

/// How many alternatives stand in a schema, at whatever place.
fn alternatives(schema: &Value) -> usize {
    match schema {
        Value::Object(fields) => {
            let own =
                ["oneOf", "anyOf"].iter().filter_map(|name| fields.get(*name)?.as_array().map(Vec::len));
            own.sum::<usize>() + fields.values().map(alternatives).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(alternatives).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The fields of data that a text speaks of as `data.NAME`, each once, as written.
#[must_use]
pub fn fields_named(text: &str) -> Vec<String> {
    const MARK: &str = "data.";
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    let mut fields: Vec<String> = Vec::new();
    for (at, _) in text.match_indices(MARK) {
        let stands_apart = !text[..at].ends_with(|before: char| is_of_name(before) || before == '.');
        let rest = &text[at + MARK.len()..];
        let name = &rest[..rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len())];
        let is_new = stands_apart && !name.is_empty() && fields.iter().all(|known| known != name);
        if is_new && fields.len() < MOST_FIELDS {
            fields.push(name.to_owned());
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_not_copied_for_thousands_of_alternatives() {
        let each: Vec<Value> = (0..3_000).map(|number| json!({ "const": number })).collect();
        let schema = Schema::new(json!({ "oneOf": each })).unwrap();
        assert_eq!(schema.faults("input", &json!("x")).len(), 1);
        let large = json!(vec!["word"; 20_000]);
        assert!(schema.faults("input", &large)[0].contains("too many alternatives"));
        assert!(schema.faults("input", &json!(7)).is_empty());
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_place() {
        let schema = Schema::new(json!({"properties": {"documents": {"minimum": 1}}})).unwrap();
        assert_eq!(schema.refuses(&json!({"documents": 1})), None);
        let contract_violation = schema.refuses(&json!({"documents": 0})).unwrap();
        assert_eq!(contract_violation.side, ContractSide::Input);
        assert!(
            contract_violation.faults[0].starts_with("`input.documents`: 0 is less than"),
            "{contract_violation:?}"
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_or_elsewhere_ends() {
        for endless in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
        ] {
            // Refused or of no effect: it comes to an end.
            let _judged = Schema::new(endless).map(|schema| schema.refuses(&json!({"a": {"b": []}})));
        }
        assert!(Schema::new(json!({"$ref": "https://example.org/schema"})).is_err());
    }

    #[test]
    fn a_schema_names_what_it_lists_or_requires() {
        let schema = Schema::new(json!({"properties": {"a": {}}, "required": ["b"]})).unwrap();
        assert_eq!(["a", "b", "c"].map(|field| schema.names(field)), [true, true, false]);
        assert!(!Schema::new(json!(true)).unwrap().names("a"));
    }

    #[test]
    fn fields_are_read_from_texts() {
        for (text, fields) in [
            ("The sum, as data.total and `data.parts`; data.total once more.", &["total", "parts"][..]),
            ("All of the data. It is in metadata.json, my-data.csv or a.data.b.", &[]),
            ("data.", &[]),
            ("data.größe_1-x.y", &["größe_1-x"]),
        ] {
            assert_eq!(fields_named(text), fields, "{text}");
        }
    }
}
