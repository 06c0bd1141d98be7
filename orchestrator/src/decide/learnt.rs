//! What tasks of a run learnt for those after them: suggestions, and reflections that are lessons.

use muster_shared::flow::{FailureKind, Reflection, TaskStatus};
use muster_shared::ids::TaskId;
use muster_shared::run::{RunState, TaskState};

use super::{partial, survey};

/// Most suggestions for later tasks that are told, and of one task.
const MOST_SUGGESTIONS: usize = 6;
const MOST_OF_ONE: usize = 3;

/// Longest of them, in characters.
const LONGEST_SUGGESTION: usize = 300;

/// What reflections are taken for lessons: not those on tasks that failed because a provider, a process or a server did.
pub(super) fn reflections(run: &RunState) -> impl Iterator<Item = &Reflection> {
    let taught = run.reflections().filter(|(index, _)| !failed_by_outage(run, &index.to_task_id()));
    taught.map(|(_, reflection)| reflection)
}

/// Whether a task failed because something of the fleet was away: that teaches nothing about the goal.
pub(super) fn failed_by_outage(run: &RunState, task: &TaskId) -> bool {
    let failed = |state: &&TaskState| state.status == TaskStatus::Failed;
    let Some(state) = run.tasks.get(task).filter(failed) else { return false };
    // Without an outcome, agents died of it, or nobody took it.
    let Some(outcome) = &state.outcome else { return true };
    matches!(
        FailureKind::of(outcome),
        FailureKind::ModelUnavailable
            | FailureKind::AgentFault
            | FailureKind::AgentsDied
            | FailureKind::FellSilent
            | FailureKind::NobodyTookIt
            | FailureKind::NobodyThere
    )
}

/// What tasks that ended well suggest for later ones, one line each; the newest by plan order, and no more than fit.
pub(super) fn suggestions(run: &RunState) -> Vec<String> {
    let given = survey::leaves(run)
        .filter_map(|(index, _, state)| Some((index, survey::result(state)?.advice.as_ref()?)));
    let mut lines: Vec<String> = given
        .flat_map(|(index, advice)| {
            let said = advice.suggestions.iter().filter(|said| !said.trim().is_empty()).take(MOST_OF_ONE);
            said.map(move |said| format!("{index} suggests: {}", partial::line(said, LONGEST_SUGGESTION)))
        })
        .collect();
    let surplus = lines.len().saturating_sub(MOST_SUGGESTIONS);
    lines.split_off(surplus)
}
