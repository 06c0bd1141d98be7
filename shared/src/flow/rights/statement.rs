//! What is signed of an offer, so that whoever carries out a call for its task can tell what the task may use.

use serde::{Deserialize, Serialize};

use super::TaskRights;
use crate::flow::{Budget, TaskOffered};
use crate::ids::{Generation, RunId, TaskId};

/// What an orchestrator vouches for: this generation of the task may use this, and no more.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Statement<'a> {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: &'a TaskId,
    /// The generation.
    pub generation: Generation,
    /// What it may use.
    pub rights: &'a TaskRights,
    /// The most that it may use up.
    pub budget: &'a Budget,
}

impl<'a> Statement<'a> {
    /// What is said of the task of an offer.
    #[must_use]
    pub const fn of(offer: &'a TaskOffered) -> Self {
        let TaskOffered { run, task, generation, rights, budget, .. } = offer;
        Self { run: *run, task, generation: *generation, rights, budget }
    }

    /// The bytes that are signed.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // Names, numbers and lists of texts: all of that can be written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The bytes that are signed of an offer.
#[must_use]
pub fn statement(offer: &TaskOffered) -> Vec<u8> {
    Statement::of(offer).bytes()
}

/// Proves to whoever carries out a call for a task what the task may use: the signature of its offer, and what it was made
/// of besides run, task and rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Voucher {
    /// The generation that was offered.
    pub generation: Generation,
    /// The budget that was offered.
    #[serde(default)]
    pub budget: Budget,
    /// The signature, as it stands in the header of the offer.
    pub signature: String,
}
