//! How failures were answered, and who goes on without what.

use super::super::REPAIRS_SINCE;
use super::super::state::RunState;
use super::error::ApplyError;
use super::task::executable;
use crate::flow::{FailureKind, Response, TaskOffered, Work};
use crate::ids::{TaskId, TaskIndex};
use crate::time::Millis;

pub(super) fn answered(
    state: &mut RunState,
    event: &'static str,
    task: &TaskId,
    (failure, response): (FailureKind, Response),
    (model, marked, withheld): (Option<&String>, Option<&String>, Option<&String>),
) -> Result<(), ApplyError> {
    executable(state, task, event)?;
    state.responses.failures = state.responses.failures.saturating_add(1);
    if state.event_version >= REPAIRS_SINCE && failure.is_of_the_model() {
        state.responses.model_failures = state.responses.model_failures.saturating_add(1);
    }
    let answers = state.responses.tasks.entry(task.clone()).or_default();
    let given = answers.given.entry(response).or_default();
    *given = given.saturating_add(1);
    answers.last = Some(failure);
    if model.is_some() {
        answers.model = model.cloned();
    }
    if marked.is_some() {
        answers.marked = marked.cloned();
    }
    answers.withheld.extend(withheld.cloned());
    Ok(())
}

/// The error budget is used up. Where a person is asked, it begins anew if they let the run go on.
pub(super) const fn used_up(state: &mut RunState, asked: bool) {
    if asked {
        state.responses.failures = 0;
        state.responses.model_failures = 0;
    } else {
        state.responses.used_up = true;
    }
}

pub(super) fn left(
    state: &mut RunState,
    event: &'static str,
    task: &TaskIndex,
    without: &TaskIndex,
    reason: &str,
) -> Result<(), ApplyError> {
    executable(state, &TaskId::Leaf(task.clone()), event)?;
    let left = state.responses.without.entry(task.clone()).or_default();
    left.insert(without.clone(), reason.to_owned());
    Ok(())
}

/// Notes when a leaf was begun, and what it goes without in the end.
pub(super) fn offered(state: &mut RunState, offer: &TaskOffered, now: Millis) {
    let TaskId::Leaf(index) = &offer.task else { return };
    if state.limits.responses.blocked_after_ms > 0 {
        state.responses.begun.entry(index.clone()).or_insert(now);
    }
    let Work::Execute { left_out, .. } = &offer.work else { return };
    if let Some(without) = state.responses.without.get_mut(index) {
        without.retain(|needed, _| left_out.iter().any(|(index, _, _)| index == needed));
        if without.is_empty() {
            state.responses.without.remove(index);
        }
    }
}

/// What was tried for a task does not count for one that is done again from its beginning.
pub(super) fn reopened(state: &mut RunState, task: &TaskId) {
    state.responses.tasks.remove(task);
    if let TaskId::Leaf(index) = task {
        state.responses.begun.remove(index);
        state.responses.without.remove(index);
    }
}
