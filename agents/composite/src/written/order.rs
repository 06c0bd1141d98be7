//! The order of steps. Pure.

use std::collections::BTreeSet;

use crate::file::Step;

/// A step that can never begin, because it waits for itself.
pub(super) fn circle(steps: &[Step]) -> Option<usize> {
    let mut free: BTreeSet<usize> = BTreeSet::new();
    loop {
        let waits = |at: &usize| {
            let step = &steps[*at];
            !free.contains(at) && step.needs.iter().chain(&step.after).all(|other| free.contains(other))
        };
        let next: Vec<usize> = (0..steps.len()).filter(waits).collect();
        if next.is_empty() {
            return (0..steps.len()).find(|at| !free.contains(at));
        }
        free.extend(next);
    }
}
