//! Changing a plan while it is carried out (P4). Every operation is looked at on its own: a good one is done,
//! a bad one is refused with its reason, and what has begun is never touched.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::check::{self, PlanProblem, check_plan, list};
use super::draft::{self, Names};
use super::tools::{self, Nameable};
use super::values::Values;
use super::{matching, order, reference, rights};
use crate::flow::{
    Plan, RefineOperation, RefusedOperation, Rights, RunLimits, Specialty, TaskDraft, TaskStatus,
};
use crate::ids::{Role, TaskIndex};
use crate::run::Statuses;

/// What became of a list of operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refined {
    /// The plan as it stands now.
    pub plan: Plan,
    /// What was changed, one line each; empty when nothing was.
    pub changes: Vec<String>,
    /// What was refused.
    pub refused: Vec<RefusedOperation>,
}

/// Fewest and most tasks that a leaf is split into.
pub const SPLIT_INTO: std::ops::RangeInclusive<usize> = 2..=4;

/// Carries out operations in order, as far as they are allowed. `roles` are those that leaves may be given to, `values` what
/// goals may use.
#[must_use]
pub fn refine(
    plan: &Plan,
    statuses: &Statuses,
    operations: &[RefineOperation],
    limits: &RunLimits,
    roles: &[Role],
    values: Option<&Values>,
) -> Refined {
    let mut chain = Chain { plan: plan.clone(), statuses: statuses.clone(), limits, roles, values };
    let (mut changes, mut refused) = (Vec::new(), Vec::new());
    let (mut done, mut exited) = (0, false);
    for operation in operations {
        let result = if exited {
            Err("it comes after the end of the list".to_owned())
        } else if done >= limits.max_refine_operations {
            Err(format!("a refinement has {} operations at most", limits.max_refine_operations))
        } else {
            chain.carry_out(operation)
        };
        match result {
            Ok(lines) => {
                done += 1;
                changes.extend(lines);
            }
            Err(reason) => refused.push(RefusedOperation { operation: operation.clone(), reason }),
        }
        exited |= matches!(operation, RefineOperation::Exit { .. });
    }
    Refined { plan: chain.plan, changes, refused }
}

/// What the operations of a refinement are held against.
#[derive(Debug, Clone, Copy)]
pub struct RefineRules<'a> {
    /// Limits of plans.
    pub limits: &'a RunLimits,
    /// Roles that leaves may be given to.
    pub roles: &'a [Role],
    /// What those of them are for that users defined.
    pub specialists: &'a [Specialty],
    /// Tools and blueprints that tasks may name.
    pub named: Nameable<'a>,
    /// What goals may use of the shared context, where that is checked.
    pub values: Option<&'a Values>,
}

/// [`refine`], with new tasks given to whoever can do them, and without what names tools that nobody has: the whole of what
/// becomes of a refiner's operations.
#[must_use]
pub fn refine_by(
    plan: &Plan,
    statuses: &Statuses,
    operations: &[RefineOperation],
    rules: &RefineRules<'_>,
) -> Refined {
    let mut operations = operations.to_vec();
    for operation in &mut operations {
        matching::give(tasks_in(operation), rules.roles, rules.specialists);
    }
    let (mut sound, mut unusable) = (Vec::new(), Vec::new());
    for operation in operations {
        match tasks_of(&operation).iter().find_map(|task| tools::problem(task, rules.named)) {
            Some(reason) => unusable.push(RefusedOperation { operation, reason }),
            None => sound.push(operation),
        }
    }
    let mut refined = refine(plan, statuses, &sound, rules.limits, rules.roles, rules.values);
    refined.refused.extend(unusable);
    refined
}

/// The tasks that an operation brings, to be given to whoever can do them.
fn tasks_in(operation: &mut RefineOperation) -> &mut [TaskDraft] {
    match operation {
        RefineOperation::Split { into, .. } => into,
        RefineOperation::Add { tasks, .. } => tasks,
        RefineOperation::Delete { .. } | RefineOperation::Exit { .. } => &mut [],
    }
}

/// The tasks that an operation brings.
fn tasks_of(operation: &RefineOperation) -> &[TaskDraft] {
    match operation {
        RefineOperation::Split { into, .. } => into,
        RefineOperation::Add { tasks, .. } => tasks,
        RefineOperation::Delete { .. } | RefineOperation::Exit { .. } => &[],
    }
}

struct Chain<'a> {
    plan: Plan,
    statuses: Statuses,
    limits: &'a RunLimits,
    roles: &'a [Role],
    values: Option<&'a Values>,
}

impl Chain<'_> {
    fn carry_out(&mut self, operation: &RefineOperation) -> Result<Vec<String>, String> {
        match operation {
            RefineOperation::Split { task, into } => self.split(task, into),
            RefineOperation::Add { after, tasks } => self.add(after, tasks),
            RefineOperation::Delete { task, reason } => self.delete(task, reason),
            RefineOperation::Exit { .. } => Ok(Vec::new()),
        }
    }

    fn split(&mut self, task: &TaskIndex, into: &[TaskDraft]) -> Result<Vec<String>, String> {
        let name = self.name(task)?;
        if !self.plan.is_leaf(task) {
            return Err(format!("{task} has subtasks already: split one of these"));
        }
        match self.status(task) {
            TaskStatus::Created
            | TaskStatus::Waiting
            | TaskStatus::Queued
            | TaskStatus::Processing
            | TaskStatus::Failed => {}
            status @ (TaskStatus::Completed
            | TaskStatus::Aborted
            | TaskStatus::Skipped
            | TaskStatus::Blocked
            | TaskStatus::Split) => {
                return Err(format!(
                    "{task} is {status:?}: only a failed, current or future task can be split"
                ));
            }
        }
        if !SPLIT_INTO.contains(&into.len()) {
            let (least, most) = (SPLIT_INTO.start(), SPLIT_INTO.end());
            return Err(format!("a task is split into {least} to {most}, not {}", into.len()));
        }
        let added: Vec<TaskIndex> = (1..).zip(into).map(|(position, _)| task.child(position)).collect();
        let rights = self.plan.tasks.get(task).and_then(|task| task.rights.clone());
        let mut changes = self.insert(&added, &no_more_than(rights.as_deref(), into))?;
        self.statuses.insert(task.clone(), TaskStatus::Split);
        changes.insert(0, format!("split {task} {name} into {}", list(&added)));
        Ok(changes)
    }

    fn add(&mut self, after: &TaskIndex, tasks: &[TaskDraft]) -> Result<Vec<String>, String> {
        let name = self.name(after)?;
        if tasks.is_empty() {
            return Err("it names no task to add".to_owned());
        }
        if self.status(after).is_ended() && !self.is_last_ended(after) {
            return Err(format!(
                "{after} is over and others after it are too: add after the last that ended"
            ));
        }
        // Indices are names, so that nothing that exists may move: new siblings come last.
        let parent = after.parent();
        let siblings = self.plan.children(parent.as_ref()).map(|(index, _)| index.position());
        let last = siblings.max().unwrap_or(0);
        let added: Vec<TaskIndex> = (1..=u16::MAX)
            .map_while(|offset| last.checked_add(offset))
            .zip(tasks)
            .map(|(at, _)| parent.as_ref().map_or_else(|| TaskIndex::top(at), |parent| parent.child(at)))
            .collect();
        // Whoever asks for more work gives it no more than it has itself.
        let rights = self.plan.tasks.get(after).and_then(|task| task.rights.clone());
        let mut changes = self.insert(&added, &no_more_than(rights.as_deref(), tasks))?;
        changes.insert(0, format!("added {} after {after} {name}", list(&added)));
        Ok(changes)
    }

    fn delete(&mut self, task: &TaskIndex, reason: &str) -> Result<Vec<String>, String> {
        let name = self.name(task)?;
        let gone: BTreeSet<TaskIndex> =
            self.plan.tasks.keys().filter(|index| *index == task || index.is_below(task)).cloned().collect();
        if let Some(begun) = gone.iter().find(|index| self.statuses_of(index) != TaskStatus::Created) {
            let status = self.statuses_of(begun);
            return Err(format!("{begun} is {status:?}: only what has not begun can be deleted"));
        }
        if self.plan.children(task.parent().as_ref()).count() == 1 {
            return Err(format!("{task} is the only task there: delete the task it is part of, or leave it"));
        }
        let user = self.plan.tasks.iter().find(|(index, other)| {
            let mut used = reference::find(&other.goal).filter_map(|(_, found)| found.ok());
            !gone.contains(*index) && used.any(|found| gone.contains(&found.task))
        });
        if let Some((user, _)) = user {
            return Err(format!("{user} uses its result"));
        }
        let mut plan = self.plan.clone();
        plan.tasks.retain(|index, _| !gone.contains(index));
        for other in plan.tasks.values_mut() {
            other.depends_on.retain(|needed| !gone.contains(needed));
        }
        self.adopt(plan)?;
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        Ok(vec![format!("deleted {task} {name}{because}")])
    }

    /// Puts new leaves at places that are free.
    fn insert(&mut self, places: &[TaskIndex], tasks: &[TaskDraft]) -> Result<Vec<String>, String> {
        if tasks.iter().any(|task| !task.subtasks.is_empty()) {
            return Err("the new tasks have subtasks: give leaves only".to_owned());
        }
        if places.len() < tasks.len() {
            return Err("there is no room for so many tasks".to_owned());
        }
        let mut plan = self.plan.clone();
        let known = plan.tasks.iter().map(|(index, task)| (index, task.name.as_str()));
        let mut names = Names::new(known);
        for (index, task) in places.iter().zip(tasks) {
            names.prefer(&index.to_string(), index);
            names.prefer(&task.name, index);
        }
        let mut problems = Vec::new();
        for (index, task) in places.iter().zip(tasks) {
            plan.tasks.insert(index.clone(), draft::plan_task(index, task, &names, &mut problems));
        }
        if let Some(problem) = problems.first() {
            return Err(problem.to_string());
        }
        self.adopt(plan)?;
        let line = |index: &TaskIndex| Some(format!("new task {index} {}", self.plan.tasks.get(index)?.name));
        Ok(places.iter().filter_map(line).collect())
    }

    /// Takes a plan over unless something is wrong with it that was not before, or what began would wait.
    fn adopt(&mut self, plan: Plan) -> Result<(), String> {
        let before: BTreeSet<PlanProblem> = self.wrong_with(&self.plan).collect();
        if let Some(problem) = self.wrong_with(&plan).find(|problem| !before.contains(problem)) {
            return Err(problem.to_string());
        }
        self.plan = plan;
        Ok(())
    }

    fn wrong_with(&self, plan: &Plan) -> impl Iterator<Item = PlanProblem> + use<> {
        let unwritten = self.values.map(|values| values.unwritten(plan)).unwrap_or_default();
        check_plan(plan, self.limits, self.roles).into_iter().chain(unwritten)
    }

    fn is_last_ended(&self, after: &TaskIndex) -> bool {
        let mut later =
            self.plan.leaves().filter(|(leaf, _)| *leaf > after && !check::is_family(leaf, after));
        !later.any(|(leaf, _)| self.statuses_of(leaf).is_ended())
    }

    fn name(&self, task: &TaskIndex) -> Result<String, String> {
        let found = self.plan.tasks.get(task).map(|task| task.name.clone());
        found.ok_or_else(|| format!("there is no task {task}"))
    }

    /// The state of a task, of a parent by what lies below it.
    fn status(&self, task: &TaskIndex) -> TaskStatus {
        order::status_of(&self.plan, &self.statuses, task)
    }

    /// The state as it was recorded.
    fn statuses_of(&self, task: &TaskIndex) -> TaskStatus {
        self.statuses.get(task).copied().unwrap_or(TaskStatus::Created)
    }
}

/// The tasks with no more rights than these.
fn no_more_than<'a>(most: Option<&Rights>, tasks: &'a [TaskDraft]) -> Cow<'a, [TaskDraft]> {
    let Some(most) = most else { return Cow::Borrowed(tasks) };
    let narrowed = |task: &TaskDraft| {
        let rights = rights::met(task.rights.clone(), Some(Box::new(most.clone())));
        TaskDraft { rights, ..task.clone() }
    };
    Cow::Owned(tasks.iter().map(narrowed).collect())
}
