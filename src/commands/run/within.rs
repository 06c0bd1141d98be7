//! Runs that tasks of the watched run have of their own: what they ask is asked here too.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use muster_bus::{Bus, RecordFilter};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{Entry, RunState, apply};

/// Most runs within that are followed.
const MOST: usize = 32;

/// The runs within, as far as they are followed. One that cannot be is left alone: it is told of by its parent.
#[derive(Default)]
pub(super) struct Within {
    states: BTreeMap<RunId, Option<RunState>>,
    entries: SelectAll<BoxStream<'static, (RunId, Entry)>>,
}

impl Within {
    /// Follows the children of a run that have not ended.
    pub(super) async fn follow(&mut self, bus: &Bus, state: &RunState) {
        let open = state.children.iter().filter(|(_, child)| child.end.is_none());
        let new = open.map(|(run, _)| *run).filter(|run| !self.states.contains_key(run));
        let new: Vec<RunId> = new.take(MOST.saturating_sub(self.states.len())).collect();
        for run in new {
            if let Ok(record) = bus.record().follow(&RecordFilter::Run(run), Seq(0)).await {
                let readable = record.filter_map(move |entry| async move { Some((run, entry.ok()?)) });
                self.entries.push(readable.boxed());
                self.states.insert(run, None);
            }
        }
    }

    /// The same for the children of one of these.
    pub(super) async fn follow_children(&mut self, bus: &Bus, run: RunId) {
        let Some(Some(state)) = self.states.get_mut(&run).map(Option::take) else { return };
        self.follow(bus, &state).await;
        self.states.insert(run, Some(state));
    }

    /// The next entry of one of them; nothing while there are none.
    pub(super) async fn next(&mut self) -> Option<(RunId, Entry)> {
        self.entries.next().await
    }

    /// Takes an entry in. Gives the run as it stands then.
    pub(super) fn take_in(&mut self, run: RunId, entry: &Entry) -> Option<&RunState> {
        let state = self.states.get_mut(&run)?;
        apply(state, entry).ok()?;
        state.as_ref()
    }

    /// The current state of a run.
    pub(super) fn state(&self, run: RunId) -> Option<&RunState> {
        self.states.get(&run)?.as_ref()
    }

    /// All runs, to be changed.
    pub(super) fn states_mut(&mut self) -> impl Iterator<Item = &mut RunState> {
        self.states.values_mut().flatten()
    }

    /// The runs as they stand.
    pub(super) fn states(&self) -> impl Iterator<Item = &RunState> {
        self.states.values().flatten().filter(|state| !state.status.is_ended())
    }
}
