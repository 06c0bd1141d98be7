//! Several actions in one answer: which of them are done in the same step, and what the model is told of the others. Pure.

use muster_shared::flow::{Action, FurtherAction, Observation, RolePermission};

use super::decide::{ChosenAction, StepContext, told_closed, unknown_tool};
use super::further::FIND_TOOL;
use super::history::History;
use super::loop_detection::refused;
use crate::tools::actions;

/// The first action that can be done, and the others of the answer with it. The model is told of each that is not done.
pub(super) fn with_more(
    history: &History,
    chosen: ChosenAction,
    more: Vec<Action>,
    case: &StepContext<'_>,
) -> ChosenAction {
    if more.is_empty() || chosen.action.name == Action::SUBMIT {
        return chosen;
    }
    let all: Vec<Action> = std::iter::once(chosen.action.clone()).chain(more).collect();
    let mut told = told(history, &all, case);
    let first = told.iter().position(Option::is_none).unwrap_or(0);
    let is_done = |(at, _): &(usize, Action)| *at == first;
    let (action, rest): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(is_done);
    let more = rest.into_iter().map(|(at, action)| FurtherAction { action, observation: told[at].take() });
    let more = more.collect();
    let action = action.into_iter().map(|(_, action)| action).next().unwrap_or(chosen.action);
    ChosenAction { action, more, ..chosen }
}

/// What the model is told of each action that is not done.
fn told(history: &History, all: &[Action], case: &StepContext<'_>) -> Vec<Option<Observation>> {
    let most = usize::try_from(case.limits.calls_a_step).unwrap_or(usize::MAX);
    let first_alone = all.first().is_some_and(|first| goes_alone(first, case));
    let mut done = 0;
    let tell = |(at, action): (usize, &Action)| {
        let why = match first_alone {
            true if at == 0 => None,
            true => Some(refused(format!(
                "Not done: `{}` goes alone. Call this in the next answer if it is still needed.",
                all[0].name
            ))),
            false => why_not(history, &all[..at], action, case),
        };
        let why = why.or_else(|| {
            (done >= most).then(|| refused(format!("Not done: at most {most} calls of one answer are.")))
        });
        done += usize::from(why.is_none());
        why
    };
    all.iter().enumerate().map(tell).collect()
}

fn why_not(
    history: &History,
    before: &[Action],
    action: &Action,
    case: &StepContext<'_>,
) -> Option<Observation> {
    let Some(ability) = case.toolset.find(&action.name) else {
        let submits = action.name == Action::SUBMIT;
        return Some(if submits {
            refused("Not taken: look at what the other calls of your answer gave, then submit.".to_owned())
        } else {
            unknown_tool(&action.name, case.toolset)
        });
    };
    if !case.permissions.is_open(ability.permission) {
        return Some(told_closed(action, ability.permission, case));
    }
    if let Some(same) = before.iter().position(|other| other == action) {
        return Some(refused(format!("Not done twice: it is call {} of your answer.", same + 1)));
    }
    if !before.is_empty() && goes_alone(action, case) {
        return Some(refused(format!("Not done: `{}` goes alone. Call it by itself.", action.name)));
    }
    let earlier = history.same_action(action)?;
    Some(refused(format!(
        "Not done again: you did exactly this in step {}, and nothing has changed since.",
        earlier.number
    )))
}

/// Whether an action is no call of a tool that answers at once: it is thought, or waits for somebody.
fn goes_alone(action: &Action, case: &StepContext<'_>) -> bool {
    let is_tool = |permission: RolePermission| permission == RolePermission::Tools;
    let waits = case.toolset.find(&action.name).is_some_and(|ability| !is_tool(ability.permission));
    waits || action.name == FIND_TOOL || (case.has_model && actions::thinking(action).is_some())
}

/// Further actions of an answer whose first was not done: none of them is.
pub(super) fn none_done(more: &mut [FurtherAction]) {
    for one in more.iter_mut().filter(|one| one.observation.is_none()) {
        one.observation = Some(refused("Not done: the first call of your answer was not.".to_owned()));
    }
}

#[cfg(test)]
#[path = "several_tests.rs"]
mod tests;
