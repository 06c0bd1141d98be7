//! What a task is for, as fields. Whoever plans by rule says it beside the words of the goal, so that whoever works by
//! rule need not read it out of them again. Language models are told the goal alone, and neither read nor write this.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a task is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskQuery {
    /// Documents are searched for the answer to a question.
    Search(SearchQuery),
    /// Expressions are computed.
    Compute {
        /// As the calculator takes them.
        expressions: Vec<String>,
    },
    /// The citations of the tasks that it builds on are looked up.
    CheckCitations,
}

/// A question to documents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct SearchQuery {
    /// The question.
    pub question: String,
    /// Other words to search with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Whether the question was searched for before, with its own words alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub widened: bool,
}
