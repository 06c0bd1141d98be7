//! The run as it stood before a decision that is put off: it is changed in place while it is decided upon. Most of what is put
//! off is word that somebody has begun a task, for which a few small parts are kept; for anything else a copy is.

use muster_shared::ids::{Seq, TaskId, TaskIndex};
use muster_shared::run::event::TaskStarted;
use muster_shared::run::{AgentEvent, AgentKey, Input, RunEvent, RunState, TaskState};

use super::is_of_agent;

/// What has to be put back.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AsItWas {
    /// These tasks, the first as they were before anything else, and these events of agents.
    Parts { tasks: Vec<(TaskId, TaskState)>, pending: Vec<(Seq, (AgentKey, AgentEvent))> },
    /// All of it.
    Whole(Box<RunState>),
}

impl AsItWas {
    /// Nothing was changed yet.
    pub(super) const fn new() -> Self {
        Self::Parts { tasks: Vec::new(), pending: Vec::new() }
    }

    /// The event is about to be folded.
    pub(super) fn before_event(&mut self, run: &RunState, event: &RunEvent) {
        let Self::Parts { tasks, .. } = self else { return };
        let RunEvent::TaskStarted(TaskStarted { task, .. }) = event else { return self.keep_whole(run) };
        // It changes the task, and the states of those above it that follow from it.
        let above = task.as_leaf().map(TaskIndex::planned).and_then(|index| index.parent());
        let above = std::iter::successors(above, TaskIndex::parent).map(TaskId::Leaf);
        let changed = std::iter::once(task.clone()).chain(above);
        tasks.extend(changed.filter_map(|id| run.tasks.get(&id).cloned().map(|state| (id, state))));
    }

    /// These inputs are about to be closed.
    pub(super) fn before_closing(&mut self, run: &RunState, inputs: &[Input]) {
        if matches!(self, Self::Whole(_)) {
            return;
        }
        let is_simple = |input: &Input| match input {
            Input::Agent { seq } => {
                run.pending.get(seq).is_none_or(|(_, event)| matches!(event, AgentEvent::Started(_)))
            }
            input => !is_of_agent(input) && input.request().is_none(),
        };
        if !inputs.iter().all(is_simple) {
            return self.keep_whole(run);
        }
        let Self::Parts { pending, .. } = self else { return };
        let named = inputs.iter().filter_map(|input| {
            let Input::Agent { seq } = input else { return None };
            Some((*seq, run.pending.get(seq)?.clone()))
        });
        pending.extend(named);
    }

    /// Puts everything back.
    pub(super) fn restore(self, run: RunState) -> RunState {
        match self {
            Self::Whole(before) => *before,
            Self::Parts { tasks, pending } => {
                let mut run = run;
                // The first that was kept of a task is how it was before all.
                run.tasks.extend(tasks.into_iter().rev());
                run.pending.extend(pending);
                run
            }
        }
    }

    fn keep_whole(&mut self, run: &RunState) {
        let parts = std::mem::replace(self, Self::new());
        *self = Self::Whole(Box::new(parts.restore(run.clone())));
    }
}
