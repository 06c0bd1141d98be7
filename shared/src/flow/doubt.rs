//! Statements that a model doubts when it compares them with their cited lines. A doubt proves nothing: the author answers it
//! once, and a statement that the author keeps is delivered as written.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A doubted statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Doubt {
    /// The statement, as the result contains it.
    pub statement: String,
    /// Kind of the doubt.
    pub kind: DoubtKind,
    /// Reason, in a few words.
    pub reason: String,
}

/// Kind of a doubt.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DoubtKind {
    /// The lines do not contain the statement.
    Unsupported,
    /// The lines state the opposite, or another name or value.
    Contradicted,
    /// The lines state less.
    Overstated,
}

impl DoubtKind {
    /// All kinds.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Its name in schemas and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// `contradicted: "It never waits.": it waits 5 s`.
impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {:?}: {}", self.kind.as_str(), self.statement, self.reason)
    }
}
