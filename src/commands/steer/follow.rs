//! Follows the record of a run until a request stands in it.

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_bus::{BusError, Unreadable};
use muster_shared::flow::TaskStatus;
use muster_shared::ids::{Seq, TaskId};
use muster_shared::run::{Decided, Entry, RecordEvent, RunEvent, RunState, apply};
use tokio::time::Instant;

use crate::exit::{Failure, failed, usage};
use crate::render;

/// What became of a request.
pub(super) struct Recorded {
    /// Where it stands.
    pub(super) seq: Seq,
    /// What was decided upon it.
    pub(super) events: Vec<RunEvent>,
}

/// The record of a run while it is followed.
pub(super) struct Following {
    record: BoxStream<'static, Result<Entry, Unreadable>>,
    state: Box<Option<RunState>>,
}

impl Following {
    /// Follows the record from where the state stands.
    pub(super) fn new(record: BoxStream<'static, Result<Entry, Unreadable>>, state: RunState) -> Self {
        Self { record, state: Box::new(Some(state)) }
    }

    /// How the run stands.
    pub(super) fn state(&self) -> Option<&RunState> {
        self.state.as_ref().as_ref()
    }

    /// The next decision for which `is_meant` is true. Nothing if it is not in the event log in time.
    pub(super) async fn until_decided(
        &mut self,
        until: Instant,
        is_meant: impl Fn(&Decided) -> bool,
    ) -> Option<Result<Recorded, Failure>> {
        loop {
            let entry = match self.next(until).await? {
                Ok(entry) => entry,
                Err(failure) => return Some(Err(failure)),
            };
            if let RecordEvent::Decided(decided) = entry.event
                && is_meant(&decided)
            {
                return Some(Ok(Recorded { seq: entry.seq, events: decided.events }));
            }
            if let Some(state) = self.state().filter(|state| state.status.is_ended()) {
                return Some(Err(has_ended(state)));
            }
        }
    }

    /// Waits until agents have put down what they had in hand, as long as there is time.
    pub(super) async fn until_put_down(&mut self, until: Instant) {
        while self.state().is_some_and(|state| at_work(state) > 0 && state.control.paused.is_some()) {
            if !matches!(self.next(until).await, Some(Ok(_))) {
                return;
            }
        }
    }

    async fn next(&mut self, until: Instant) -> Option<Result<Entry, Failure>> {
        let entry = loop {
            match tokio::time::timeout_at(until, self.record.next()).await.ok()?? {
                Err(stray) if stray.of_nobody => {}
                entry => break entry,
            }
        };
        let folded = entry.map_err(|error| Failure::from(BusError::from(error))).and_then(|entry| {
            apply(&mut self.state, &entry).map_err(|error| {
                failed!("the record cannot be followed: {error}")
                    .help("a newer muster may have written it; `muster trace` shows it entry by entry")
            })?;
            Ok(entry)
        });
        Some(folded)
    }
}

/// How many tasks agents have in hand.
pub(super) fn at_work(state: &RunState) -> usize {
    // A parent only reflects its leaves.
    let executed = |task: &TaskId| match task {
        TaskId::Leaf(index) => {
            state.plan.as_ref().is_some_and(|plan| plan.is_leaf(&index.planned())) && !state.is_shared(task)
        }
        TaskId::Plan
        | TaskId::Reflect(_)
        | TaskId::Refine(_)
        | TaskId::Settle(_)
        | TaskId::Write
        | TaskId::DraftReview(_) => true,
    };
    let in_hand = state.tasks.iter().filter(|(task, _)| executed(task));
    in_hand.filter(|(_, found)| found.status == TaskStatus::Processing).count()
}

/// Nothing can be asked of a run that has ended.
pub(super) fn has_ended(state: &RunState) -> Failure {
    usage!(
        "run {} has ended ({}): it cannot be changed any more",
        state.id.short(),
        render::runs::word(state)
    )
    .help(format!("`muster show {}` shows the result; start a new run with `muster run`", state.id.short()))
}
