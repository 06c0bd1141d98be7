//! What a report says by rule of how its run went: what is disputed, unchecked, refused, left out.

use muster_shared::flow::response::{NOT_CHECKED, NOT_LOOKED_UP};
use muster_shared::flow::{RefusedOperation, TaskStatus};
use muster_shared::ids::TaskId;
use muster_shared::run::{RunState, TaskState};

use super::single::is_offline;
use super::survey::{leaves, result, why};
use super::wait_reason::named;

/// Other answers of members of committees, for the report. Absent: all members gave the same.
pub(super) fn dissent_note(run: &RunState) -> Option<String> {
    let given = leaves(run).filter(|(_, _, state)| result(state).is_some());
    let divided = given.filter_map(|(index, task, _)| {
        let dissent = run.groups.get(index)?.verdict.as_ref()?.dissent_in_words()?;
        Some(format!("{index} {}: {dissent}", task.name))
    });
    joined(divided, " ")
}

/// What is said in a report of results that were to be verified by a model, and were not; nothing when all were.
pub(super) fn unchecked_note(run: &RunState) -> Option<String> {
    let unchecked = marked(run, NOT_CHECKED)?;
    Some(format!("Not verified, because the model that was asked gave no verdict: {unchecked}."))
}

/// Tasks with a result whose outcome has a reason with this mark, each with the words after the mark. Absent: no such task.
fn marked(run: &RunState, mark: &str) -> Option<String> {
    let given = leaves(run).filter(|(_, _, state)| result(state).is_some());
    let marked = given.filter_map(|(index, task, state)| {
        let why = state.outcome.as_ref()?.reason.split(mark).nth(1)?;
        Some(format!("{index} {} ({})", task.name, why.trim_start_matches(':').trim()))
    });
    joined(marked, "; ")
}

fn joined(parts: impl Iterator<Item = String>, separator: &str) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(separator))
}

/// What is said in a report of changes of the plan that were wanted and could not be made; nothing when all could, or a
/// later one was made.
pub(super) fn refused_note(run: &RunState) -> Option<String> {
    let (changes, refused) = run.refining.done.last()?;
    if !changes.is_empty() || refused.is_empty() {
        return None;
    }
    let reason = |no: &RefusedOperation| format!("{}: {}", no.operation.in_words(), no.reason);
    let refused: Vec<String> = refused.iter().map(reason).collect();
    let wanted =
        run.refining.wanted.values().next_back().map(|reasons| reasons.join("; ")).unwrap_or_default();
    Some(format!(
        "A change of the plan was wanted ({wanted}) and could not be made ({}).",
        refused.join("; ")
    ))
}

/// Tasks whose results, given by models, name fewer milestones than were set.
pub(super) fn milestones_note(run: &RunState) -> Option<String> {
    let given =
        leaves(run).filter(|(_, _, state)| state.outcome.as_deref().is_some_and(|one| !is_offline(one)));
    let short = given.filter_map(|(index, task, state)| {
        let (reached, set) = (result(state)?.milestones.len(), task.milestones.len());
        (reached < set).then(|| format!("{index} {} ({reached} of {set})", task.name))
    });
    Some(format!("Milestones named as reached: {}.", joined(short, "; ")?))
}

/// The tasks whose cited places could not be looked up, and why.
pub(super) fn not_looked_up_note(run: &RunState) -> Option<String> {
    let unknown = marked(run, NOT_LOOKED_UP)?;
    Some(format!("What these tasks cite was not looked up: {unknown}."))
}

/// The reflections, changes of the plan, and verdicts on conflicts that failed, with the reason of the last one. Absent:
/// none did.
pub(super) fn failed_steps_note(run: &RunState) -> Option<String> {
    let is_step = |task: &TaskId| matches!(task, TaskId::Reflect(_) | TaskId::Refine(_) | TaskId::Settle(_));
    let failed = run.tasks.iter().filter(|(task, state)| state.status == TaskStatus::Failed && is_step(task));
    let (tasks, states): (Vec<TaskId>, Vec<&TaskState>) =
        failed.map(|(task, state)| (task.clone(), state)).unzip();
    Some(format!("Not done: {} ({}).", named(&tasks), why(states.last()?)))
}

/// What was left out by decision, one line each.
pub(super) fn decided_against(run: &RunState) -> Vec<String> {
    let skipped = leaves(run).filter(|(_, _, state)| state.status == TaskStatus::Skipped);
    skipped
        .map(|(index, task, state)| format!("{index} {} was left out: {}", task.name, why(state)))
        .collect()
}
