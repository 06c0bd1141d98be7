//! Tasks that others kept waiting too long (O12): they go on without what these were to give, with a warning.

use std::collections::BTreeSet;
use std::time::Duration;

use muster_shared::flow::Plan;
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::plan::order;
use muster_shared::run::{Phase, RunEvent, RunState};
use muster_shared::time::Millis;

use super::super::builder::DecisionBuilder;
use super::super::survey;

/// Lets tasks go on that wait for one that was begun too long ago.
pub(in crate::decide) fn let_go(decision: &mut DecisionBuilder<'_>) {
    let now = decision.now();
    let Some(run) = decision.open() else { return };
    let Some(most) = limit(run).filter(|_| run.paused.is_none()) else { return };
    let overdue: Vec<(TaskIndex, TaskIndex)> = kept_waiting(run)
        .into_iter()
        .filter(|(at, _, _)| *at <= now)
        .map(|(_, task, by)| (task, by))
        .collect();
    for (task, without) in overdue {
        let reason =
            format!("it had not ended after {} s; it is not waited for any longer", most.as_secs_f64());
        decision.emit(RunEvent::DependencyLeft { task, without, reason });
    }
}

/// When the next task has waited long enough.
pub(in crate::decide) fn next_overdue(run: &RunState) -> Option<Millis> {
    limit(run)?;
    kept_waiting(run).into_iter().map(|(at, _, _)| at).min()
}

/// How long a task may keep others waiting.
fn limit(run: &RunState) -> Option<Duration> {
    let most = run.limits.responses.blocked_after_ms;
    (most > 0 && run.phase == Phase::Executing).then(|| Duration::from_millis(most))
}

/// Who waits for whom, and until when at most.
fn kept_waiting(run: &RunState) -> Vec<(Millis, TaskIndex, TaskIndex)> {
    let (Some(plan), Some(most)) = (&run.plan, limit(run)) else { return Vec::new() };
    let is_open = |index: &TaskIndex| run.planned(index).is_some_and(|state| !state.status.is_ended());
    let begun: Vec<(&TaskIndex, Millis)> = run
        .responses
        .begun
        .iter()
        .filter(|(index, _)| is_open(index))
        .map(|(index, at)| (index, at.after(most)))
        .collect();
    if begun.is_empty() {
        return Vec::new();
    }
    let waits = |index: &&TaskIndex| survey::is_unoffered(run, &TaskId::Leaf((*index).clone()));
    let waiting = plan.leaves().map(|(index, _)| index).filter(waits);
    waiting.flat_map(|index| of_one(run, plan, index, &begun)).collect()
}

fn of_one(
    run: &RunState,
    plan: &Plan,
    index: &TaskIndex,
    begun: &[(&TaskIndex, Millis)],
) -> Vec<(Millis, TaskIndex, TaskIndex)> {
    let needed: BTreeSet<TaskIndex> = order::dependencies(plan, index);
    let kept = begun.iter().filter(|(by, _)| needed.contains(*by) && !run.responses.goes_without(index, by));
    kept.map(|(by, at)| (*at, index.clone(), (*by).clone())).collect()
}

/// A sentence for the report when tasks were done on partial input.
pub(in crate::decide) fn partial_note(run: &RunState) -> Option<String> {
    let given = |index: &&TaskIndex| survey::result_of(run, index).is_some();
    let partial = run.responses.without.iter().filter(|(index, _)| given(index));
    let lines: Vec<String> = partial
        .map(|(index, without)| {
            let names: Vec<String> = without.keys().map(TaskIndex::to_string).collect();
            format!("{index} was done without what {} was to give", names.join(", "))
        })
        .collect();
    (!lines.is_empty()).then(|| {
        format!("Made from partial input, because it was waited for too long: {}.", lines.join("; "))
    })
}
