//! The contract of a specialist: JSON Schemas of what it takes on and what it gives.

use std::sync::Arc;

use jsonschema::Validator;
use muster_shared::flow::ContractSchemas;
use serde_json::Value;

/// Most faults that are named.
const MOST_FAULTS: usize = 8;
/// Longest text of one fault, in characters.
const MAX_FAULT: usize = 300;

/// Schemas, compiled.
#[derive(Debug, Clone, Default)]
pub struct Contract {
    /// Of what it takes on.
    pub input: Option<Schema>,
    /// Of what it gives.
    pub output: Option<Schema>,
}

impl Contract {
    /// The schemas as they were written.
    #[must_use]
    pub fn schemas(&self) -> ContractSchemas {
        let written = |schema: &Option<Schema>| schema.as_ref().map(|schema| (*schema.written).clone());
        ContractSchemas { input: written(&self.input), output: written(&self.output) }
    }
}

/// A JSON Schema, compiled.
#[derive(Debug, Clone)]
pub struct Schema {
    written: Arc<Value>,
    validator: Arc<Validator>,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(written: Value) -> Result<Self, String> {
        let validator = jsonschema::validator_for(&written).map_err(|error| {
            let at = error.instance_path().to_string();
            if at.is_empty() { error.to_string() } else { format!("{at}: {error}") }
        })?;
        Ok(Self { written: Arc::new(written), validator: Arc::new(validator) })
    }

    /// As it was written.
    #[must_use]
    pub fn written(&self) -> &Value {
        &self.written
    }

    /// What of a value does not fit, one line each, each beginning with the place in what `name` stands for.
    #[must_use]
    pub fn faults(&self, name: &str, value: &Value) -> Vec<String> {
        let faults = self.validator.iter_errors(value).take(MOST_FAULTS).map(|error| {
            let place = error.instance_path().to_string().replace('/', ".");
            let text: String = error.to_string().chars().take(MAX_FAULT).collect();
            format!("`{name}{place}`: {text}")
        });
        faults.collect()
    }
}
