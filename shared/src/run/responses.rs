//! What was done about failures in a run so far.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::{FailureKind, Response};

/// What was done about failures in a run so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct ResponseHistory {
    /// Failures of all kinds that count against the error budget.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub failures: u32,
    /// Whether the error budget is used up: nothing more is begun, and the report is written from what there is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub used_up: bool,
    /// Tries that failed one after the other for want of a model that gives usable answers, in the whole run.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub model_failures: u32,
}

/// How the failures of one task were answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Answers {
    /// How often each response was given.
    pub given: BTreeMap<Response, u32>,
    /// What failed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<FailureKind>,
    /// The model that tries it now, instead of the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tools that failed it and are withheld from now on.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub withheld: BTreeSet<String>,
    /// Why its result counts only in part, if it was taken all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked: Option<String>,
}

impl Answers {
    /// Whether no failure was answered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
