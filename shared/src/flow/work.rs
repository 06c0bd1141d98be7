//! What is to be done in a task, with all that its agent needs to know of the run.

use std::collections::BTreeMap;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blueprints::BlueprintBrief;
use super::draft_review::{DraftReview, Revision};
use super::group::Membership;
use super::outcome::{Ending, StepDigest, TaskResult};
use super::plan::{Plan, PlanDraft, PlanTask};
use super::query::TaskQuery;
use super::reflection::Reflection;
use super::report::Report;
use super::specialist::Specialty;
use super::task::TaskStatus;
use crate::ids::TaskIndex;

/// What is to be done, by kind. Carries all that the agent needs to know of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Split the goal into a plan.
    Plan {
        /// Why an earlier plan of this run was refused.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<String>,
        /// Roles that leaves may be given to.
        roles: Vec<String>,
        /// What earlier runs with a like goal taught.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lessons: Vec<String>,
        /// What those of them are for that users defined.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        specialists: Vec<Specialty>,
        /// The tools that a task may be narrowed to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
        /// The blueprints that a task may be done by.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blueprints: Vec<BlueprintBrief>,
        /// A plan that is to be improved from what earlier runs taught, instead of a new one (P6).
        #[serde(skip_serializing_if = "Option::is_none")]
        draft: Option<Box<Plan>>,
        /// What is left of the run is to be planned anew (P5).
        #[serde(skip_serializing_if = "Option::is_none")]
        replan: Option<Box<ReplanBrief>>,
        /// What people answered to the planner's questions: question and answer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        answers: Vec<(String, String)>,
        /// The plan that was refused last.
        #[serde(skip_serializing_if = "Option::is_none")]
        refused_plan: Option<Box<PlanDraft>>,
        /// What else the plan is held against.
        held_to: Box<HeldTo>,
    },
    /// Do a leaf.
    Execute {
        /// The leaf; references in its goal are resolved.
        task: PlanTask,
        /// Results of the tasks it depends on.
        inputs: Vec<LeafRef>,
        /// Goals of the tasks above it, outermost first.
        parents: Vec<String>,
        /// The progress tree, as text.
        progress: String,
        /// Lessons from tasks that ended before.
        #[serde(default)]
        lessons: Vec<String>,
        /// How an earlier generation of this task failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        failed_before: Option<String>,
        /// What this task gave before it was opened again, to be checked rather than found anew.
        #[serde(skip_serializing_if = "Option::is_none")]
        earlier: Option<Box<TaskResult>>,
        /// Tasks it depends on that gave nothing: index, name, and why. It goes on without them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<(TaskIndex, String, String)>,
        /// Whether its agent may say that what is left of the goal has to be planned.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_plan: bool,
        /// The committee or group that it is done in, by whoever is a member.
        #[serde(skip_serializing_if = "Option::is_none")]
        member: Option<Box<Membership>>,
    },
    /// Reflect on a leaf that ended.
    Reflect {
        /// The leaf.
        index: TaskIndex,
        /// The leaf as planned.
        task: PlanTask,
        /// How it ended.
        ending: Ending,
        /// Why, in a sentence.
        reason: String,
        /// What it gave.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<TaskResult>,
        /// What it did.
        steps: Vec<StepDigest>,
        /// The progress tree, as text.
        progress: String,
        /// Whether a sentence or two will do.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        brief: bool,
        /// What a change of plan is held against, where one may be brought with the reflection.
        #[serde(skip_serializing_if = "Option::is_none")]
        refine: Option<Box<RefineBrief>>,
    },
    /// Change the plan.
    Refine {
        /// The plan as it stands.
        plan: Plan,
        /// The progress tree, as text.
        progress: String,
        /// What the reflections ask for.
        reasons: Vec<String>,
        /// Reflections so far.
        reflections: Vec<(TaskIndex, Reflection)>,
        /// Results so far.
        results: Vec<LeafRef>,
        /// Operations that may be used.
        operations_left: u32,
        /// Roles that new tasks may be given to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        roles: Vec<String>,
        /// What those of them are for that users defined.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        specialists: Vec<Specialty>,
        /// The tools that a new task may be narrowed to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
        /// The blueprints that a new task may be done by.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blueprints: Vec<BlueprintBrief>,
        /// What else the operations are held against.
        held_to: Box<HeldTo>,
    },
    /// Write the report.
    Write {
        /// What every leaf gave, in order.
        results: Vec<LeafRef>,
        /// Leaves that gave nothing: index, name, and why.
        failed: Vec<(TaskIndex, String, String)>,
        /// What the reflections found uncovered in the end.
        uncovered: Vec<String>,
        /// Where results contradict each other, and what became of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<ConflictBrief>,
        /// The draft that is to be written again, and what was said of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        revision: Option<Box<Revision>>,
    },
    /// Review the draft of the report.
    DraftReview {
        /// The draft.
        draft: Box<Report>,
        /// What every leaf gave, in order.
        results: Vec<LeafRef>,
        /// Leaves that gave nothing: index, name, and why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<(TaskIndex, String, String)>,
        /// What the reflections found uncovered in the end.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        uncovered: Vec<String>,
        /// Where results contradict each other, and what became of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<ConflictBrief>,
        /// What was said of the draft before this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        earlier: Option<Box<DraftReview>>,
    },
}

impl Work {
    /// The task of the plan that is to be done, if it is a leaf.
    #[must_use]
    pub const fn leaf(&self) -> Option<&PlanTask> {
        if let Self::Execute { task, .. } = self { Some(task) } else { None }
    }
}

/// What a plan, or a change of one, is held against besides the limits, roles and tools that an offer names: whoever
/// makes it can look by the same rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct HeldTo {
    /// How far the tasks of the plan are, as a change of it sees them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<TaskIndex, TaskStatus>,
    /// The keys of the shared context that have a value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
}

/// What whoever reflects is told of the plan, to change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RefineBrief {
    /// The plan as it stands.
    pub plan: Plan,
    /// Operations that may be used.
    pub operations_left: u32,
    /// Roles that new tasks may be given to.
    pub roles: Vec<String>,
    /// The tools that a new task may be narrowed to.
    pub tools: Vec<String>,
    /// The blueprints that a new task may be done by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blueprints: Vec<BlueprintBrief>,
    /// What else the operations are held against.
    pub held_to: HeldTo,
}

/// What a writer is told of results that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ConflictBrief {
    /// What they are about.
    pub subject: String,
    /// Who claimed what, one line each.
    pub claimed: Vec<String>,
    /// What holds, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// How that is known, or why it is not.
    pub why: String,
}

/// What a planner is told of a plan that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ReplanBrief {
    /// The plan as it stands.
    pub plan: Plan,
    /// The progress tree, as text.
    pub progress: String,
    /// Why what is left is to be planned anew.
    pub reasons: Vec<String>,
    /// What the leaves that ended well gave.
    pub results: Vec<LeafRef>,
    /// What was learnt in this run.
    pub lessons: Vec<String>,
    /// The index of the first new task.
    pub first: TaskIndex,
    /// How many more times a plan may be made after this.
    pub left: u32,
    /// Whether nothing failed: one agent began with the whole goal, and asks for a plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked_for: bool,
}

/// A leaf and what it gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LeafRef {
    /// The leaf.
    pub index: TaskIndex,
    /// Its name.
    pub name: String,
    /// Its goal.
    pub goal: String,
    /// What it was for, in the form that rules read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<TaskQuery>,
    /// What it gave.
    pub result: TaskResult,
}
