//! A blueprint from a run that went well.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::names::is_name;
use super::render::{cut, harmless};
use super::{
    Blueprint, BlueprintStep, MAX_TEMPLATE_BYTES, MAX_VALUE_BYTES, Param, ParamKind, Problem, check,
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

/// The plan of a run as a blueprint: a step for each task that gave a result. Its goal becomes a parameter, with the
/// run's own goal for a default.
///
/// # Errors
/// When the run did not end well, or its plan does not make a blueprint.
pub fn save(run: &RunState, name: &str) -> Result<Blueprint, SaveError> {
    let Some(plan) = run.plan.as_ref().filter(|_| run.status == RunStatus::Completed) else {
        return Err(SaveError::NotCompleted);
    };
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
    match check(&blueprint).into_iter().next() {
        None => Ok(blueprint),
        Some(problem) => Err(SaveError::Unfit(problem)),
    }
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
