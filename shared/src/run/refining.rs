//! Changes of a run's plan in the light of what was learnt.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::flow::RefusedOperation;

/// Changes of a run's plan: those that are wanted, and those that were made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Refining {
    /// What each refinement is to be for, by its number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wanted: BTreeMap<u32, Vec<String>>,
    /// What was changed by each, and what was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<(Vec<String>, Vec<RefusedOperation>)>,
    /// Those that came with a reflection: no refiner is asked for them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub by_reflection: BTreeSet<u32>,
}
