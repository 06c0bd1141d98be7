//! Blueprints (R7): plans that were written beforehand, with parameters. A blueprint is filled with values, checked
//! before anything runs, and expands into the tasks of a run while its steps end. Pure: the same blueprint, values and
//! results give the same tasks.
//!
//! - [`parse()`] reads one from TOML, and says of each problem in which line and column it stands;
//! - [`check()`] finds what can be found without values;
//! - [`fill()`] puts values into the parameters;
//! - [`expand()`] says which tasks follow from what has ended so far.

mod check;
mod expand;
mod expression;
mod fill;
mod layout;
mod names;
mod parse;
mod render;
mod save;
mod shipped;
mod template;

use std::collections::BTreeMap;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::flow::Rights;
use crate::ids::TaskIndex;

pub use check::{Problem, check, check_limits, check_lists};
pub use expand::{ApprovalQuestion, BlueprintProgress, Ended, Expansion, expand};
pub use fill::{FillError, fill, fill_text, missing, schema};
pub use parse::{Located, MAX_FILE_BYTES, parse, write};
pub use render::{REPORT_PARTS, missing_parts};
pub use save::{SaveError, Saved, save};
pub use shipped::{shipped, shipped_names};

/// Most steps of a blueprint.
pub const MAX_STEPS: usize = 40;

/// Most steps of a failure block.
pub const MAX_FALLBACK: usize = 3;

/// Most parameters.
pub const MAX_PARAMS: usize = 24;

/// Longest text that a blueprint may hold in one place, in bytes. With values in it, it may be longer.
pub const MAX_TEMPLATE_BYTES: usize = 2 * 1024;

/// Longest value of a parameter, in bytes.
pub const MAX_VALUE_BYTES: usize = 2 * 1024;

/// Most items of a list that is given for a parameter.
pub const MAX_VALUES: usize = 64;

/// Class of each key in the file of a project: a new key does not compile without one. All are harmless or narrowing: a
/// blueprint defines tasks, these have at most the rights of the run, and its approvals and rights only reduce them.
const _: fn(Blueprint, BlueprintStep) =
    |Blueprint { name: _, version: _, description: _, goal: _, params: _, output: _, steps: _ },
     BlueprintStep {
         id: _,
         name: _,
         role: _,
         goal: _,
         expected_output: _,
         milestones: _,
         after: _,
         needs: _,
         pattern: _,
         critical: _,
         condition: _,
         for_each: _,
         approval: _,
         rights: _,
         fallback: _,
     }| {};
const _: fn(FallbackStep) = |FallbackStep { name: _, role: _, goal: _, expected_output: _ }| {};

/// A plan written beforehand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Blueprint {
    /// What it is called by: lower case letters, digits and `_`.
    pub name: String,
    /// Its version, such as `1.0`.
    pub version: String,
    /// What it is for, in a sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The goal of a run by it. May name parameters: `{{params.topic}}`.
    pub goal: String,
    /// What has to be given, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Param>,
    /// The parts that the report has, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub output: BTreeMap<String, Part>,
    /// What is done.
    pub steps: Vec<BlueprintStep>,
}

/// A parameter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Param {
    /// What kind of value it takes.
    #[serde(default, rename = "type")]
    pub kind: ParamKind,
    /// What it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether a run cannot do without it. One that has a default need not be given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The value when none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The values it may have, or that the items of a list may have; any when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}

/// The kind of a parameter's value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ParamKind {
    /// Text.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// A list of texts.
    List,
}

/// A part of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// What stands in it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether the report is incomplete without it.
    #[serde(default = "yes")]
    pub required: bool,
}

const fn yes() -> bool {
    true
}

/// A step: a task of the run, or one task for each item of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BlueprintStep {
    /// What other steps call it by: `{{id.result}}`.
    pub id: String,
    /// A few words that name it; the id when absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Who does it; a worker when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What is to be achieved.
    pub goal: String,
    /// What the result must be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expected_output: String,
    /// What must be reached on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub milestones: Vec<String>,
    /// Steps that end before it begins, besides those that it refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Capabilities that are needed; of the agents of its role, who has most of them is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// How it is given out: `hierarchical`, `auction`, `committee:3` or `redundant:2`; as the run's settings say when
    /// absent. Where it is done for each item of a list, this holds of each. Its failure block goes by the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Whether the run cannot succeed without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// It is done only if this holds: `params.depth == "deep" and scan.ok`.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// It is done once for each item of this list, which stands as `{{item}}` in its texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<String>,
    /// It begins only after a person said yes to this question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// What whoever does it, or what is done instead, may use, where that is less than what the run may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rights: Option<Box<Rights>>,
    /// What is done instead when it gives nothing, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<FallbackStep>,
}

impl BlueprintStep {
    /// A few words that name it.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.name.trim().is_empty() { &self.id } else { self.name.trim() }
    }
}

/// A step of a failure block. The result of the last one stands for that of the step that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FallbackStep {
    /// A few words that name it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Who does it; a worker when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What is to be achieved. Why the step failed is added to it.
    pub goal: String,
    /// What the result must be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expected_output: String,
}

/// A blueprint with values for its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Filled {
    /// The blueprint.
    pub blueprint: Blueprint,
    /// The values, by parameter. Those with a default are among them.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// It stands in the plan.
    Placed {
        /// Its leaves.
        tasks: Vec<TaskIndex>,
        /// The leaves of its failure block, once that was needed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fallback: Vec<TaskIndex>,
        /// What was left out of it, and why.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
        /// How many items of its list were left out.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        left_out: u32,
    },
    /// It is not done.
    LeftOut {
        /// Why.
        reason: String,
    },
}
