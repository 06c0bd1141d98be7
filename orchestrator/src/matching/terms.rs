//! Contracts of agents, read once for all that have the same.

use muster_shared::contract::Schema;
use muster_shared::flow::{ContractSchemas, ContractViolation};
use serde_json::Value;

/// Largest contract that is looked at, in bytes as JSON: both its schemas, and what is around them.
const MAX_BYTES: usize = 2 * Schema::MAX_BYTES + 64;

/// A contract as agents announce it, in a form that is compared; empty when there is none, or one that is too large to
/// be looked at.
pub(super) fn text_of(contract: &ContractSchemas) -> String {
    if contract.is_empty() {
        return String::new();
    }
    let text = serde_json::to_string(contract).unwrap_or_default();
    if text.len() > MAX_BYTES { String::new() } else { text }
}

/// A contract, compiled.
#[derive(Debug)]
pub(super) struct Terms {
    input: Option<Schema>,
    output: Option<Schema>,
}

impl Terms {
    /// Reads a contract; nothing when it cannot be judged by: its agents are asked as if they had none.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let ContractSchemas { input, output } = serde_json::from_str(text).ok()?;
        let compiled = |schema: Option<Value>| schema.map(Schema::new).transpose().ok();
        Some(Self { input: compiled(input)?, output: compiled(output)? })
    }

    /// Why a task that is given this would be refused.
    pub(super) fn refuses(&self, given: &Value) -> Option<ContractViolation> {
        self.input.as_ref()?.refuses(given)
    }

    /// What of a result does not fit what is promised, one line each.
    pub(super) fn unkept(&self, data: Option<&Value>) -> Vec<String> {
        match (&self.output, data) {
            (None, _) => Vec::new(),
            (Some(output), Some(data)) => output.faults("data", data),
            (Some(_), None) => vec!["`data` is missing: the result is promised as data too".to_owned()],
        }
    }

    /// Whether results are promised to hold this field of data.
    pub(super) fn promises(&self, field: &str) -> bool {
        self.output.as_ref().is_some_and(|output| output.names(field))
    }
}
