//! Every beginning of an event log can be explained, and its sums are those of the state.

use std::rc::Rc;

use muster_shared::explain::{Explanation, explain};
use muster_shared::flow::Usage;
use muster_shared::run::{Entry, RunState};

use crate::folds;

/// What does not hold of an explanation of these entries.
pub(crate) fn broken(entries: &[Rc<Entry>]) -> Vec<String> {
    let Ok(Some(state)) = folds::whole(entries) else { return Vec::new() };
    let entries: Vec<Entry> = entries.iter().map(|entry| (**entry).clone()).collect();
    let told = explain(&state, &entries, None);
    let mut broken: Vec<String> = sums(&state, &told).into_iter().collect();
    let task = state.tasks.keys().next_back();
    let one = explain(&state, &entries, task);
    if one.cost != told.cost || one.total_ms != told.total_ms {
        broken.push(format!("the whole is the same whichever task is asked for: {task:?}"));
    }
    broken
}

fn sums(state: &RunState, told: &Explanation) -> Option<String> {
    let sum = |parts: &mut dyn Iterator<Item = Usage>| {
        let mut sum = Usage::default();
        parts.for_each(|part| sum += part);
        sum
    };
    let by_task = sum(&mut told.cost.by_task.iter().map(|row| row.usage));
    let by_role = sum(&mut told.cost.by_role.iter().map(|row| row.usage));
    let used = state.used();
    (by_task != used || by_role != used || told.cost.total != used)
        .then(|| format!("what is explained adds up: {by_task:?}, {by_role:?}, used {used:?}"))
}
