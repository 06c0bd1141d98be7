//! Where steps and their calls are.

use std::time::Duration;

use serde_json::Value;

/// Which call of a step it is, and whether it undoes what that call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallId {
    pub(crate) step: usize,
    pub(crate) index: usize,
    pub(crate) undo: bool,
}

/// A call to make.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// What is waited for before.
    pub(crate) wait: Duration,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    /// Why it failed, if it did.
    pub(crate) failed: Option<String>,
    pub(crate) content: String,
    pub(crate) data: Option<Value>,
}

/// Where a step is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StepState {
    /// Nothing of it was begun.
    Waiting,
    /// Its calls are made.
    Open {
        /// What it loops over; one element where it does not.
        items: Vec<Value>,
        /// Why it fails once its calls have ended, if it does.
        failing: Option<String>,
    },
    /// All of it was done.
    Done,
    /// It failed.
    Failed(String),
    /// Nothing of it was done, and why.
    Skipped(String),
}

/// Where a call is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallState {
    Running,
    Done,
    Failed,
    Compensated,
    /// It could not be undone, and why.
    NotCompensated(String),
}

/// A call that was begun.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Made {
    pub(crate) state: CallState,
    pub(crate) item: Value,
    /// `status`, `content`, `data`.
    pub(crate) result: Value,
}

/// One step on its way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepCourse {
    pub(crate) state: StepState,
    pub(crate) made: Vec<Made>,
    /// What other steps see of it.
    pub(crate) seen: Value,
}

impl StepCourse {
    pub(super) fn running(&self) -> usize {
        self.made.iter().filter(|made| made.state == CallState::Running).count()
    }

    pub(super) fn has_ended(&self) -> bool {
        !matches!(self.state, StepState::Waiting | StepState::Open { .. })
    }
}
