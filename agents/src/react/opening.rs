//! The step with which a task begins that is done by a blueprint (R7): the plan has chosen it, so no model is asked.

use muster_shared::flow::{Action, Thought};
use serde_json::json;

use super::decide::{ChosenAction, NextStep, StepContext};
use super::history::History;
use crate::tools::nested::BLUEPRINT;

/// The first step of a task that its plan gave a blueprint, where the role may use it. What is wrong with the values is
/// the observation, and the model goes on from there.
pub(super) fn opening(history: &History, case: &StepContext<'_>) -> Option<NextStep> {
    if !history.steps().is_empty() {
        return None;
    }
    let call = case.offer.work.leaf()?.blueprint.as_ref()?;
    let ability =
        case.toolset.find(BLUEPRINT).filter(|ability| case.permissions.is_open(ability.permission))?;
    let thought = Thought {
        text: format!("The plan has this task done by the blueprint {}.", call.name),
        ..Thought::default()
    };
    let arguments = json!({ "name": call.name, "params": call.params });
    let action = Action { name: ability.name.clone(), arguments };
    let chosen = ChosenAction { thought, action, more: Vec::new(), notes: Vec::new() };
    Some(NextStep::CallTool { chosen, pure: ability.pure })
}
