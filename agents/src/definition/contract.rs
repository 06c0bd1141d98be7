//! The contract of a specialist: JSON Schemas of what it takes on and what it gives.

pub use muster_shared::contract::Schema;
use muster_shared::flow::ContractSchemas;

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
        let written = |schema: &Option<Schema>| schema.as_ref().map(|schema| schema.written().clone());
        ContractSchemas { input: written(&self.input), output: written(&self.output) }
    }
}
