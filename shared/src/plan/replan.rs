//! Planning anew what is left of a run (P5). The past is never touched: what has begun or ended stays as it is, under
//! its index; what has not begun goes, and the new tasks come after the last.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{self, PlanProblem};
use super::draft::normal;
use super::reference::{self, Reference, TaskField};
use super::repair;
use super::rights;
use super::values::Values;
use crate::flow::{Plan, PlanDraft, PlanTask, RunLimits, TaskDraft, TaskStatus};
use crate::ids::{Role, TaskIndex};
use crate::run::Statuses;

/// A plan of which what was left was made anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replanned {
    /// The plan as it stands now.
    pub plan: Plan,
    /// What was changed, one line each.
    pub changes: Vec<String>,
}

/// Whether a draft is taken only if it is in order, or mended where it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rigour {
    /// What is wrong is said, and nothing is changed.
    Strict,
    /// What is wrong is mended by rule.
    Mend,
}

/// Where the first new task comes: after all that have ever been at the top of the plan.
#[must_use]
pub fn first_new(plan: &Plan) -> TaskIndex {
    let last = plan.children(None).map(|(index, _)| index.position()).max().unwrap_or(0);
    TaskIndex::top(last.saturating_add(1))
}

/// Replaces what has not begun by the tasks of the draft. These may depend on tasks of the old plan that ended well,
/// by index or name, and use the values of the run, if they are told of.
///
/// # Errors
/// What is wrong with the draft, one line each; of a draft that is mended only that it has nothing to do.
pub fn replan(
    plan: &Plan,
    statuses: &Statuses,
    draft: &PlanDraft,
    limits: &RunLimits,
    roles: &[Role],
    (rigour, values): (Rigour, Option<&Values>),
) -> Result<Replanned, Vec<String>> {
    let mut past = Past { plan, statuses, names: names(&draft.tasks), problems: Vec::new() };
    let mut own = draft.clone();
    let mut needs: Vec<(String, TaskIndex)> = Vec::new();
    past.detach_all(&mut own.tasks, &mut needs);
    let mut problems: Vec<String> = match rigour {
        Rigour::Strict => {
            let problems = check::check(&own, limits, roles);
            problems.iter().map(PlanProblem::to_string).chain(past.problems).collect()
        }
        Rigour::Mend => Vec::new(),
    };
    let (added, mut changes) = repair::repair(&own, limits, roles);
    if added.tasks.is_empty() {
        return Err(if problems.is_empty() { vec![PlanProblem::Empty.to_string()] } else { problems });
    }
    let mut merged = keep_begun(plan, statuses);
    let gone = plan.tasks.iter().filter(|(index, _)| !merged.tasks.contains_key(*index));
    changes.extend(gone.map(|(index, task)| format!("left out {index} {}, which had not begun", task.name)));
    let (offset, most) = (first_new(plan).position().saturating_sub(1), rights::common(plan));
    for (index, task) in &added.tasks {
        let at = shifted(index, offset);
        changes.push(format!("new task {at} {}", task.name));
        let attached = attached(task, offset, &needs, &merged.tasks);
        let rights = rights::met(attached.rights.clone(), most.clone());
        merged.tasks.insert(at, PlanTask { rights, ..attached });
    }
    if let Some(values) = values {
        let is_new = |index: &TaskIndex| !plan.tasks.contains_key(index);
        match rigour {
            Rigour::Strict => problems.extend(unwritten(values, &merged, is_new)),
            Rigour::Mend => changes.extend(values.mend(&mut merged, is_new)),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    merged.goal.clone_from(if added.goal.trim().is_empty() { &plan.goal } else { &added.goal });
    Ok(Replanned { plan: merged, changes })
}

/// What is wrong with the values that new tasks use.
fn unwritten(values: &Values, plan: &Plan, is_new: impl Fn(&TaskIndex) -> bool) -> Vec<String> {
    let is_old = |problem: &PlanProblem| matches!(problem, PlanProblem::UnwrittenContext { task, .. } if !is_new(task));
    let found = values.unwritten(plan).into_iter().filter(|problem| !is_old(problem));
    found.map(|problem| problem.to_string()).collect()
}

/// Removes the tasks with one of these names or goals from a draft. Returns the names that were found.
pub fn leave_out(tasks: &mut Vec<TaskDraft>, unwanted: &BTreeSet<String>) -> Vec<String> {
    let is = |text: &str| unwanted.iter().any(|known| normal(known) == normal(text));
    let is_unwanted = |task: &TaskDraft| is(&task.name) || is(&task.goal);
    let mut found: Vec<String> =
        tasks.extract_if(.., |task| is_unwanted(task)).map(|task| task.name).collect();
    for task in tasks {
        found.extend(leave_out(&mut task.subtasks, unwanted));
    }
    found
}

/// What has begun, with the tasks above it. Nothing of it waits for what is gone.
#[must_use]
pub fn keep_begun(plan: &Plan, statuses: &Statuses) -> Plan {
    let begun = |index: &TaskIndex| statuses.get(index).is_some_and(|status| *status != TaskStatus::Created);
    let leaves = plan.tasks.keys().filter(|index| begun(index) && plan.is_leaf(index));
    // A task that was split has begun, whether or not any of its parts has.
    let split = plan.tasks.keys().filter(|index| statuses.get(*index) == Some(&TaskStatus::Split));
    let mut kept: BTreeSet<TaskIndex> = BTreeSet::new();
    for index in leaves.chain(split) {
        kept.extend(std::iter::successors(Some(index.clone()), TaskIndex::parent));
    }
    let mut tasks: BTreeMap<TaskIndex, PlanTask> = plan.tasks.clone();
    tasks.retain(|index, _| kept.contains(index));
    for task in tasks.values_mut() {
        task.depends_on.retain(|needed| kept.contains(needed));
    }
    Plan { goal: plan.goal.clone(), tasks }
}

/// What a draft may refer to of the plan before it.
struct Past<'a> {
    plan: &'a Plan,
    statuses: &'a Statuses,
    /// Names of the draft's own tasks: they come first.
    names: BTreeSet<String>,
    problems: Vec<String>,
}

impl Past<'_> {
    /// Takes references to the past out of a draft, so that the rest can be checked and mended like any other.
    fn detach_all(&mut self, tasks: &mut [TaskDraft], needs: &mut Vec<(String, TaskIndex)>) {
        for task in tasks {
            let mut own = Vec::new();
            for text in std::mem::take(&mut task.depends_on) {
                match self.find(&text) {
                    Some(index) => self.need(task, &index, needs),
                    None => own.push(text),
                }
            }
            task.depends_on = own;
            task.goal = self.detach_references(task, needs);
            self.detach_all(&mut task.subtasks, needs);
        }
    }

    /// References to the past become words that no rule about references touches.
    fn detach_references(&mut self, task: &TaskDraft, needs: &mut Vec<(String, TaskIndex)>) -> String {
        let (mut goal, mut from) = (String::new(), 0);
        let written = reference::with_names(&task.goal, |name, field, _| {
            let field = TaskField::parse(field?)?;
            self.find(name).map(|task| Reference { task, field }.to_string())
        });
        for (range, found) in reference::find(&written) {
            let known = found.ok().filter(|found| self.find(&found.task.to_string()).is_some());
            if let Some(Reference { task: index, field }) = known {
                self.need(task, &index, needs);
                goal.push_str(&written[from..range.start]);
                goal.push_str(&format!("{OPEN}{index}.{field}{CLOSE}"));
                from = range.end;
            }
        }
        goal.push_str(&written[from..]);
        goal
    }

    fn need(&mut self, task: &TaskDraft, index: &TaskIndex, needs: &mut Vec<(String, TaskIndex)>) {
        let status = super::order::status_of(self.plan, self.statuses, index);
        if status == TaskStatus::Completed {
            needs.push((normal(&task.name), index.clone()));
        } else {
            self.problems.push(format!(
                "task {:?} depends on {index}, which is {status:?}: only what ended well can be built upon",
                task.name
            ));
        }
    }

    /// The task of the past that is meant, if none of the draft's own is.
    fn find(&self, text: &str) -> Option<TaskIndex> {
        let wanted = normal(text);
        if self.names.contains(&wanted) {
            return None;
        }
        if let Ok(index) = wanted.parse::<TaskIndex>() {
            return Some(index).filter(|index| self.plan.tasks.contains_key(index));
        }
        let mut named = self.plan.tasks.iter().filter(|(_, task)| normal(&task.name) == wanted);
        if let (Some((index, _)), None) = (named.next(), named.next()) { Some(index.clone()) } else { None }
    }
}

const OPEN: char = '⟦';
const CLOSE: char = '⟧';

fn names(tasks: &[TaskDraft]) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = tasks.iter().map(|task| normal(&task.name)).collect();
    found.extend(tasks.iter().flat_map(|task| names(&task.subtasks)));
    found
}

/// A task of the draft at its place in the whole plan.
fn attached(
    task: &PlanTask,
    offset: u16,
    needs: &[(String, TaskIndex)],
    kept: &BTreeMap<TaskIndex, PlanTask>,
) -> PlanTask {
    let mut depends_on: Vec<TaskIndex> =
        task.depends_on.iter().map(|needed| shifted(needed, offset)).collect();
    let name = normal(&task.name);
    // Tasks that were merged carry the names of both.
    let own = needs.iter().filter(|(of, _)| !of.is_empty() && name.split("; ").any(|part| part == of));
    depends_on.extend(own.map(|(_, index)| index.clone()).filter(|index| kept.contains_key(index)));
    depends_on.sort();
    depends_on.dedup();
    let goal = with_past(&with_shifted(&task.goal, offset), &depends_on);
    PlanTask { depends_on, goal, ..task.clone() }
}

fn with_shifted(goal: &str, offset: u16) -> String {
    let (mut text, mut from) = (String::new(), 0);
    for (range, found) in reference::find(goal) {
        let Ok(Reference { task, field }) = found else { continue };
        text.push_str(&goal[from..range.start]);
        text.push_str(&Reference { task: shifted(&task, offset), field }.to_string());
        from = range.end;
    }
    text.push_str(&goal[from..]);
    text
}

/// What was taken out by [`Past::detach_references`] comes back where the task waits for what it names.
fn with_past(goal: &str, depends_on: &[TaskIndex]) -> String {
    let mut text = String::new();
    let mut rest = goal;
    while let Some((before, after)) = rest.split_once(OPEN) {
        text.push_str(before);
        let Some((inside, after)) = after.split_once(CLOSE) else {
            rest = after;
            continue;
        };
        let index = inside.split('.').next().and_then(|index| index.parse::<TaskIndex>().ok());
        let known = index.filter(|index| depends_on.contains(index));
        match known {
            Some(_) => text.push_str(&format!("{{{{{inside}}}}}")),
            None => text.push_str(inside),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

fn shifted(index: &TaskIndex, offset: u16) -> TaskIndex {
    let mut parts = index.positions().iter();
    let first = parts.next().copied().unwrap_or(1).saturating_add(offset);
    parts.fold(TaskIndex::top(first), |above, part| above.child(*part))
}
