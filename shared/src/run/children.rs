//! Runs that were begun for tasks of a run.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::state::RunStatus;
use crate::flow::{Goal, Report, Usage};
use crate::ids::{Generation, TaskId};
use crate::time::Millis;

/// A run that was begun for a task (R6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Child {
    /// The task.
    pub task: TaskId,
    /// Its generation that asked for the run.
    pub generation: Generation,
    /// The goal of the run.
    pub goal: Box<Goal>,
    /// When word of it was asked for last.
    pub asked_at: Millis,
    /// How it ended; nothing while nothing is known of its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Box<ChildEnd>>,
}

/// How a run ended that was begun for a task of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ChildEnd {
    /// How.
    pub status: RunStatus,
    /// Why it failed or was stopped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Its report, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
}
