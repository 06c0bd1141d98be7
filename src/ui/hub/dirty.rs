//! What changed of a fleet and was not told to pages yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_shared::ids::{RunId, TaskId};
use muster_shared::run::Entry;

use super::super::watcher::Line;

/// What changed and was not told yet.
#[derive(Default)]
pub(super) struct Dirty {
    pub(super) link: bool,
    pub(super) fleet: bool,
    pub(super) questions: bool,
    pub(super) briefs: BTreeSet<RunId>,
    pub(super) runs: BTreeMap<RunId, DirtyRun>,
    pub(super) doing: BTreeSet<(RunId, TaskId)>,
    pub(super) lines: Vec<Line>,
    /// Lines that passed and were too many to be told.
    pub(super) lines_left_out: u64,
}

#[derive(Default)]
pub(super) struct DirtyRun {
    pub(super) tasks: BTreeSet<TaskId>,
    pub(super) removed: BTreeSet<TaskId>,
    pub(super) entries: Vec<Arc<Entry>>,
}

impl Dirty {
    pub(super) fn is_empty(&self) -> bool {
        !self.fleet && !self.is_beside_fleet()
    }

    /// Whether there is nothing but what waits for the fleet's turn.
    pub(super) fn is_only_fleet(&self) -> bool {
        self.fleet && !self.is_beside_fleet()
    }

    /// Whether something changed beside the fleet.
    fn is_beside_fleet(&self) -> bool {
        let Self { link, fleet: _, questions, briefs, runs, doing, lines, lines_left_out } = self;
        let is_listed = !briefs.is_empty() || !runs.is_empty() || !doing.is_empty() || !lines.is_empty();
        is_listed || *link || *questions || *lines_left_out > 0
    }
}
