//! What can start, what must wait, and what cannot start any more.
//!
//! Only leaves are executed. A leaf waits for its own dependencies and for those of every task above it; a
//! dependency on a parent means all leaves below that parent. Once all of these ended, the leaf
//! - may start when one of them gave a result, or when none of them failed (a skipped one did not fail):
//!   it works with what there is;
//! - is blocked otherwise.

use std::collections::BTreeSet;

use super::check::is_family;
use crate::flow::{Plan, TaskStatus};
use crate::ids::TaskIndex;
use crate::run::Statuses;

/// The leaves that can be offered now, depth first.
#[must_use]
pub fn ready(plan: &Plan, statuses: &Statuses) -> Vec<TaskIndex> {
    let waiting = plan.leaves().map(|(leaf, _)| leaf).filter(|leaf| is_created(statuses, leaf));
    waiting.filter(|leaf| readiness(plan, statuses, leaf) == Readiness::Ready).cloned().collect()
}

/// The leaves that cannot start any more because what they need gave nothing, with the reason. Those that
/// need a blocked one are among them.
#[must_use]
pub fn blocked(plan: &Plan, statuses: &Statuses) -> Vec<(TaskIndex, String)> {
    let mut statuses = statuses.clone();
    let mut found = Vec::new();
    loop {
        let waiting = plan.leaves().map(|(leaf, _)| leaf).filter(|leaf| is_created(&statuses, leaf));
        let next = waiting.cloned().find_map(|leaf| {
            if let Readiness::Blocked(by) = readiness(plan, &statuses, &leaf) {
                Some((leaf, by))
            } else {
                None
            }
        });
        let Some((leaf, by)) = next else { break };
        statuses.insert(leaf.clone(), TaskStatus::Blocked);
        let by: Vec<String> = by.iter().map(TaskIndex::to_string).collect();
        found.push((leaf, format!("what it needs gave no result: {}", by.join(", "))));
    }
    found.sort();
    found
}

/// The leaves that must end before this one starts, depth first. No task waits for one that it is part of.
#[must_use]
pub fn dependencies(plan: &Plan, leaf: &TaskIndex) -> BTreeSet<TaskIndex> {
    let mut found = BTreeSet::new();
    let mut at = Some(leaf.clone());
    while let Some(index) = at {
        let named = plan.tasks.get(&index).into_iter().flat_map(|task| &task.depends_on);
        let named = named.filter(|needed| !is_family(&index, needed));
        found.extend(named.flat_map(|needed| plan.leaves_of(needed)).cloned());
        at = index.parent();
    }
    found
}

/// The leaves that need one of these, or need one that does, depth first. Those asked about are not among them
/// unless they need each other.
#[must_use]
pub fn dependents(plan: &Plan, of: &BTreeSet<TaskIndex>) -> BTreeSet<TaskIndex> {
    let needs: Vec<(&TaskIndex, BTreeSet<TaskIndex>)> =
        plan.leaves().map(|(leaf, _)| (leaf, dependencies(plan, leaf))).collect();
    let (mut found, mut newest) = (BTreeSet::new(), of.clone());
    while !newest.is_empty() {
        let reached = needs.iter().filter(|(_, needed)| !needed.is_disjoint(&newest));
        newest = reached.map(|(leaf, _)| (*leaf).clone()).filter(|leaf| !found.contains(leaf)).collect();
        found.extend(newest.iter().cloned());
    }
    found
}

/// Whether every leaf ended, so that nothing can be offered any more.
#[must_use]
pub fn all_ended(plan: &Plan, statuses: &Statuses) -> bool {
    plan.leaves().all(|(leaf, _)| status(statuses, leaf).is_ended())
}

/// The state of a task by the leaves it stands for.
///
/// While some are not ended it is the furthest of them, and in work as soon as one has ended. Afterwards the
/// worst counts: failed, aborted, blocked; skipped ones do not, unless all were.
#[must_use]
pub fn status_of(plan: &Plan, statuses: &Statuses, index: &TaskIndex) -> TaskStatus {
    let leaves: Vec<TaskStatus> = plan.leaves_of(index).map(|leaf| status(statuses, leaf)).collect();
    let any = |wanted: TaskStatus| leaves.contains(&wanted);
    if leaves.iter().all(|status| status.is_ended()) {
        let worst = [TaskStatus::Failed, TaskStatus::Aborted, TaskStatus::Blocked, TaskStatus::Completed];
        return worst.into_iter().find(|status| any(*status)).unwrap_or(TaskStatus::Skipped);
    }
    if any(TaskStatus::Processing) || leaves.iter().any(|status| status.is_ended()) {
        return TaskStatus::Processing;
    }
    if any(TaskStatus::Queued) { TaskStatus::Queued } else { TaskStatus::Created }
}

#[derive(Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    Waiting,
    Blocked(Vec<TaskIndex>),
}

fn readiness(plan: &Plan, statuses: &Statuses, leaf: &TaskIndex) -> Readiness {
    let (mut gave_result, mut failed) = (false, Vec::new());
    for needed in dependencies(plan, leaf) {
        match status(statuses, &needed) {
            TaskStatus::Created | TaskStatus::Waiting | TaskStatus::Queued | TaskStatus::Processing => {
                return Readiness::Waiting;
            }
            TaskStatus::Completed => gave_result = true,
            TaskStatus::Failed | TaskStatus::Aborted | TaskStatus::Blocked => failed.push(needed),
            TaskStatus::Skipped | TaskStatus::Split => {}
        }
    }
    if gave_result || failed.is_empty() { Readiness::Ready } else { Readiness::Blocked(failed) }
}

fn is_created(statuses: &Statuses, leaf: &TaskIndex) -> bool {
    status(statuses, leaf) == TaskStatus::Created
}

fn status(statuses: &Statuses, index: &TaskIndex) -> TaskStatus {
    statuses.get(index).copied().unwrap_or(TaskStatus::Created)
}
