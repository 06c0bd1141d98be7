//! Reading a draft: a nested proposal becomes a flat plan, with what could not be understood as problems.

use std::collections::BTreeMap;

use super::check::PlanProblem;
use super::reference::{self, Reference, TaskField};
use super::rights;
use crate::flow::{Pattern, Plan, PlanDraft, PlanTask, TaskDraft};
use crate::ids::{Role, TaskIndex};
use crate::text::nearest_name;

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
    let mut plan = Plan { goal: draft.goal.clone(), tasks: tasks.collect() };
    rights::hand_down(&mut plan);
    (plan, problems)
}

/// A plan as somebody proposes one, to be edited. Dependencies are named where only one task has the name, so that they
/// keep their meaning when tasks come and go.
#[must_use]
pub fn as_draft(plan: &Plan) -> PlanDraft {
    PlanDraft { goal: plan.goal.clone(), tasks: drafts_below(plan, None), ..PlanDraft::default() }
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
            query: task.query.clone(),
            rights: task.rights.clone(),
            subtasks,
        }
    };
    plan.children(parent).map(draft).collect()
}

/// What tasks may be called in a dependency: their index, or their name where only one has it.
#[derive(Debug, Default)]
pub(super) struct Names {
    as_written: BTreeMap<String, Vec<TaskIndex>>,
    /// By their words alone: `iteration-limits` is "Iteration limits".
    by_words: BTreeMap<String, Vec<TaskIndex>>,
    shown: Vec<String>,
}

impl Names {
    pub(super) fn new<'a>(tasks: impl Iterator<Item = (&'a TaskIndex, &'a str)>) -> Self {
        let mut names = Self::default();
        for (index, name) in tasks {
            add(&mut names.as_written, index.to_string(), index);
            add(&mut names.as_written, normal(name), index);
            add(&mut names.by_words, in_words(name), index);
            names.shown.push(name.trim().to_owned());
        }
        names
    }

    /// Later names come on top: a new task may be called by a name that an old one has.
    pub(super) fn prefer(&mut self, name: &str, index: &TaskIndex) {
        self.as_written.insert(normal(name), vec![index.clone()]);
        self.by_words.insert(in_words(name), vec![index.clone()]);
        self.shown.push(name.trim().to_owned());
    }

    fn find(&self, text: &str) -> Option<&TaskIndex> {
        let named = self.as_written.get(&normal(text)).or_else(|| self.by_words.get(&in_words(text)));
        match named.map(Vec::as_slice) {
            Some([index]) => Some(index),
            Some(_) | None => None,
        }
    }

    /// A goal with references by index in place of those by name, and the placeholders that stand for nothing. Braces
    /// around other words are none.
    pub(super) fn with_indices(&self, goal: &str) -> (String, Vec<String>) {
        let mut unknown = Vec::new();
        let text = reference::with_names(goal, |name, field, whole| {
            match (self.find(name), field.map(TaskField::parse)) {
                (Some(task), Some(Some(field))) => {
                    return Some(Reference { task: task.clone(), field }.to_string());
                }
                (None, None) => {}
                (Some(_), _) | (None, Some(_)) => unknown.push(whole.to_owned()),
            }
            None
        });
        (text, unknown)
    }

    /// The name nearest to a text, by edit distance.
    fn nearest(&self, text: &str) -> Vec<String> {
        let shown = self.shown.iter().map(String::as_str);
        nearest_name(&in_words(text), shown).map(str::to_owned).into_iter().collect()
    }
}

fn add(names: &mut BTreeMap<String, Vec<TaskIndex>>, name: String, index: &TaskIndex) {
    let indices = names.entry(name).or_default();
    if !indices.contains(index) {
        indices.push(index.clone());
    }
}

/// A name as its words alone, in lower case.
fn in_words(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The text of a goal with references by index in place of those by name, as somebody writes it for a plan that is there.
///
/// # Errors
/// What names no task, or more than one.
pub fn goal_with_indices(plan: &Plan, at: &TaskIndex, goal: &str) -> Result<String, PlanProblem> {
    let names = Names::new(plan.tasks.iter().map(|(index, task)| (index, task.name.as_str())));
    let (goal, unknown) = names.with_indices(goal);
    match unknown.into_iter().next() {
        Some(text) => Err(PlanProblem::UnknownName { task: at.clone(), nearest: names.nearest(&text), text }),
        None => Ok(goal),
    }
}

/// A draft in which nothing is wrong, as a plan. Nothing of it is changed.
#[must_use]
pub fn as_given(draft: &PlanDraft) -> Plan {
    read(draft).0
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
    let (goal, unknown) = names.with_indices(task.goal.trim());
    problems.extend(unknown.into_iter().map(|text| PlanProblem::UnknownName {
        task: index.clone(),
        nearest: names.nearest(&text),
        text,
    }));
    PlanTask {
        name: task.name.trim().to_owned(),
        goal,
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
        query: task.query.clone(),
        rights: task.rights.clone().filter(|rights| !rights.is_open()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(goals: [&str; 3]) -> (Plan, Vec<PlanProblem>) {
        let names = ["Iteration limits", "token-budget", "sum"];
        let tasks = names.iter().zip(goals).map(|(name, goal)| TaskDraft {
            name: (*name).into(),
            goal: goal.into(),
            depends_on: if *name == "sum" { vec!["1".into(), "2".into()] } else { Vec::new() },
            ..TaskDraft::default()
        });
        read(&PlanDraft { goal: "g".into(), tasks: tasks.collect(), ..PlanDraft::default() })
    }

    #[test]
    fn references_by_name_are_read_as_references_by_index() {
        for (goal, read) in [
            ("Use {{Iteration limits.result}}.", "Use {{1.result}}."),
            ("Use {{ iteration-limits.findings }}.", "Use {{1.findings}}."),
            ("Use {{token_budget.result}} and {{1.result}}.", "Use {{2.result}} and {{1.result}}."),
            ("Use {{context.limit}} and {{other}}.", "Use {{context.limit}} and {{other}}."),
            ("Explain `{{ user.name }}`.", "Explain `{{ user.name }}`."),
        ] {
            let (plan, problems) = plan(["a", "b", goal]);
            assert_eq!(problems, [], "{goal}");
            assert_eq!(plan.tasks[&TaskIndex::top(3)].goal, read);
        }
    }

    #[test]
    fn a_planner_that_insists_has_the_name_made_words() {
        let tasks = ["a", "Use {{nobody.result}} and {{A.result}}."].map(|goal| TaskDraft {
            name: goal.chars().take(1).collect(),
            goal: goal.into(),
            depends_on: if goal == "a" { Vec::new() } else { vec!["a".into()] },
            ..TaskDraft::default()
        });
        let draft = PlanDraft { goal: "g".into(), tasks: tasks.to_vec(), ..PlanDraft::default() };
        let limits = crate::flow::RunLimits::default();
        assert!(!crate::plan::check(&draft, &limits, &[Role::Worker]).is_empty());
        let (plan, notes) = crate::plan::repair(&draft, &limits, &[Role::Worker]);
        let goal = &plan.tasks[&TaskIndex::top(2)].goal;
        assert_eq!(goal, "Use “nobody.result” and {{1.result}}.");
        assert!(notes.iter().any(|note| note.contains("{{nobody.result}}")), "{notes:?}");
    }

    #[test]
    fn a_name_that_no_task_has_is_told_with_the_nearest() {
        let (plan, problems) = plan(["a", "b", "Use {{iteration limit.result}}."]);
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(
            said[0].contains("{{iteration limit.result}}")
                && said[0].contains("nearest to it: Iteration limits"),
            "{said:?}"
        );
        let index = TaskIndex::top(3);
        for text in ["{{zzz.result}}", "{{zzz.summary}}", "{{sum.summary}}", "`{{zzz.result}}`", "{{sum}}"] {
            assert!(goal_with_indices(&plan, &index, text).is_err(), "{text}");
        }
        let good = goal_with_indices(&plan, &index, "Use {{token budget.result}}.");
        assert_eq!(good.as_deref(), Ok("Use {{2.result}}."));
    }
}
