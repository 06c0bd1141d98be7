//! What is signed of an offer, so that whoever carries out a call for its task can tell what the task may use.

use serde::Serialize;

use super::TaskRights;
use crate::flow::{Budget, TaskOffered};
use crate::ids::{Generation, RunId, TaskId};

/// What an orchestrator vouches for: this generation of the task may use this, and no more.
#[derive(Serialize)]
struct Statement<'a> {
    run: RunId,
    task: &'a TaskId,
    generation: Generation,
    rights: &'a TaskRights,
    budget: &'a Budget,
}

/// The bytes that are signed of an offer.
#[must_use]
pub fn statement(offer: &TaskOffered) -> Vec<u8> {
    let TaskOffered { run, task, generation, rights, budget, .. } = offer;
    let said = Statement { run: *run, task, generation: *generation, rights, budget };
    // Names, numbers and lists of texts: all of that can be written.
    serde_json::to_vec(&said).unwrap_or_default()
}
