//! Tasks that others kept waiting too long (O12): they go on without what these were to give, with a warning.

use std::collections::BTreeSet;
use std::time::Duration;

use muster_shared::flow::Plan;
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::plan::order;
use muster_shared::run::event::DependencyLeft;
use muster_shared::run::{Phase, RunState};
use muster_shared::time::Millis;

use super::super::builder::DecisionBuilder;
use super::super::survey;

/// Lets tasks go on that wait for one that was begun too long ago.
pub(in crate::decide) fn let_go(decision: &mut DecisionBuilder<'_>) {
    let now = decision.now();
    let Some(run) = decision.open() else { return };
    let Some(most) = limit(run).filter(|_| run.control.paused.is_none()) else { return };
    let overdue: Vec<(TaskIndex, TaskIndex)> = kept_waiting(run)
        .into_iter()
        .filter(|(at, _, _)| *at <= now)
        .map(|(_, task, by)| (task, by))
        .collect();
    for (task, without) in overdue {
        let reason =
            format!("it had not ended after {} s; it is not waited for any longer", most.as_secs_f64());
        decision.emit(DependencyLeft { task, without, reason });
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
    let begun: Vec<(&TaskIndex, Millis)> = run
        .leaves()
        .filter(|(_, state)| !state.status.is_ended())
        .filter_map(|(index, state)| Some((index, state.first_offered?.after(most))))
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
    let kept = begun.iter().filter(|(by, _)| needed.contains(*by) && !run.goes_without(index, by));
    kept.map(|(by, at)| (*at, index.clone(), (*by).clone())).collect()
}

/// A sentence for the report when tasks were done on partial input.
pub(in crate::decide) fn partial_note(run: &RunState) -> Option<String> {
    let given = |index: &&TaskIndex| survey::result_of(run, index).is_some();
    let partial = run.leaves().filter(|(index, state)| !state.without.is_empty() && given(index));
    let lines: Vec<String> = partial
        .map(|(index, state)| {
            let names: Vec<String> = state.without.keys().map(TaskIndex::to_string).collect();
            format!("{index} was done without what {} was to give", names.join(", "))
        })
        .collect();
    (!lines.is_empty()).then(|| {
        format!("Made from partial input, because it was waited for too long: {}.", lines.join("; "))
    })
}
