//! What tests of the loop share.

use muster_shared::flow::{Action, RolePermissions, TaskOffered, Thought};
use serde_json::Value;

use super::decide::{ChosenAction, StepContext};
use super::limits::StepLimits;
use super::parse::{AnswerForm, ParsedAction, ParsedAnswer};
use super::submit::ModelAnswer;
use crate::roles::rules_for;
use crate::testing::toolset;

/// A step of this task, with the tools of [`toolset`] and every gate open.
pub(super) fn in_case<T>(
    offer: &TaskOffered,
    has_model: bool,
    limits: StepLimits,
    then: impl FnOnce(&StepContext<'_>) -> T,
) -> T {
    let (rules, toolset) = (rules_for(&offer.work), toolset(offer));
    let permissions = RolePermissions::OPEN;
    then(&StepContext { offer, rules, toolset: &toolset, permissions, has_model, limits })
}

/// An answer that chooses this action.
pub(super) fn answer(thought: Option<&str>, action: &str, arguments: Value) -> ModelAnswer {
    let parsed = ParsedAnswer {
        thought: thought.map(str::to_owned),
        reasoning: None,
        plan: None,
        criticism: None,
        action: ParsedAction { name: action.into(), arguments, call_id: None },
        more: Vec::new(),
        form: AnswerForm::Native,
        repaired: false,
    };
    ModelAnswer { said: String::new(), reasoning: None, parsed: Ok(parsed) }
}

/// An action that was chosen for this reason.
pub(super) fn chosen(thought: &str, tool: &str, arguments: Value) -> ChosenAction {
    let thought = Thought { text: thought.into(), ..Thought::default() };
    let action = Action { name: tool.into(), arguments };
    ChosenAction { thought, action, more: Vec::new(), notes: Vec::new() }
}
