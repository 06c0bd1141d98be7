//! Who gave an order, by which anybody can tell who knows the fleet's public keys.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An order as it was signed: a durable command, or a request that became one. Kept in the record, so that it can be verified
/// whenever somebody wants to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct SignedOrder {
    /// Who signed it: the name in the credentials.
    pub by: String,
    /// What the credentials are for.
    #[serde(rename = "as")]
    pub kind: SignerKind,
    /// The subject that it was sent on.
    pub subject: String,
    /// The message as it was sent, in base64 without padding. Empty where it held a secret, which is not kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub payload: String,
    /// The signature of subject and message, and the JWT of whoever made it, as they stood in the message's header, but with
    /// `:`, `+`, `/` and `.`, `-`, `_` exchanged: a JWT as such is taken for a secret wherever it stands.
    pub signature: String,
}

/// What credentials are for by which an order was signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SignerKind {
    /// Whoever runs the fleet: he gives orders in the name of whoever he says.
    Operator,
    /// One person.
    Person,
    /// An orchestrator, for a run that has to do with another one.
    Orchestrator,
}

impl SignerKind {
    /// How it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Person => "person",
            Self::Orchestrator => "orchestrator",
        }
    }
}
