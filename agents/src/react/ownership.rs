//! Whether a task is still ours, looked at right before a call is paid for.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::journal::JournalError;
use super::place::TaskAssignment;
use crate::model::gate::Ownership;
use muster_shared::sync::lock;

/// Tells whether a task is still ours.
pub struct TaskOwnership {
    place: Arc<TaskAssignment>,
    /// Why it is ours no more.
    lost: Mutex<Option<JournalError>>,
}

impl TaskOwnership {
    pub(super) fn new(place: Arc<TaskAssignment>) -> Self {
        Self { place, lost: Mutex::new(None) }
    }

    /// Why the task is not ours any more.
    pub(super) fn lost(&self) -> JournalError {
        let lost = lock(&self.lost).take();
        lost.unwrap_or(JournalError::Lost)
    }
}

#[async_trait]
impl Ownership for TaskOwnership {
    async fn holds(&self) -> Result<(), String> {
        let look = self.place.journal().look(self.place.now());
        self.place.carry_out(look).await.map_err(|error| {
            let why = error.to_string();
            *lock(&self.lost) = Some(error);
            why
        })
    }
}
