//! A blueprint from a run that went well.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::names::is_name;
use super::render::{cut, harmless};
use super::{
    Blueprint, BlueprintStep, Filled, MAX_TEMPLATE_BYTES, MAX_VALUE_BYTES, Param, ParamKind, Problem,
    StepOutcome, check,
};
use crate::flow::{Plan, PlanTask, TaskStatus};
use crate::ids::{Role, TaskIndex};
use crate::plan::{order, reference};
use crate::run::{RunState, RunStatus};

/// Why a run cannot be made a blueprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// It did not end well.
    #[error("the run did not complete: only the plan of a run that went well is worth keeping")]
    NotCompleted,
    /// None of its tasks gave anything.
    #[error("no task of the run gave a result")]
    NoResult,
    /// What would come out of it cannot be used.
    #[error("the plan does not make a blueprint: {0}")]
    Unfit(Problem),
}

/// A blueprint made of a run, and what of the run it does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The blueprint.
    pub blueprint: Blueprint,
    /// What could not be kept, and why, one line each.
    pub lost: Vec<String>,
}

/// The plan of a run as a blueprint. Of a run that was worked on by one it is that blueprint, with its conditions, loops,
/// gates and failure blocks, and with the run's values for defaults. Of others it has a step for each task that gave a
/// result; the goal becomes a parameter, with the run's own goal for a default.
///
/// # Errors
/// When the run did not end well, or its plan does not make a blueprint.
pub fn save(run: &RunState, name: &str) -> Result<Saved, SaveError> {
    let Some(plan) = run.plan.as_ref().filter(|_| run.status == RunStatus::Completed) else {
        return Err(SaveError::NotCompleted);
    };
    let saved = match &run.goal.blueprint {
        Some(filled) => of_blueprint(run, plan, filled, name),
        None => of_plan(run, plan, name)?,
    };
    match check(&saved.blueprint).into_iter().next() {
        None => Ok(saved),
        Some(problem) => Err(SaveError::Unfit(problem)),
    }
}

fn of_blueprint(run: &RunState, plan: &Plan, filled: &Filled, name: &str) -> Saved {
    let mut blueprint = Blueprint { name: name.to_owned(), ..filled.blueprint.clone() };
    for (param, value) in &filled.params {
        if let Some(param) = blueprint.params.get_mut(param) {
            param.default = Some(value.clone());
        }
    }
    let is_of_a_step = |index: &TaskIndex| {
        run.planning.expansion.values().any(|outcome| match outcome {
            StepOutcome::Placed { tasks, fallback, .. } => tasks.contains(index) || fallback.contains(index),
            StepOutcome::LeftOut { .. } => false,
        })
    };
    let added = plan.leaves().filter(|(index, _)| !is_of_a_step(index));
    let lost = added.map(|(index, task)| {
        format!("{index} {}: it was added while the run went on, and is no step of its blueprint", task.name)
    });
    Saved { lost: lost.collect(), blueprint }
}

fn of_plan(run: &RunState, plan: &Plan, name: &str) -> Result<Saved, SaveError> {
    let gave =
        |index: &TaskIndex| run.planned(index).is_some_and(|task| task.status == TaskStatus::Completed);
    let leaves: Vec<(&TaskIndex, &PlanTask)> = plan.leaves().filter(|(index, _)| gave(index)).collect();
    if leaves.is_empty() {
        return Err(SaveError::NoResult);
    }
    let ids = ids(&leaves);
    let steps = leaves.iter().map(|(index, task)| step(plan, index, task, &ids)).collect();
    let param = Param {
        kind: ParamKind::String,
        description: "What a run is for".to_owned(),
        default: Some(Value::String(cut(&run.goal.text, MAX_VALUE_BYTES))),
        ..Param::default()
    };
    let blueprint = Blueprint {
        name: name.to_owned(),
        version: "1.0".to_owned(),
        description: cut(
            &format!("Saved from the run {}: {}", run.id.short(), run.goal.text),
            MAX_TEMPLATE_BYTES,
        ),
        goal: "{{params.goal}}".to_owned(),
        params: BTreeMap::from([("goal".to_owned(), param)]),
        output: BTreeMap::new(),
        steps,
    };
    let without = plan.leaves().filter(|(index, _)| !gave(index));
    let without = without.map(|(index, task)| format!("{index} {}: it gave no result", task.name));
    let parts = leaves.iter().flat_map(|(index, task)| lost_of(index, task));
    Ok(Saved { lost: without.chain(parts).collect(), blueprint })
}

/// What a step cannot say of a task.
fn lost_of(index: &TaskIndex, task: &PlanTask) -> Vec<String> {
    let PlanTask { name, goal, expected_output, tools, max_steps, blueprint, priority, .. } = task;
    let mut lost = Vec::new();
    let mut say = |what: &str| lost.push(format!("{index} {name}: {what}, which steps cannot say"));
    if !tools.is_empty() {
        say(&format!("that it needs the tools {}", tools.join(", ")));
    }
    if let Some(steps) = max_steps {
        say(&format!("that it has {steps} steps at most"));
    }
    if let Some(call) = blueprint {
        say(&format!("that it is done by the blueprint {}", call.name));
    }
    if *priority != 0 {
        say(&format!("its priority {priority}"));
    }
    if goal.len() > MAX_TEMPLATE_BYTES || expected_output.len() > MAX_TEMPLATE_BYTES {
        lost.push(format!(
            "{index} {name}: the end of its words, of which a step holds {MAX_TEMPLATE_BYTES} bytes"
        ));
    }
    lost
}

fn ids(leaves: &[(&TaskIndex, &PlanTask)]) -> BTreeMap<TaskIndex, String> {
    let (mut ids, mut used) = (BTreeMap::new(), BTreeSet::new());
    for (index, task) in leaves {
        let letters = task.name.to_lowercase();
        let words =
            letters.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let wanted: String = words.take(4).collect::<Vec<_>>().join("_").chars().take(32).collect();
        let wanted = wanted.trim_matches('_').to_owned();
        let plain = format!("step_{}", index.to_string().replace(['-', '~'], "_"));
        let fits = is_name(&wanted) && !super::names::RESERVED.contains(&wanted.as_str());
        let id = if fits && used.insert(wanted.clone()) { wanted } else { plain };
        ids.insert((*index).clone(), id);
    }
    ids
}

fn step(plan: &Plan, index: &TaskIndex, task: &PlanTask, ids: &BTreeMap<TaskIndex, String>) -> BlueprintStep {
    BlueprintStep {
        id: ids.get(index).cloned().unwrap_or_default(),
        name: cut(&task.name, MAX_TEMPLATE_BYTES),
        role: (task.role != Role::Worker).then(|| task.role.to_string()),
        goal: goal(plan, &task.goal, ids),
        expected_output: cut(&harmless(&task.expected_output), MAX_TEMPLATE_BYTES),
        milestones: task.milestones.clone(),
        after: order::dependencies(plan, index)
            .iter()
            .filter_map(|needed| ids.get(needed).cloned())
            .collect(),
        needs: task.needs.iter().map(|need| cut(&harmless(need), MAX_TEMPLATE_BYTES)).collect(),
        pattern: task.pattern.map(|pattern| pattern.to_string()),
        critical: task.critical,
        ..BlueprintStep::default()
    }
}

/// The goal of a task, with references to tasks turned into references to steps.
fn goal(plan: &Plan, text: &str, ids: &BTreeMap<TaskIndex, String>) -> String {
    let (mut goal, mut from) = (String::new(), 0);
    for (range, found) in reference::find(text) {
        goal.push_str(&harmless(&text[from..range.start]));
        if let Ok(found) = found {
            let steps = plan.leaves_of(&found.task).filter_map(|leaf| ids.get(leaf));
            let steps = steps.map(|id| format!("{{{{{id}.{}}}}}", found.field));
            goal.push_str(&steps.collect::<Vec<_>>().join("\n"));
        }
        from = range.end;
    }
    goal.push_str(&harmless(&text[from..]));
    cut(&goal, MAX_TEMPLATE_BYTES)
}
