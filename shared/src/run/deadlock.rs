//! Who waits for whom, and circles in it (O4). Pure.
//!
//! A task that handed work over waits for the task that does it; one that has not begun waits for what it depends on. A
//! plan has no circle by itself, so every circle has a task in it that was put down.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::state::RunState;
use super::task_state::{TaskState, Waiting};
use crate::flow::{Plan, TaskStatus};
use crate::ids::{TaskId, TaskIndex};
use crate::plan::order;
use crate::time::Millis;

/// Leaves that have not ended, and the leaves that each of them waits for.
#[must_use]
pub fn who_waits_for_whom(run: &RunState) -> BTreeMap<TaskIndex, BTreeSet<TaskIndex>> {
    let Some(plan) = &run.plan else { return BTreeMap::new() };
    let statuses = run.statuses();
    let status = |leaf: &TaskIndex| statuses.get(leaf).copied().unwrap_or(TaskStatus::Created);
    let mut waits: BTreeMap<TaskIndex, BTreeSet<TaskIndex>> = BTreeMap::new();
    for (leaf, _) in plan.leaves().filter(|(leaf, _)| !status(leaf).is_ended()) {
        let mut needed = needs(run, plan, leaf, status(leaf));
        needed.retain(|needed| !status(needed).is_ended());
        if !needed.is_empty() {
            waits.insert(leaf.clone(), needed);
        }
    }
    waits
}

fn needs(run: &RunState, plan: &Plan, leaf: &TaskIndex, status: TaskStatus) -> BTreeSet<TaskIndex> {
    if let Some(part) = waiting(run, leaf).and_then(|waiting| waiting.for_task.as_ref()) {
        return plan.leaves_of(part).cloned().collect();
    }
    if status == TaskStatus::Created { order::dependencies(plan, leaf) } else { BTreeSet::new() }
}

fn waiting<'a>(run: &'a RunState, leaf: &TaskIndex) -> Option<&'a Waiting> {
    run.planned(leaf)?.waiting.as_ref()
}

/// Tasks that wait for each other in a circle: each for the next, the last one for the first, which is the one whose wait
/// is the youngest.
#[must_use]
pub fn circle(run: &RunState) -> Option<Vec<TaskIndex>> {
    // Most runs hand nothing over.
    run.tasks.values().find(|task| task.waiting.as_ref().is_some_and(|wait| wait.for_task.is_some()))?;
    let waits = who_waits_for_whom(run);
    let put_down = waits.keys().filter(|leaf| waiting(run, leaf).is_some());
    let mut way = put_down.filter_map(|leaf| way_back(&waits, leaf)).next()?;
    let youngest =
        (0..way.len()).max_by_key(|at| waiting(run, &way[*at]).map(|waiting| (waiting.since, *at)))?;
    way.rotate_left(youngest);
    Some(way)
}

/// The shortest way from a task back to itself.
fn way_back(waits: &BTreeMap<TaskIndex, BTreeSet<TaskIndex>>, from: &TaskIndex) -> Option<Vec<TaskIndex>> {
    let (mut came_from, mut next) = (BTreeMap::new(), VecDeque::from([from]));
    while let Some(at) = next.pop_front() {
        for needed in waits.get(at).into_iter().flatten() {
            if needed == from {
                let back = std::iter::successors(Some(at), |at| came_from.get(*at).copied());
                let mut way: Vec<TaskIndex> = back.cloned().collect();
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(needed) {
                came_from.insert(needed, at);
                next.push_back(needed);
            }
        }
    }
    None
}

/// The task whose wait for another task is the youngest.
#[must_use]
pub fn youngest(run: &RunState) -> Option<&TaskId> {
    let since = |(task, state): (&'_ TaskId, &'_ TaskState)| -> Option<Millis> {
        task.leaf()?;
        Some(state.waiting.as_ref().filter(|waiting| waiting.for_task.is_some())?.since)
    };
    let waits = run.tasks.iter().filter_map(|found| Some((since(found)?, found.0)));
    waits.max().map(|(_, task)| task)
}
