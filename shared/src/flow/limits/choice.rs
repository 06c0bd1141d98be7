//! What a run chooses between.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How large the tasks of a plan are to be (P3).
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// A few large ones.
    Coarse,
    /// As the limits say.
    #[default]
    Normal,
    /// Many small ones.
    Fine,
}

impl Granularity {
    /// Most tasks of a coarse plan as planners make it; refinements may add to it.
    pub(super) const MOST_COARSE: u16 = 5;
}

/// Who writes the report.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Writing {
    /// A writer, from what all tasks gave.
    #[default]
    Always,
    /// A writer, unless the plan is one task alone: what that gave is the report.
    UnlessSingle,
}

/// Which results a model is asked about before they count (W8).
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ModelVerification {
    /// As the settings of whoever does the task have it.
    #[default]
    Own,
    /// None.
    Off,
    /// The cited statements of the report, compared with their lines.
    Cited,
    /// Those of tasks that the plan calls critical, and the cited statements of the report.
    Critical,
    /// Those of every leaf, and the report.
    All,
}
