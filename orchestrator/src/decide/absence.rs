//! Roles that users define and of which nobody is there. A process that is started anew is back within seconds: its tasks
//! wait as long as the run's limit says, and then they fail with the reason.

use std::time::Duration;

use muster_shared::flow::{Ending, FailureKind, TaskStatus};
use muster_shared::ids::{Generation, Queue, Role, TaskId};
use muster_shared::run::{RunState, TaskState};
use muster_shared::time::Millis;

use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::failure::{self, Failure};
use super::trials;

/// Ends the tries of tasks whose role has been away for too long. Who is away for less stands among the queues that the
/// situation names; that is told from outside, and stands in the record.
pub(super) fn enforce(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open().filter(|run| run.control.paused.is_none()) else { return };
    let capacity = decision.capacity();
    let waited = Duration::from_millis(run.limits.wait_for_role_ms);
    let absent = |(task, state): (&TaskId, &TaskState)| {
        let (role, queue) = awaited(state).filter(|(role, _)| !trials::is_tried_by(state, run, role))?;
        (!capacity.contains_key(queue)).then(|| (task.clone(), state.generation, role.clone()))
    };
    let absent: Vec<(TaskId, Generation, Role)> = run.tasks.iter().filter_map(absent).collect();
    for (task, generation, role) in absent {
        let reason = format!(
            "no {role} is in this fleet, and none came within {}: start one (`muster agent {role}.agent.md`, or the \
             program that it is) and ask again",
            super::deadline::in_words(waited)
        );
        let cancelled = reason.clone();
        decision.effect(Effect::CancelTask {
            task: task.clone(),
            generation,
            agent: None,
            reason: cancelled,
        });
        let (kind, ending) = (FailureKind::NobodyThere, Ending::Blocked);
        failure::failed(decision, &task, Failure { kind, ending, outcome: None, part: None, reason });
    }
}

/// When the next of them may have waited long enough.
pub(super) fn next_look(run: &RunState) -> Option<Millis> {
    let waited = Duration::from_millis(run.limits.wait_for_role_ms);
    let offered = run.tasks.values().filter(|state| awaited(state).is_some());
    offered.filter_map(|state| Some(state.offered_at?.after(waited))).min()
}

/// The role that a task waits for, if a user defined it, with its queue.
fn awaited(state: &TaskState) -> Option<(&Role, &Queue)> {
    if let (TaskStatus::Queued, Some(queue @ Queue::Role(role @ Role::Specialist(_)))) =
        (state.status, &state.queue)
    {
        Some((role, queue))
    } else {
        None
    }
}
