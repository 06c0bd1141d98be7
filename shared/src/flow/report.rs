//! The answer.

use serde::{Deserialize, Serialize};

use super::artifact::Artifact;

/// The answer of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Report {
    /// One line.
    pub title: String,
    /// The whole report in Markdown.
    pub body: String,
    /// What was asked and could not be answered.
    pub unanswered: Vec<String>,
    /// Results that contradict each other, as the writer states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<String>,
    /// Whether it was made without a language model.
    pub offline: bool,
    /// Whether the run was stopped before its report was written: this is what its tasks had given until then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The files that the run's tasks made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
}
