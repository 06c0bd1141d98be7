//! What was learnt from a task (M1).

use serde::{Deserialize, Serialize};

/// Posterior knowledge of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Reflection {
    /// What was done and what came of it.
    pub summary: String,
    /// What the task says of the plan.
    pub on_plan: Vec<String>,
    /// What it says of the tools.
    pub on_tools: Vec<ToolNote>,
    /// What the task was to cover and did not.
    pub uncovered: Vec<String>,
    /// Why the plan should be refined; absent when it should not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refine: Option<String>,
}

/// What a task says of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolNote {
    /// The tool.
    pub tool: String,
    /// The note.
    pub note: String,
}
