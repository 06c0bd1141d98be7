//! The way out where tasks wait for each other, or for what cannot come (O4): the youngest wait is answered with an error
//! that says why. Its task goes on without, and what it waited for is left out if nobody else needs it.

use std::collections::BTreeSet;

use muster_shared::flow::{Observation, ObservationStatus, TaskStatus};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::plan::order;
use muster_shared::run::event::{DeadlockEnded, TaskSkipped};
use muster_shared::run::{Phase, RunState, deadlock};

use super::builder::DecisionBuilder;
use super::{budget, control, schedule, survey, waits};

/// A wait that leads nowhere.
struct HopelessWait {
    task: TaskId,
    circle: Vec<TaskIndex>,
    reason: String,
}

/// Ends every wait in a circle, and the youngest one where nothing moves any more.
pub(super) fn end(decision: &mut DecisionBuilder<'_>) {
    let most = decision.open().map_or(0, |run| run.tasks.len());
    for _ in 0..most {
        let Some(HopelessWait { task, circle, reason }) = decision.open().and_then(find) else { return };
        let part = decision.open().and_then(|run| run.tasks.get(&task)?.waiting.as_ref()?.for_task.clone());
        let content = format!(
            "What you wait for cannot come: {reason}. Do it in another way within this task, or go on without it."
        );
        decision.emit(DeadlockEnded { task: task.clone(), circle, reason: reason.clone() });
        waits::answer(decision, &task, Observation::new(ObservationStatus::Error, content));
        if let Some(part) = part {
            leave_out(decision, &task, &part, &reason);
        }
    }
}

fn find(run: &RunState) -> Option<HopelessWait> {
    if run.control.paused.is_some() {
        return None;
    }
    if let Some(circle) = deadlock::circle(run) {
        let task = TaskId::Leaf(circle.first()?.clone());
        let way = circle.iter().chain(circle.first()).map(TaskIndex::to_string).collect::<Vec<_>>();
        let reason = format!("tasks wait for each other in a circle: {}", way.join(" -> "));
        return Some(HopelessWait { task, circle, reason });
    }
    let task = deadlock::youngest(run).filter(|_| stands_still(run))?.clone();
    let part = run.tasks.get(&task)?.waiting.as_ref()?.for_task.as_ref()?;
    let reason = format!("nothing moves any more, and {part} {}", why(run, part));
    Some(HopelessWait { task, circle: Vec::new(), reason })
}

/// Whether nothing is in work, nothing is due, and nobody is asked.
fn stands_still(run: &RunState) -> bool {
    let for_a_run =
        |task: &TaskId| run.tasks.get(task).and_then(|state| state.waiting.as_ref()?.for_run).is_some();
    run.phase == Phase::Executing
        && !survey::anything_in_work(run)
        && schedule::due(run).is_empty()
        && run.open_questions().next().is_none()
        // What guards are asked about moves when they have answered.
        && run.guarding.open.is_empty()
        && !run.tasks.keys().any(for_a_run)
}

/// Why a task that others wait for does not begin.
fn why(run: &RunState, part: &TaskIndex) -> String {
    let leaves: Vec<&TaskIndex> = run.plan.iter().flat_map(|plan| plan.leaves_of(part)).collect();
    let affordable = |leaf: &TaskIndex| budget::affords(run, &leaf.to_task_id());
    if leaves.iter().any(|leaf| !affordable(leaf)) {
        return "cannot be paid for any more".to_owned();
    }
    let blocked = run.plan.as_ref().map(|plan| order::blocked(plan, &run.statuses())).unwrap_or_default();
    match blocked.into_iter().find(|(task, _)| leaves.contains(&task)) {
        Some((_, reason)) => format!("cannot begin: {reason}"),
        None => "does not come to an end".to_owned(),
    }
}

/// Leaves out what was waited for, as far as no other task needs it.
fn leave_out(decision: &mut DecisionBuilder<'_>, waited: &TaskId, part: &TaskIndex, reason: &str) {
    let Some((run, plan)) = decision.open().and_then(|run| Some((run, run.plan.as_ref()?))) else { return };
    let statuses = run.statuses();
    let is_open = |leaf: &TaskIndex| !statuses.get(leaf).copied().unwrap_or(TaskStatus::Created).is_ended();
    let parts: BTreeSet<TaskIndex> = plan.leaves_of(part).filter(|leaf| is_open(leaf)).cloned().collect();
    let needed = order::dependents(plan, &parts)
        .into_iter()
        .any(|leaf| is_open(&leaf) && !parts.contains(&leaf) && waited.leaf() != Some(&leaf));
    let waited_for = run
        .tasks
        .values()
        .any(|state| state.waiting.as_ref().and_then(|waiting| waiting.for_task.as_ref()) == Some(part));
    if needed || waited_for {
        return;
    }
    for leaf in parts {
        control::interrupt(decision, &leaf.to_task_id(), reason);
        decision.emit(TaskSkipped { task: leaf, reason: reason.to_owned(), by_person: false });
    }
}
