//! The run as it stood before a decision that is put off: it is changed in place while it is decided upon. What is put off
//! changes little: that somebody has begun a task or handed it over, that one ended well, what was learnt from it. The few
//! parts of the run that this changes are kept; for anything else a copy is.

use std::collections::BTreeMap;

use muster_shared::ids::{AgentId, Seq, TaskId, TaskIndex};
use muster_shared::run::event::{Reflected, TaskCompleted, TaskReleased, TaskStarted};
use muster_shared::run::{
    AgentEvent, AgentKey, Input, Refining, RunEvent, RunState, Seen, Spending, TaskState, Trials,
};
use muster_shared::track_record::Tally;

use super::is_of_agent;

/// What has to be put back.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AsItWas {
    /// These parts.
    Parts(Parts),
    /// All of it.
    Whole(Box<RunState>),
}

/// Parts of a run. Of what was kept more than once, the first is as it was before all.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Parts {
    tasks: Vec<(TaskId, TaskState)>,
    pending: Vec<(Seq, (AgentKey, AgentEvent))>,
    seen: Vec<(TaskId, Seen)>,
    counts: Option<Box<Counts>>,
    refining: Option<Refining>,
}

/// What the end of a task is counted in.
#[derive(Debug, Clone, PartialEq)]
struct Counts {
    spending: Spending,
    tallies: BTreeMap<AgentId, Tally>,
    model_failures: u32,
    failures_in_a_row: u32,
    trials: Trials,
}

impl AsItWas {
    /// Nothing was changed yet.
    pub(super) fn new() -> Self {
        Self::Parts(Parts::default())
    }

    /// The event is about to be folded.
    pub(super) fn before_event(&mut self, run: &RunState, event: &RunEvent) {
        let Self::Parts(parts) = self else { return };
        // With a task members may end, whoever they are.
        let is_kept = run.groups.is_empty() && parts.keep_before(run, event);
        if !is_kept {
            self.keep_whole(run);
        }
    }

    /// These inputs are about to be closed.
    pub(super) fn before_closing(&mut self, run: &RunState, inputs: &[Input]) {
        let Self::Parts(parts) = self else { return };
        if inputs.iter().any(|input| input.request().is_some()) {
            return self.keep_whole(run);
        }
        for input in inputs.iter().filter(|input| is_of_agent(input)) {
            let (Input::Agent { seq } | Input::Unreadable { seq, .. }) = input else { continue };
            if run.pending.get(seq).is_some_and(|(_, event)| !matches!(event, AgentEvent::Started(_))) {
                parts.keep_counts(run);
            }
            parts.keep_pending(run, *seq);
        }
    }

    /// Puts everything back.
    pub(super) fn restore(self, run: Box<RunState>) -> Box<RunState> {
        match self {
            Self::Whole(before) => before,
            Self::Parts(parts) => parts.restore(run),
        }
    }

    fn keep_whole(&mut self, run: &RunState) {
        if let Self::Parts(parts) = self {
            let parts = std::mem::take(parts);
            *self = Self::Whole(parts.restore(Box::new(run.clone())));
        }
    }
}

impl Parts {
    /// Keeps what an event changes, if that is little.
    fn keep_before(&mut self, run: &RunState, event: &RunEvent) -> bool {
        if let RunEvent::TaskStarted(TaskStarted { task, .. }) = event {
            self.keep_counts(run);
            self.keep_task(run, task);
        } else if let RunEvent::TaskReleased(TaskReleased { task, .. }) = event {
            self.seen.extend(run.seen.get(task).map(|seen| (task.clone(), seen.clone())));
            self.keep_task(run, task);
        } else if let RunEvent::TaskCompleted(TaskCompleted { task, outcome, .. }) = event {
            self.keep_counts(run);
            self.keep_pending(run, *outcome);
            self.keep_task(run, task);
        } else if let RunEvent::Reflected(Reflected { task, .. }) = event {
            self.keep_task(run, &task.to_task_id());
        } else if let RunEvent::RefinementWanted(_) = event {
            self.refining.get_or_insert_with(|| run.refining.clone());
        } else {
            return false;
        }
        true
    }

    /// Keeps a task, and those above it: their states follow from it.
    fn keep_task(&mut self, run: &RunState, task: &TaskId) {
        let above = task.as_leaf().map(TaskIndex::planned).and_then(|index| index.parent());
        let above = std::iter::successors(above, TaskIndex::parent).map(TaskId::Leaf);
        let changed = std::iter::once(task.clone()).chain(above);
        self.tasks.extend(changed.filter_map(|id| run.tasks.get(&id).cloned().map(|state| (id, state))));
    }

    fn keep_pending(&mut self, run: &RunState, seq: Seq) {
        self.pending.extend(run.pending.get(&seq).map(|event| (seq, event.clone())));
    }

    fn keep_counts(&mut self, run: &RunState) {
        self.counts.get_or_insert_with(|| {
            Box::new(Counts {
                spending: run.spending.clone(),
                tallies: run.tallies.clone(),
                model_failures: run.responses.model_failures,
                failures_in_a_row: run.planning.failures_in_a_row,
                trials: run.trials.clone(),
            })
        });
    }

    fn restore(self, mut run: Box<RunState>) -> Box<RunState> {
        run.tasks.extend(self.tasks.into_iter().rev());
        run.pending.extend(self.pending);
        run.seen.extend(self.seen.into_iter().rev());
        if let Some(counts) = self.counts {
            let Counts { spending, tallies, model_failures, failures_in_a_row, trials } = *counts;
            (run.spending, run.tallies) = (spending, tallies);
            run.responses.model_failures = model_failures;
            run.planning.failures_in_a_row = failures_in_a_row;
            run.trials = trials;
        }
        if let Some(refining) = self.refining {
            run.refining = refining;
        }
        run
    }
}
