//! What was done about failures in a run so far.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::flow::{FailureKind, Response};
use crate::ids::{TaskId, TaskIndex};
use crate::time::Millis;

/// What was done about failures in a run so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ResponseHistory {
    /// Failures of all kinds that count against the error budget.
    #[serde(skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Whether the error budget is used up: nothing more is begun, and the report is written from what there is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub used_up: bool,
    /// Tries that failed one after the other for want of a model that gives usable answers, in the whole run.
    #[serde(skip_serializing_if = "is_zero")]
    pub model_failures: u32,
    /// What was tried for each task that failed since it was last opened.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<TaskId, Answers>,
    /// When leaves were first offered, where others may be kept waiting only so long.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub begun: BTreeMap<TaskIndex, Millis>,
    /// Leaves that go on, or went on, without what another was to give; and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub without: BTreeMap<TaskIndex, BTreeMap<TaskIndex, String>>,
}

/// How the failures of one task were answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

impl ResponseHistory {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The model that a task is tried with instead of the usual one.
    #[must_use]
    pub fn model(&self, task: &TaskId) -> Option<&String> {
        self.tasks.get(task)?.model.as_ref()
    }

    /// The tools that failed a task and are withheld from it.
    #[must_use]
    pub fn withheld(&self, task: &TaskId) -> Vec<String> {
        self.tasks.get(task).map(|answers| answers.withheld.iter().cloned().collect()).unwrap_or_default()
    }

    /// Whether a leaf does not wait for another any more.
    #[must_use]
    pub fn goes_without(&self, task: &TaskIndex, needed: &TaskIndex) -> bool {
        self.without.get(task).is_some_and(|without| without.contains_key(needed))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}
