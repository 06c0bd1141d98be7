//! Which tasks somebody may have meant who named one that is not in the plan.

use crate::flow::Plan;
use crate::ids::TaskIndex;

/// Most tasks that are named.
const MOST: usize = 3;

/// Why a task cannot be found, and which are nearest to what was named.
#[must_use]
pub fn unknown_task(plan: &Plan, wanted: &TaskIndex) -> String {
    let near: Vec<String> = nearest(plan, wanted).iter().map(|index| named(plan, index)).collect();
    match near.as_slice() {
        [] => format!("there is no task {wanted}: the plan has no task"),
        near => format!("there is no task {wanted}; nearest to it: {}", near.join(", ")),
    }
}

/// The tasks of a plan whose places are nearest to an index, nearest first.
fn nearest(plan: &Plan, wanted: &TaskIndex) -> Vec<TaskIndex> {
    let mut tasks: Vec<&TaskIndex> = plan.tasks.keys().collect();
    tasks.sort_by_key(|index| (distance(index, wanted), (*index).clone()));
    tasks.into_iter().take(MOST).cloned().collect()
}

fn named(plan: &Plan, index: &TaskIndex) -> String {
    plan.tasks.get(index).map_or_else(|| index.to_string(), |task| format!("{index} ({})", task.name))
}

/// How many levels two places do not share, then how far apart they are on the first of these.
fn distance(one: &TaskIndex, other: &TaskIndex) -> (usize, u16) {
    let (one_way, other_way) = (way(one), way(other));
    let shared = one_way.iter().zip(&other_way).take_while(|(a, b)| a.position() == b.position()).count();
    let apart = if let (Some(a), Some(b)) = (one_way.get(shared), other_way.get(shared)) {
        a.position().abs_diff(b.position())
    } else {
        0
    };
    (one_way.len() + other_way.len() - 2 * shared, apart)
}

/// The places from the top down to this one.
fn way(index: &TaskIndex) -> Vec<TaskIndex> {
    let mut way: Vec<TaskIndex> = std::iter::successors(Some(index.clone()), TaskIndex::parent).collect();
    way.reverse();
    way
}
