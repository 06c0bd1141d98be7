//! The plan: a tree of tasks. A draft comes from a planner and nests; a plan is checked and flat.

use std::collections::BTreeMap;
use std::ops::Bound;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blueprints::BlueprintCall;
use super::pattern::Pattern;
use super::query::TaskQuery;
use super::rights::Rights;
use crate::ids::{Role, TaskIndex};

/// What a planner proposes, before any check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PlanDraft {
    /// The goal in the planner's words.
    #[serde(default)]
    pub goal: String,
    /// The tasks at the top of the plan.
    pub tasks: Vec<TaskDraft>,
    /// What has to be known before a plan can be made; asked of a person where the run's settings say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<String>,
    /// The parts of the goal that no task covers, as the planner states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
}

/// One proposed task, with its subtasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskDraft {
    /// A few words that name it.
    pub name: String,
    /// What is to be achieved.
    pub goal: String,
    /// Who should do it; a worker when absent. Ignored on tasks with subtasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What could go wrong with it.
    #[serde(default)]
    pub criticism: String,
    /// What must be reached on the way.
    #[serde(default)]
    pub milestones: Vec<String>,
    /// What the result must be.
    #[serde(default)]
    pub expected_output: String,
    /// Capabilities that are needed.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The tools that it needs, `corpus.*` for all that begin like this; all that its role may use when absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Indices or names of tasks whose results this one uses.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// Whether the run cannot succeed without it.
    #[serde(default)]
    pub critical: bool,
    /// Most steps, where it should get along with fewer than others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// How it is given out: `hierarchical`, `auction`, `committee:3` or `redundant:2`; as the run's settings say when
    /// absent. Ignored on tasks with subtasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The blueprint that it is done by, with values for its parameters as far as they are known. Ignored on tasks with
    /// subtasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blueprint: Option<BlueprintCall>,
    /// Among tasks that are ready, those of higher priority are begun first; 0 is usual. Holds for what lies below too.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub priority: i8,
    /// What it is for, in the form that rules read; nothing where whoever planned it said so in words alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<TaskQuery>,
    /// What it may use, where that is less than what its run may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rights: Option<Box<Rights>>,
    /// Smaller tasks that together make up this one.
    #[serde(default)]
    pub subtasks: Vec<TaskDraft>,
}

/// A checked plan: every task under its index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Plan {
    /// The goal in the planner's words.
    pub goal: String,
    /// All tasks, depth first.
    pub tasks: BTreeMap<TaskIndex, PlanTask>,
}

/// A node of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PlanTask {
    /// A few words that name it.
    pub name: String,
    /// What is to be achieved. May refer to results of other tasks: `{{1-2.result}}`.
    pub goal: String,
    /// Who does it, if it is a leaf.
    pub role: Role,
    /// What could go wrong with it.
    #[serde(default)]
    pub criticism: String,
    /// What must be reached on the way.
    #[serde(default)]
    pub milestones: Vec<String>,
    /// What the result must be.
    #[serde(default)]
    pub expected_output: String,
    /// Capabilities that are needed.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The tools that it needs, `corpus.*` for all that begin like this; all that its role may use when absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Tasks that must end before this one starts.
    #[serde(default)]
    pub depends_on: Vec<TaskIndex>,
    /// Whether the run cannot succeed without it.
    #[serde(default)]
    pub critical: bool,
    /// Most steps, where it should get along with fewer than others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// How it is given out, if it is a leaf; as the run's settings say when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// The blueprint that it is done by, if it is a leaf: whoever does it begins with a run by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blueprint: Option<BlueprintCall>,
    /// Among tasks that are ready, those of higher priority are begun first; 0 is usual. Holds for what lies below too.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub priority: i8,
    /// What it is for, in the form that rules read; nothing where whoever planned it said so in words alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<TaskQuery>,
    /// What it may use, where that is less than what its run may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rights: Option<Box<Rights>>,
}

impl PlanTask {
    /// A task with nothing but its name, its goal, and who does it.
    pub fn new(name: impl Into<String>, goal: impl Into<String>, role: Role) -> Self {
        Self {
            name: name.into(),
            goal: goal.into(),
            role,
            criticism: String::new(),
            milestones: Vec::new(),
            expected_output: String::new(),
            needs: Vec::new(),
            tools: Vec::new(),
            depends_on: Vec::new(),
            critical: false,
            max_steps: None,
            priority: 0,
            pattern: None,
            blueprint: None,
            query: None,
            rights: None,
        }
    }
}

impl Plan {
    /// The priority of a task: its own, else that of the nearest task above that has one.
    #[must_use]
    pub fn priority(&self, index: &TaskIndex) -> i8 {
        let way = std::iter::successors(Some(index.clone()), TaskIndex::parent);
        let mut own = way.filter_map(|index| self.tasks.get(&index).map(|task| task.priority));
        own.find(|priority| *priority != 0).unwrap_or(0)
    }

    /// The direct children of a task, or the top of the plan.
    pub fn children<'a>(
        &'a self,
        parent: Option<&'a TaskIndex>,
    ) -> impl Iterator<Item = (&'a TaskIndex, &'a PlanTask)> {
        self.tasks.iter().filter(move |(index, _)| index.parent().as_ref() == parent)
    }

    /// Whether a task is executed, as opposed to standing for those below it.
    #[must_use]
    pub fn is_leaf(&self, index: &TaskIndex) -> bool {
        // Depth-first order: what lies below a task comes right after it and its members.
        let after = self.tasks.range((Bound::Excluded(index), Bound::Unbounded)).map(|(other, _)| other);
        let mut elsewhere = after.skip_while(|other| other.is_same_place(index));
        self.tasks.contains_key(index) && !elsewhere.next().is_some_and(|other| other.is_below(index))
    }

    /// The leaves that a task stands for: those below it, or itself when it is a leaf.
    pub fn leaves_of<'a>(&'a self, index: &'a TaskIndex) -> impl Iterator<Item = &'a TaskIndex> {
        let from = self.tasks.range(index..).map(|(leaf, _)| leaf);
        from.take_while(|leaf| leaf.is_same_place(index) || leaf.is_below(index))
            .filter(move |leaf| (*leaf == index || leaf.is_below(index)) && self.is_leaf(leaf))
    }

    /// All tasks that are executed, depth first.
    pub fn leaves(&self) -> impl Iterator<Item = (&TaskIndex, &PlanTask)> {
        self.told_apart().filter(|(_, is_leaf)| *is_leaf).map(|(task, _)| task)
    }

    /// All tasks that stand for those below them, depth first.
    pub fn parents(&self) -> impl Iterator<Item = &TaskIndex> {
        self.told_apart().filter(|(_, is_leaf)| !is_leaf).map(|((index, _), _)| index)
    }

    /// All tasks, and whether each is a leaf: in one pass, see [`Self::is_leaf`].
    fn told_apart(&self) -> impl Iterator<Item = ((&TaskIndex, &PlanTask), bool)> {
        let mut rest = self.tasks.iter();
        std::iter::from_fn(move || {
            let (index, task) = rest.next()?;
            let mut elsewhere = rest.clone().skip_while(|(other, _)| other.is_same_place(index));
            let is_leaf = !elsewhere.next().is_some_and(|(other, _)| other.is_below(index));
            Some(((index, task), is_leaf))
        })
    }
}
