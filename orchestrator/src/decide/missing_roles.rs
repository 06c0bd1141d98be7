//! Roles without an agent. Tasks of any kind wait for a missing role as long as the run's limit allows; then all of them
//! fail with the reason.

use std::collections::BTreeSet;
use std::time::Duration;

use muster_shared::flow::{Ending, FailureKind, TaskStatus};
use muster_shared::ids::{Generation, Queue, Role, TaskId};
use muster_shared::run::event::RoleAvailabilityChanged;
use muster_shared::run::{RunState, TaskState};
use muster_shared::time::Millis;

use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::failure::{self, Failure};
use super::{place, schedule, trials};

/// Part of the run's time that it waits for a role at most: the rest is for the report, or for other tasks.
const LARGEST_SHARE: u32 = 2;

/// Fails the tasks of roles that stayed away for longer than the limit.
pub(super) fn enforce(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open().filter(|run| run.control.paused.is_none()) else { return };
    let is_online = |role: &&Role| decision.capacity().contains_key(&Queue::Role((*role).clone()));
    let found: Vec<Role> = run.missing_roles.keys().filter(is_online).cloned().collect();
    for role in found {
        decision.emit(RoleAvailabilityChanged { role, available: true });
    }
    let Some(run) = decision.open() else { return };
    let limit = limit(run);
    let is_expired =
        |role: &Role| run.missing_roles.get(role).is_some_and(|since| since.after(limit) <= decision.now());
    let hopeless = |(task, role): (TaskId, Role)| {
        let role = place::role_named(decision, &task, &role).unwrap_or(role);
        is_expired(&role).then_some((task, role))
    };
    let hopeless: Vec<(TaskId, Role)> = needed(run).filter_map(hopeless).collect();
    for (task, role) in hopeless {
        give_up(decision, &task, &role, limit);
    }
}

fn give_up(decision: &mut DecisionBuilder<'_>, task: &TaskId, role: &Role, limit: Duration) {
    // The failure of another task of the role may have ended it.
    if decision.task(task).is_some_and(|state| state.status.is_ended()) {
        return;
    }
    let start = match role {
        Role::Specialist(_) => format!("`muster agent {role}.agent.md`, or the program that it is"),
        built_in => format!("`muster agent {built_in}`"),
    };
    let reason = format!(
        "no {role} is in this fleet, and none came within {}: start one ({start}) and ask again",
        super::deadline::in_words(limit)
    );
    if let Some(TaskState { status: TaskStatus::Queued, generation, .. }) = decision.task(task) {
        let (task, generation, reason) = (task.clone(), *generation, reason.clone());
        decision.effect(Effect::CancelTask { task, generation, agent: None, reason });
    }
    let (kind, ending) = (FailureKind::NobodyThere, Ending::Blocked);
    failure::failed(decision, task, Failure { kind, ending, outcome: None, part: None, reason });
}

/// Records which roles the tasks wait for that are due and were not offered, or whose offer nobody took.
pub(super) fn note(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open().filter(|run| run.control.paused.is_none()) else { return };
    let queued = run.tasks.values().filter_map(|state| waits_for(run, state));
    let due =
        decision.wanted().filter_map(|queue| if let Queue::Role(role) = queue { Some(role) } else { None });
    let is_missing = |role: &&Role| {
        !run.missing_roles.contains_key(*role)
            && !decision.capacity().contains_key(&Queue::Role((*role).clone()))
    };
    let missing: BTreeSet<Role> = queued.chain(due).filter(is_missing).cloned().collect();
    for role in missing {
        decision.emit(RoleAvailabilityChanged { role, available: false });
    }
}

/// When the next task may have waited for its role long enough.
pub(super) fn next_look(run: &RunState) -> Option<Millis> {
    let since = |(_, role): (TaskId, Role)| run.missing_roles.get(&role).copied();
    let needed = (!run.missing_roles.is_empty()).then(|| needed(run));
    Some(needed?.filter_map(since).min()?.after(limit(run)))
}

/// How long the tasks of a run wait for a role.
fn limit(run: &RunState) -> Duration {
    let share = run.deadline.since(run.created_at) / LARGEST_SHARE;
    Duration::from_millis(run.limits.wait_for_role_ms).min(share)
}

/// The tasks that wait for an agent of a role, each with the role.
fn needed(run: &RunState) -> impl Iterator<Item = (TaskId, Role)> {
    let queued = run.tasks.iter().filter(|(_, state)| waits_for(run, state).is_some());
    let waiting =
        queued.map(|(task, _)| task.clone()).chain(schedule::due(run)).chain(schedule::held_back(run));
    waiting.filter_map(|task| schedule::role(run, &task).map(|role| (task, role)))
}

/// The role in whose queue a task waits, unless a trial put it there.
fn waits_for<'r>(run: &RunState, state: &'r TaskState) -> Option<&'r Role> {
    if let (TaskStatus::Queued, Some(Queue::Role(role))) = (state.status, &state.queue) {
        (!trials::is_tried_by(state, run, role)).then_some(role)
    } else {
        None
    }
}
