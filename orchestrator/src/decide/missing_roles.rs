//! Roles without an agent. Tasks of any kind wait for a missing role as long as the run's limit allows; then all of them
//! fail with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use muster_shared::flow::{Ending, FailureKind, TaskStatus};
use muster_shared::ids::{Queue, Role, TaskId};
use muster_shared::run::event::RoleAvailabilityChanged;
use muster_shared::run::{RunState, TaskState};
use muster_shared::time::Millis;

use super::builder::DecisionBuilder;
use super::failure::{self, Failure};
use super::wait_reason::WaitsFor;
use super::{control, schedule, trials};

/// Fails the tasks of roles that stayed away for longer than the limit.
pub(super) fn enforce(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open().filter(|run| run.control.paused.is_none()) else { return };
    let found = run.missing_roles.keys().filter(|role| is_online(decision, role));
    for role in found.cloned().collect::<Vec<_>>() {
        decision.emit(RoleAvailabilityChanged { role, available: true });
    }
    let Some(run) = decision.open() else { return };
    let limit = limit(run);
    let mut hopeless: BTreeMap<Role, Vec<TaskId>> = BTreeMap::new();
    for (task, role, since) in waiting(run) {
        if since.after(limit) <= decision.now() {
            hopeless.entry(role).or_default().push(task);
        }
    }
    for (role, tasks) in hopeless {
        let wait = WaitsFor::Role { role, tasks: tasks.clone() };
        let reason = format!("it waited {} for {wait}", super::deadline::in_words(limit));
        for task in tasks {
            control::interrupt(decision, &task, &reason);
            let (kind, ending, reason) = (FailureKind::NobodyThere, Ending::Blocked, reason.clone());
            // The failure of another task may have ended it.
            if !decision.task(&task).is_some_and(|state| state.status.is_ended()) {
                failure::failed(decision, &task, Failure { kind, ending, outcome: None, part: None, reason });
            }
        }
    }
}

/// Records the roles without an agent that tasks need which are due, or whose offer waits in the queue of the role.
pub(super) fn note(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open().filter(|run| run.control.paused.is_none()) else { return };
    let queued = run.tasks.iter().filter_map(|(task, state)| role(run, task, state));
    let roles = queued.chain(decision.wanted().filter_map(Queue::role).cloned());
    let is_new = |role: &Role| !run.missing_roles.contains_key(role) && !is_online(decision, role);
    let missing: BTreeSet<Role> = roles.filter(is_new).collect();
    for role in missing {
        decision.emit(RoleAvailabilityChanged { role, available: false });
    }
}

fn is_online(decision: &DecisionBuilder<'_>, role: &Role) -> bool {
    decision.capacity().contains_key(&Queue::Role(role.clone()))
}

/// When the next task may have waited for its role long enough.
pub(super) fn next_look(run: &RunState) -> Option<Millis> {
    Some(waiting(run).into_iter().map(|(_, _, since)| since).min()?.after(limit(run)))
}

/// How long the tasks of a run wait for a role: half of the run's time at most, so that it ends with a reason or without
/// the optional task.
fn limit(run: &RunState) -> Duration {
    let half = run.deadline.since(run.created_at) / 2;
    Duration::from_millis(run.limits.wait_for_role_ms).min(half)
}

/// The tasks that wait for a missing role, with the role and the time since when it is missing.
fn waiting(run: &RunState) -> Vec<(TaskId, Role, Millis)> {
    if run.missing_roles.is_empty() {
        return Vec::new();
    }
    let queued = run.tasks.iter().filter_map(|(task, state)| Some((task.clone(), role(run, task, state)?)));
    let due = schedule::due(run).into_iter().chain(schedule::held_back(run));
    let due = due.filter_map(|task| schedule::role(run, &task).map(|role| (task, role)));
    let since = |(task, role): (TaskId, Role)| {
        let since = *run.missing_roles.get(&role)?;
        Some((task, role, since))
    };
    queued.chain(due).filter_map(since).collect()
}

/// The role whose agents a queued task waits for, unless a trial put it in the queue of another role. If the task is
/// addressed to one agent, another agent of its role may take it once that agent is gone.
fn role(run: &RunState, task: &TaskId, state: &TaskState) -> Option<Role> {
    match state.queue.as_ref().filter(|_| state.status == TaskStatus::Queued)? {
        Queue::Role(role) => (!trials::is_tried_by(state, run, role)).then(|| role.clone()),
        Queue::Agent(_) => schedule::role(run, task),
    }
}
