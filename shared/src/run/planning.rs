//! What became of a run's plans: where they came from, how they were improved, and how often they failed.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::FailedPlan;
use crate::blueprint::StepOutcome;
use crate::flow::Plan;
use crate::ids::TaskIndex;

/// What became of a run's plans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Planning {
    /// The person's first words, where the goal was changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_goal: Option<String>,
    /// What earlier runs with a like goal taught.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<String>,
    /// Why no planner was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// How far the plan is.
    pub stage: PlanStage,
    /// Why plans were refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Vec<String>>,
    /// How many plans had been refused when the planner was last asked for another thing.
    pub refused_before: usize,
    /// The lessons by which the plan was improved, and what was changed for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterated: Option<Iterated>,
    /// What became of the steps of its blueprint, as far as that is decided.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub expansion: BTreeMap<String, StepOutcome>,
    /// The parts of the goal that no task covers, as the planner states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
    /// Tasks that failed one after the other, since the last one that ended well or since the plan was made anew.
    pub failures_in_a_row: u32,
    /// How often what was left was planned anew, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replans: Vec<Replan>,
    /// What there is to say of a run whose plans all failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up: Option<GivenUp>,
}

/// How far a run's plan is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStage {
    /// Nobody has given one that is in order.
    #[default]
    Awaited,
    /// The first draft is in order, and is improved from lessons of earlier runs before it is carried out.
    Improving(Plan),
    /// It is carried out.
    Adopted,
    /// What is left of it is to be planned anew, for these reasons.
    Replanning(Vec<String>),
}

/// How a plan was improved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Iterated {
    /// What earlier runs had taught.
    pub lessons: Vec<String>,
    /// What was changed, one line each.
    pub changes: Vec<String>,
}

/// One time that what was left was planned anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Replan {
    /// The plan that failed, and why.
    pub failed: FailedPlan,
    /// What was changed, one line each.
    pub changes: Vec<String>,
    /// The tasks that had ended.
    pub ended: BTreeSet<TaskIndex>,
    /// Names of the tasks that had not started and that the new plan left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<TaskIndex, String>,
}

/// What there is to say of a run whose plans all failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct GivenUp {
    /// The plans, in order.
    pub plans: Vec<FailedPlan>,
    /// What was learnt.
    pub lessons: Vec<String>,
    /// A simpler goal.
    pub simpler: String,
}

impl Planning {
    /// Whether what is left is to be planned anew.
    #[must_use]
    pub const fn is_replanning(&self) -> bool {
        matches!(self.stage, PlanStage::Replanning(_))
    }

    /// Why what is left is to be planned anew; empty when it is not.
    #[must_use]
    pub fn reasons_to_replan(&self) -> &[String] {
        if let PlanStage::Replanning(reasons) = &self.stage { reasons } else { &[] }
    }

    /// The first draft of the plan, while it is being improved.
    #[must_use]
    pub const fn first_draft(&self) -> Option<&Plan> {
        if let PlanStage::Improving(draft) = &self.stage { Some(draft) } else { None }
    }

    /// The number that the next new plan has, from 1.
    #[must_use]
    pub fn next_replan(&self) -> u32 {
        u32::try_from(self.replans.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Whether a later plan was made after this task had ended.
    #[must_use]
    pub fn is_superseded(&self, task: &TaskIndex) -> bool {
        self.replans.iter().any(|replan| replan.ended.contains(task))
    }
}
