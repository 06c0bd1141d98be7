//! What is wrong with a plan (P2, P3). The problems are sentences that a planner can mend its draft by.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::draft::{self, normal};
use super::order;
use super::reference;
use crate::flow::{Plan, PlanDraft, PlanTask, RunLimits};
use crate::ids::{Role, TaskIndex};

/// Longest name of a task, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

/// Longest goal, criticism or expected output of a task, in bytes.
pub const MAX_TEXT_BYTES: usize = 4 * 1024;

/// Most milestones, or needs, of a task.
pub const MAX_ITEMS: usize = 16;

/// Something wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum PlanProblem {
    /// There is no task.
    #[error("the plan has no task: give at least one")]
    Empty,
    /// More tasks than a plan may have.
    #[error("the plan has {tasks} tasks, {most} is the most: merge those that are alike")]
    TooMany {
        /// How many it has.
        tasks: usize,
        /// How many it may have.
        most: usize,
    },
    /// More children than a task may have.
    #[error("{} has {children} subtasks, {most} is the most: group or merge them", at(parent.as_ref()))]
    TooWide {
        /// The parent; nothing stands for the top of the plan.
        parent: Option<TaskIndex>,
        /// How many it has.
        children: usize,
        /// How many it may have.
        most: usize,
    },
    /// More levels than a plan may have.
    #[error("task {task} lies deeper than {most} levels: make it part of the task above")]
    TooDeep {
        /// The task.
        task: TaskIndex,
        /// How many levels there may be.
        most: usize,
    },
    /// A task without name or goal.
    #[error("task {task} has no {missing}")]
    EmptyTask {
        /// The task.
        task: TaskIndex,
        /// `name` or `goal`.
        missing: &'static str,
    },
    /// Two leaves of the same role with the same goal.
    #[error("task {task} is the same as task {first}: leave one out")]
    Duplicate {
        /// The later.
        task: TaskIndex,
        /// The earlier.
        first: TaskIndex,
    },
    /// A leaf with more milestones than one task may have.
    #[error(
        "task {task} has {milestones} milestones, {most} is the most of one task: split it into smaller ones"
    )]
    TooLarge {
        /// The task.
        task: TaskIndex,
        /// How many it has.
        milestones: usize,
        /// How many it may have.
        most: usize,
    },
    /// A role that no leaf can be given to.
    #[error("task {task} is for {role:?}, which is no role here: {}", known_roles(known))]
    UnknownRole {
        /// The task.
        task: TaskIndex,
        /// The role that was named.
        role: String,
        /// The roles there are.
        known: Vec<String>,
    },
    /// A pattern that there is not.
    #[error("task {task}: {reason}")]
    UnknownPattern {
        /// The task.
        task: TaskIndex,
        /// What is wrong with it, and what there is.
        reason: String,
    },
    /// A text longer than it may be.
    #[error("the {field} of task {task} has {bytes} bytes, {most} is the most")]
    TextTooLong {
        /// The task.
        task: TaskIndex,
        /// Which text.
        field: &'static str,
        /// Its length.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// A list longer than it may be.
    #[error("task {task} has {count} {field}, {MAX_ITEMS} is the most")]
    ListTooLong {
        /// The task.
        task: TaskIndex,
        /// Which list.
        field: &'static str,
        /// Its length.
        count: usize,
    },
    /// A dependency on what is not in the plan, or on a name that several tasks have.
    #[error(
        "task {task} depends on {dependency:?}, which is not the index or the name of one task of the plan"
    )]
    UnknownDependency {
        /// The task.
        task: TaskIndex,
        /// What it names.
        dependency: String,
    },
    /// A dependency on itself, a task above or a task below.
    #[error("task {task} depends on {dependency}, which it is part of or which is part of it")]
    OwnFamily {
        /// The task.
        task: TaskIndex,
        /// What it names.
        dependency: TaskIndex,
    },
    /// Tasks that wait for each other.
    #[error("these tasks wait for each other: {}", list(tasks))]
    Cycle {
        /// The leaves of the cycle, depth first.
        tasks: Vec<TaskIndex>,
    },
    /// A reference to the shared context that names no key of it.
    #[error("task {task}: {text} names no value of the shared context: write {{{{context.KEY}}}}")]
    MalformedContext {
        /// The task in whose goal it stands.
        task: TaskIndex,
        /// What stands there.
        text: String,
    },
    /// A value of the shared context that will not be there.
    #[error(
        "task {task} uses {{{{context.{key}}}}}, which nobody has written, and no task that it depends on says that it \
         writes it: name {key} in the goal of the task that writes it and depend on that task, or leave it out"
    )]
    UnwrittenContext {
        /// The task in whose goal it stands.
        task: TaskIndex,
        /// The key that has no value.
        key: String,
    },
    /// A reference that means nothing.
    #[error("task {task}: {text} does not refer to the result or the findings of a task of the plan")]
    UnknownReference {
        /// The task in whose goal it stands.
        task: TaskIndex,
        /// What stands there.
        text: String,
    },
    /// A placeholder without a result.
    #[error(
        "task {task}: {text} stands for nothing{}; write {{{{NAME.result}}}} or {{{{NAME.findings}}}} with the index or the name of \
         one task, or put it in backticks if it is meant as it is",
        near(.nearest)
    )]
    UnknownName {
        /// The task in whose goal it stands.
        task: TaskIndex,
        /// What stands there.
        text: String,
        /// The names that are nearest to it.
        nearest: Vec<String>,
    },
    /// A reference to a task that need not have ended.
    #[error("task {task} refers to {reference} but does not depend on it")]
    ReferenceWithoutDependency {
        /// The task in whose goal it stands.
        task: TaskIndex,
        /// The task it refers to.
        reference: TaskIndex,
    },
}

/// What is wrong with a draft. `roles` are those that leaves may be given to.
#[must_use]
pub fn check(draft: &PlanDraft, limits: &RunLimits, roles: &[Role]) -> Vec<PlanProblem> {
    let (plan, mut problems) = draft::read(draft);
    for problem in &mut problems {
        if let PlanProblem::UnknownRole { known, .. } = problem {
            *known = roles.iter().map(Role::to_string).collect();
        }
    }
    problems.extend(check_plan(&plan, limits, roles));
    problems
}

/// What is wrong with a plan. A plan with none of these can be executed to its end.
#[must_use]
pub fn check_plan(plan: &Plan, limits: &RunLimits, roles: &[Role]) -> Vec<PlanProblem> {
    let bounds = Bounds::of(limits);
    if plan.tasks.is_empty() {
        return vec![PlanProblem::Empty];
    }
    let mut problems = Vec::new();
    if plan.tasks.len() > bounds.tasks {
        problems.push(PlanProblem::TooMany { tasks: plan.tasks.len(), most: bounds.tasks });
    }
    check_shape(plan, &bounds, &mut problems);
    if plan.tasks.len() > bounds.readable() {
        return problems;
    }
    for (index, task) in &plan.tasks {
        check_texts(index, task, &mut problems);
        check_dependencies(plan, index, task, &mut problems);
        check_references(plan, index, task, &mut problems);
    }
    check_leaves(plan, roles, &mut problems);
    let large = plan.leaves().filter(|(_, task)| task.milestones.len() > bounds.milestones);
    problems.extend(large.map(|(index, task)| PlanProblem::TooLarge {
        task: index.clone(),
        milestones: task.milestones.len(),
        most: bounds.milestones,
    }));
    problems.extend(cycles(plan).into_iter().map(|tasks| PlanProblem::Cycle { tasks }));
    problems
}

/// The limits of a plan's shape. None is below 1: a plan of one task is always possible.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) width: usize,
    pub(super) depth: usize,
    pub(super) tasks: usize,
    pub(super) milestones: usize,
}

impl Bounds {
    pub(super) fn of(limits: &RunLimits) -> Self {
        Self {
            width: usize::from(limits.max_width.max(1)),
            depth: usize::from(limits.max_depth.max(1)).min(TaskIndex::MAX_DEPTH),
            tasks: usize::from(limits.max_tasks.max(1)),
            milestones: usize::from(limits.max_milestones.max(1)),
        }
    }

    /// Above this many tasks a plan is not looked at in detail, which takes more than linear time.
    pub(super) const fn readable(self) -> usize {
        self.tasks.saturating_mul(4)
    }
}

/// Leaves that wait for each other, one list per knot.
#[must_use]
pub fn cycles(plan: &Plan) -> Vec<Vec<TaskIndex>> {
    let needs: BTreeMap<&TaskIndex, BTreeSet<TaskIndex>> =
        plan.leaves().map(|(leaf, _)| (leaf, order::dependencies(plan, leaf))).collect();
    let needed: BTreeMap<&TaskIndex, BTreeSet<&TaskIndex>> =
        needs.keys().map(|leaf| (*leaf, needed_by(&needs, leaf))).collect();
    let wait_for_each_other = |one: &TaskIndex, other: &TaskIndex| {
        let waits = |one, other| needed.get(one).is_some_and(|needed| needed.contains(other));
        waits(one, other) && waits(other, one)
    };
    let knot = |leaf: &TaskIndex| -> Vec<TaskIndex> {
        let others = needs.keys().filter(|other| wait_for_each_other(leaf, other));
        others.map(|other| (*other).clone()).collect()
    };
    // Each knot once: by its first leaf.
    needs
        .keys()
        .map(|leaf| (*leaf, knot(leaf)))
        .filter(|(leaf, knot)| knot.first() == Some(*leaf))
        .map(|(_, knot)| knot)
        .collect()
}

/// The leaves that one waits for, whether at once or by way of others.
fn needed_by<'a>(
    needs: &BTreeMap<&'a TaskIndex, BTreeSet<TaskIndex>>,
    leaf: &TaskIndex,
) -> BTreeSet<&'a TaskIndex> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&TaskIndex> = vec![leaf];
    while let Some(next) = open.pop() {
        for needed in needs.get(next).into_iter().flatten() {
            if let Some((known, _)) = needs.get_key_value(needed)
                && found.insert(*known)
            {
                open.push(*known);
            }
        }
    }
    found
}

/// Whether one is the other, or lies above or below it.
pub(super) fn is_family(one: &TaskIndex, other: &TaskIndex) -> bool {
    one == other || one.is_below(other) || other.is_below(one)
}

fn check_shape(plan: &Plan, bounds: &Bounds, problems: &mut Vec<PlanProblem>) {
    let mut children: HashMap<Option<TaskIndex>, usize> = HashMap::new();
    for index in plan.tasks.keys() {
        *children.entry(index.parent()).or_default() += 1;
        if index.depth() == bounds.depth + 1 {
            problems.push(PlanProblem::TooDeep { task: index.clone(), most: bounds.depth });
        }
    }
    let mut wide: Vec<PlanProblem> = children
        .into_iter()
        .filter(|(_, children)| *children > bounds.width)
        .map(|(parent, children)| PlanProblem::TooWide { parent, children, most: bounds.width })
        .collect();
    wide.sort();
    problems.extend(wide);
}

fn check_texts(index: &TaskIndex, task: &PlanTask, problems: &mut Vec<PlanProblem>) {
    for (missing, text) in [("name", &task.name), ("goal", &task.goal)] {
        if text.trim().is_empty() {
            problems.push(PlanProblem::EmptyTask { task: index.clone(), missing });
        }
    }
    let mut limit = |field, text: &str, most| {
        if text.len() > most {
            problems.push(PlanProblem::TextTooLong { task: index.clone(), field, bytes: text.len(), most });
        }
    };
    limit("name", &task.name, MAX_NAME_BYTES);
    limit("goal", &task.goal, MAX_TEXT_BYTES);
    limit("criticism", &task.criticism, MAX_TEXT_BYTES);
    limit("expected output", &task.expected_output, MAX_TEXT_BYTES);
    for text in &task.milestones {
        limit("milestone", text, MAX_TEXT_BYTES);
    }
    for text in &task.needs {
        limit("need", text, MAX_TEXT_BYTES);
    }
    for text in &task.tools {
        limit("tool", text, MAX_TEXT_BYTES);
    }
    let lists = [("milestones", &task.milestones), ("needs", &task.needs), ("tools", &task.tools)];
    for (field, count) in lists.map(|(field, list)| (field, list.len())) {
        if count > MAX_ITEMS {
            problems.push(PlanProblem::ListTooLong { task: index.clone(), field, count });
        }
    }
}

fn check_dependencies(plan: &Plan, index: &TaskIndex, task: &PlanTask, problems: &mut Vec<PlanProblem>) {
    for needed in &task.depends_on {
        if !plan.tasks.contains_key(needed) {
            let dependency = needed.to_string();
            problems.push(PlanProblem::UnknownDependency { task: index.clone(), dependency });
        } else if is_family(index, needed) {
            problems.push(PlanProblem::OwnFamily { task: index.clone(), dependency: needed.clone() });
        }
    }
}

fn check_references(plan: &Plan, index: &TaskIndex, task: &PlanTask, problems: &mut Vec<PlanProblem>) {
    for (range, _) in reference::find_context(&task.goal).filter(|(_, found)| found.is_err()) {
        let text = task.goal[range].to_owned();
        problems.push(PlanProblem::MalformedContext { task: index.clone(), text });
    }
    for (range, reference) in reference::find(&task.goal) {
        let target = reference.ok().map(|found| found.task).filter(|task| plan.tasks.contains_key(task));
        let Some(target) = target else {
            let text = task.goal[range].to_owned();
            problems.push(PlanProblem::UnknownReference { task: index.clone(), text });
            continue;
        };
        let needed = order::dependencies(plan, index);
        if !plan.leaves_of(&target).all(|leaf| needed.contains(leaf)) {
            problems.push(PlanProblem::ReferenceWithoutDependency { task: index.clone(), reference: target });
        }
    }
}

fn check_leaves(plan: &Plan, roles: &[Role], problems: &mut Vec<PlanProblem>) {
    let mut seen: HashMap<(&Role, String), &TaskIndex> = HashMap::new();
    for (index, task) in plan.leaves() {
        if !roles.contains(&task.role) {
            problems.push(PlanProblem::UnknownRole {
                task: index.clone(),
                role: task.role.to_string(),
                known: roles.iter().map(Role::to_string).collect(),
            });
        }
        match seen.get(&(&task.role, normal(&task.goal))) {
            Some(first) => {
                problems.push(PlanProblem::Duplicate { task: index.clone(), first: (*first).clone() });
            }
            None => {
                seen.insert((&task.role, normal(&task.goal)), index);
            }
        }
    }
}

fn at(parent: Option<&TaskIndex>) -> String {
    parent.map_or_else(|| "the top of the plan".to_owned(), |index| format!("task {index}"))
}

/// Tasks by their places, with commas between.
pub(crate) fn list(tasks: &[TaskIndex]) -> String {
    tasks.iter().map(TaskIndex::to_string).collect::<Vec<_>>().join(", ")
}

fn near(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; nearest to it: {}", names.join(", ")) }
}

fn known_roles(known: &[String]) -> String {
    if known.is_empty() { "there is none".to_owned() } else { format!("there are {}", known.join(", ")) }
}
