//! Where the tasks of a blueprint stand in the plan. Each step has a place of its own from the beginning, so that
//! tasks that come later move none that are there.

use super::{Blueprint, BlueprintStep};
use crate::flow::RunLimits;
use crate::ids::TaskIndex;

/// The places of a blueprint's steps within the limits of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    steps: usize,
    width: usize,
    depth: usize,
    tasks: usize,
}

/// How the items of a list are laid out below their step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// How many items there is room for.
    pub(super) items: usize,
    /// How many stand in a batch; nothing when they stand beside each other.
    pub(super) batch: Option<usize>,
}

impl Layout {
    pub(super) fn of(blueprint: &Blueprint, limits: &RunLimits) -> Self {
        Self {
            steps: blueprint.steps.len(),
            width: usize::from(limits.max_width.max(1)),
            depth: usize::from(limits.max_depth.max(1)),
            tasks: usize::from(limits.max_tasks.max(1)),
        }
    }

    /// Why the blueprint does not fit the limits of a run.
    pub(super) fn problem(blueprint: &Blueprint, limits: &RunLimits) -> Option<String> {
        let layout = Self::of(blueprint, limits);
        let Self { steps, width, tasks, .. } = layout;
        if steps > width * width {
            return Some(format!(
                "{steps} steps are too many for limits.max_width = {width}: leave some out, or raise it"
            ));
        }
        let groups = blueprint.steps.iter().any(is_group);
        let depth = 1 + usize::from(layout.has_parts()) + usize::from(groups);
        if depth > usize::from(limits.max_depth.max(1)) {
            return Some(format!(
                "its plan has {depth} levels, limits.max_depth is {}: raise it",
                limits.max_depth
            ));
        }
        if let Some(step) = blueprint.steps.iter().find(|step| 1 + step.fallback.len() > width) {
            return Some(format!(
                "step {:?} and its fallback are too many for limits.max_width = {width}: raise it",
                step.id
            ));
        }
        let least: usize = blueprint.steps.iter().map(least_tasks).sum::<usize>() + layout.parts();
        (least > tasks).then(|| {
            format!("its plan has at least {least} tasks, limits.max_tasks is {tasks}: leave some out, or raise it")
        })
    }

    /// The place of the step at this position, from 0.
    pub(super) fn place(&self, position: usize) -> TaskIndex {
        if self.has_parts() {
            TaskIndex::top(number(position / self.width)).child(number(position % self.width))
        } else {
            TaskIndex::top(number(position))
        }
    }

    /// Whether the steps are too many to stand beside each other.
    pub(super) const fn has_parts(&self) -> bool {
        self.steps > self.width
    }

    /// How many places at the top the steps have.
    pub(super) fn reserved(&self) -> usize {
        if self.has_parts() { self.parts() } else { self.steps }
    }

    /// How many tasks only hold others together.
    pub(super) fn parts(&self) -> usize {
        if self.has_parts() { self.steps.div_ceil(self.width) } else { 0 }
    }

    /// How many items of its list a step may be done for when the plan has `planned` tasks and so many others may
    /// still follow.
    fn items(&self, step: &BlueprintStep, planned: usize, to_come: usize) -> usize {
        let beside = self.width.saturating_sub(step.fallback.len());
        let kept = to_come + self.parts() + 1 + step.fallback.len();
        beside.min(self.tasks.saturating_sub(planned).saturating_sub(kept)).max(1)
    }

    /// How so many items of a list are laid out: beside each other where the width allows it, else in batches one level
    /// lower, where the depth allows that.
    pub(super) fn arrange(
        &self,
        step: &BlueprintStep,
        items: usize,
        planned: usize,
        to_come: usize,
    ) -> Arrangement {
        let flat = Arrangement { items: self.items(step, planned, to_come).min(items), batch: None };
        let levels = 3 + usize::from(self.has_parts());
        if flat.items >= items || levels > self.depth {
            return flat;
        }
        let beside = self.width.saturating_sub(step.fallback.len()).max(1);
        let kept = to_come + self.parts() + 1 + step.fallback.len();
        let free = self.tasks.saturating_sub(planned).saturating_sub(kept);
        let fits = |many: &usize| many + many.div_ceil(self.width) <= free;
        let most = (1..=items.min(beside * self.width)).rev().find(fits).unwrap_or(0);
        if most <= flat.items {
            return flat;
        }
        // As even as they come: 8 items of at most 5 are 4 and 4.
        let batches = most.div_ceil(self.width);
        Arrangement { items: most, batch: Some(most.div_ceil(batches)) }
    }
}

/// Whether a step is a task with others below it.
pub(super) fn is_group(step: &BlueprintStep) -> bool {
    step.for_each.is_some() || !step.fallback.is_empty()
}

/// How many tasks a step takes at least, when it is done.
pub(super) fn least_tasks(step: &BlueprintStep) -> usize {
    if is_group(step) { 2 + step.fallback.len() } else { 1 }
}

/// A position as the number of a task, from 1.
pub(super) fn number(position: usize) -> u16 {
    u16::try_from(position).unwrap_or(u16::MAX - 1) + 1
}
