//! What the run knows: what other tasks gave, and how the run stands. Found in its state, without a model.

use std::fmt::Write as _;

use muster_shared::flow::{Citation, ContextRequest, PeerAnswer, TaskResult, TaskStatus};
use muster_shared::ids::TaskIndex;
use muster_shared::plan::progress;
use muster_shared::run::RunState;

use super::super::survey;
use super::{FoundAnswer, named};

/// Longest answer of an earlier run that is told, in characters.
const TURN: usize = 400;

/// What is known of the tasks that are named, or of the run.
pub(super) fn find(run: &RunState, wanted: &ContextRequest) -> Result<FoundAnswer, String> {
    let plan = run.plan.as_ref().ok_or("there is no plan")?;
    let whole = wanted.tasks.is_empty();
    let named = named(run, &wanted.tasks)?;
    let mut leaves: Vec<&TaskIndex> = match whole {
        true => plan.leaves().map(|(leaf, _)| leaf).collect(),
        false => named.iter().flat_map(|index| plan.leaves_of(index)).collect(),
    };
    if whole {
        leaves.retain(|leaf| survey::result_of(run, leaf).is_some());
    }
    let mut words = String::new();
    for leaf in &leaves {
        words.push_str(&of_task(run, leaf));
    }
    if whole {
        words.push_str(&of_run(run));
    }
    let tasks = leaves.into_iter().cloned().collect();
    Ok(FoundAnswer { words: words.trim_end().to_owned(), answer: PeerAnswer::ContextGiven { tasks } })
}

/// What a task gave, or how it stands.
fn of_task(run: &RunState, leaf: &TaskIndex) -> String {
    let name = run.plan_task(leaf).map_or("", |task| task.name.as_str());
    let head = format!("Task {leaf} ({name})");
    if let Some(result) = survey::result_of(run, leaf) {
        return format!("{head} gives: {}\n\n", of_result(result));
    }
    let state = run.planned(leaf);
    let stands = match state.map_or(TaskStatus::Created, |state| state.status_in_plan()) {
        TaskStatus::Created => "is not begun",
        TaskStatus::Queued => "is offered; nobody has begun it",
        TaskStatus::Waiting | TaskStatus::Processing => "is in work; there is no result yet",
        TaskStatus::Completed => "ended well and gave nothing to be told",
        TaskStatus::Failed => "failed",
        TaskStatus::Aborted => "was stopped",
        TaskStatus::Skipped => "was left out",
        TaskStatus::Blocked => "cannot begin",
        TaskStatus::Split => "was split",
    };
    let why = state.and_then(|state| state.reasons.last()).map(|why| format!(": {why}")).unwrap_or_default();
    format!("{head} {stands}{why}.\n\n")
}

fn of_result(result: &TaskResult) -> String {
    let mut text = result.conclusion.clone();
    for found in &result.findings {
        // Writing into a text cannot fail.
        let _ = write!(text, "\n- {}{}", found.text, Citation::places(&found.citations));
    }
    for open in &result.unanswered {
        let _ = write!(text, "\n- not answered: {open}");
    }
    text
}

/// How the run stands: its tasks, what was shared, and the earlier runs that its goal follows.
fn of_run(run: &RunState) -> String {
    let lines = progress::render(&progress::lines(run, progress::Detail::Decided));
    let mut text = format!("The run's goal: {}\nIts tasks:\n{lines}", run.goal.text);
    for told in run.peers.shared.values() {
        let _ = match &told.from {
            Some(from) => writeln!(text, "Task {from} shared: {}", told.text),
            None => writeln!(text, "{} says: {}", told.person, told.text),
        };
    }
    for turn in &run.goal.conversation {
        let answered: String = turn.answered.chars().take(TURN).collect();
        let _ = writeln!(text, "Asked before: {}\nAnswered then: {answered}", turn.asked);
    }
    text
}
