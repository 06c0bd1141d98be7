//! What changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_shared::ids::{RunId, TaskId};
use muster_shared::run::Entry;
use uuid::Uuid;

use super::traffic::Passed;

/// What changed by an input.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// How the way to the fleet stands, or whether everything is there.
    Link,
    /// Processes, or what happened to them.
    Fleet,
    /// What a list says of a run.
    Brief(RunId),
    /// A run is not known any more.
    Gone(RunId),
    /// A run that is open.
    Run(Box<RunChange>),
    /// What is asked of people.
    Questions,
    /// What a task of an open run does right now.
    Doing {
        /// The run.
        run: RunId,
        /// The task.
        task: TaskId,
    },
    /// A message passed.
    Tapped(Arc<Passed>),
    /// What passes is not watched any more; what passed stays.
    TapEnded,
    /// It was decided upon what somebody asked of a run.
    Request {
        /// The id of the request.
        id: Uuid,
        /// Why it is refused, if it is.
        refused: Option<String>,
    },
}

/// What changed in an open run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunChange {
    /// The run.
    pub(crate) run: RunId,
    /// Tasks that are new or changed.
    pub(crate) tasks: BTreeSet<TaskId>,
    /// Tasks that are not there any more.
    pub(crate) removed: BTreeSet<TaskId>,
    /// The entries by which they did.
    pub(crate) entries: Vec<Arc<Entry>>,
}
