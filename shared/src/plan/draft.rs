//! Reading a draft: a nested proposal becomes a flat plan, with what could not be understood as problems.

use std::collections::BTreeMap;

use super::check::PlanProblem;
use crate::flow::{Pattern, Plan, PlanDraft, PlanTask, TaskDraft};
use crate::ids::{Role, TaskIndex};

/// The draft as a plan, not checked yet: dependencies are indices, those that mean nothing are left out,
/// roles that mean nothing have become workers. Reads [`TaskIndex::MAX_DEPTH`] levels.
pub(super) fn read(draft: &PlanDraft) -> (Plan, Vec<PlanProblem>) {
    let mut problems = Vec::new();
    let flat = flatten(&draft.tasks, None, &mut problems);
    let names = Names::new(flat.iter().map(|(index, task)| (index, task.name.as_str())));
    let tasks = flat.iter().map(|(index, task)| {
        let planned = plan_task(index, task, &names, &mut problems);
        (index.clone(), planned)
    });
    let tasks = tasks.collect();
    (Plan { goal: draft.goal.clone(), tasks }, problems)
}

/// A plan as somebody proposes one, to be edited. Dependencies are named where only one task has the name, so that they
/// keep their meaning when tasks come and go.
#[must_use]
pub fn as_draft(plan: &Plan) -> PlanDraft {
    PlanDraft { goal: plan.goal.clone(), tasks: drafts_below(plan, None), questions: Vec::new() }
}

fn drafts_below(plan: &Plan, parent: Option<&TaskIndex>) -> Vec<TaskDraft> {
    let names = Names::new(plan.tasks.iter().map(|(index, task)| (index, task.name.as_str())));
    let called = |index: &TaskIndex| match plan.tasks.get(index) {
        Some(task) if names.find(&task.name) == Some(index) => task.name.clone(),
        Some(_) | None => index.to_string(),
    };
    let draft = |(index, task): (&TaskIndex, &PlanTask)| {
        let subtasks = drafts_below(plan, Some(index));
        TaskDraft {
            name: task.name.clone(),
            goal: task.goal.clone(),
            role: subtasks.is_empty().then(|| task.role.to_string()),
            criticism: task.criticism.clone(),
            milestones: task.milestones.clone(),
            expected_output: task.expected_output.clone(),
            needs: task.needs.clone(),
            tools: task.tools.clone(),
            depends_on: task.depends_on.iter().map(called).collect(),
            critical: task.critical,
            max_steps: task.max_steps,
            priority: task.priority,
            pattern: task.pattern.map(|pattern| pattern.to_string()),
            blueprint: task.blueprint.clone(),
            subtasks,
        }
    };
    plan.children(parent).map(draft).collect()
}

/// What tasks may be called in a dependency: their index, or their name where only one has it.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, Vec<TaskIndex>>);

impl Names {
    pub(super) fn new<'a>(tasks: impl Iterator<Item = (&'a TaskIndex, &'a str)>) -> Self {
        let mut names = Self::default();
        for (index, name) in tasks {
            names.add(index.to_string(), index);
            names.add(normal(name), index);
        }
        names
    }

    /// Later names come on top: a new task may be called by a name that an old one has.
    pub(super) fn prefer(&mut self, name: &str, index: &TaskIndex) {
        self.0.insert(normal(name), vec![index.clone()]);
    }

    fn add(&mut self, name: String, index: &TaskIndex) {
        let indices = self.0.entry(name).or_default();
        if !indices.contains(index) {
            indices.push(index.clone());
        }
    }

    fn find(&self, text: &str) -> Option<&TaskIndex> {
        match self.0.get(&normal(text)).map(Vec::as_slice) {
            Some([index]) => Some(index),
            Some(_) | None => None,
        }
    }
}

/// One task of a draft as a task of a plan at `index`.
pub(super) fn plan_task(
    index: &TaskIndex,
    task: &TaskDraft,
    names: &Names,
    problems: &mut Vec<PlanProblem>,
) -> PlanTask {
    let mut depends_on = Vec::new();
    for text in &task.depends_on {
        match names.find(text) {
            Some(needed) => depends_on.push(needed.clone()),
            None => problems
                .push(PlanProblem::UnknownDependency { task: index.clone(), dependency: text.clone() }),
        }
    }
    depends_on.sort();
    depends_on.dedup();
    PlanTask {
        name: task.name.trim().to_owned(),
        goal: task.goal.trim().to_owned(),
        role: role(index, task, problems),
        criticism: task.criticism.trim().to_owned(),
        milestones: task.milestones.clone(),
        expected_output: task.expected_output.trim().to_owned(),
        needs: task.needs.clone(),
        tools: task.tools.clone(),
        depends_on,
        critical: task.critical,
        max_steps: task.max_steps.filter(|most| *most > 0),
        priority: task.priority,
        pattern: pattern(index, task, problems),
        blueprint: task.blueprint.clone().filter(|_| task.subtasks.is_empty()),
    }
}

/// Lower case, single spaces: how texts are compared.
pub(crate) fn normal(text: &str) -> String {
    text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

fn role(index: &TaskIndex, task: &TaskDraft, problems: &mut Vec<PlanProblem>) -> Role {
    let Some(text) = &task.role else { return Role::Worker };
    text.trim().to_lowercase().parse().unwrap_or_else(|_| {
        if task.subtasks.is_empty() {
            problems.push(PlanProblem::UnknownRole {
                task: index.clone(),
                role: text.clone(),
                known: Vec::new(),
            });
        }
        Role::Worker
    })
}

fn pattern(index: &TaskIndex, task: &TaskDraft, problems: &mut Vec<PlanProblem>) -> Option<Pattern> {
    let read = task.pattern.as_ref().map(|text| text.parse::<Pattern>())?;
    match read {
        Ok(pattern) => task.subtasks.is_empty().then_some(pattern),
        Err(reason) => {
            problems.push(PlanProblem::UnknownPattern { task: index.clone(), reason });
            None
        }
    }
}

fn flatten<'a>(
    tasks: &'a [TaskDraft],
    above: Option<&TaskIndex>,
    problems: &mut Vec<PlanProblem>,
) -> Vec<(TaskIndex, &'a TaskDraft)> {
    let mut flat = Vec::new();
    for (position, task) in (1..=u16::MAX).zip(tasks) {
        let index = above.map_or_else(|| TaskIndex::top(position), |above| above.child(position));
        let below = if index.depth() < TaskIndex::MAX_DEPTH {
            flatten(&task.subtasks, Some(&index), problems)
        } else {
            if !task.subtasks.is_empty() {
                problems.push(PlanProblem::TooDeep { task: index.clone(), most: TaskIndex::MAX_DEPTH });
            }
            Vec::new()
        };
        flat.push((index, task));
        flat.extend(below);
    }
    flat
}
