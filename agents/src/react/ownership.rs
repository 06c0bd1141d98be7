//! Whether a task is still ours, looked at right before a call is paid for.
//!
//! The fence keeps whoever lost a task from writing, but not from asking a model once more. A process that stood still
//! (stopped, swapped out, a machine that slept) or was cut off from the bus does not know what happened meanwhile: it
//! looks first. One that wrote a moment ago over the same connection cannot have been taken for dead since.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use muster_shared::ids::Seq;
use muster_shared::run::RecordEvent;

use super::journal::JournalError;
use super::place::TaskAssignment;
use crate::model::gate::Ownership;

/// So long after its last word nobody else is given a task, by any of the ways in which a death is noticed.
const SURE: Duration = Duration::from_millis(200);

/// Tells whether a task is still ours.
pub struct TaskOwnership {
    place: TaskAssignment,
    known: Mutex<LastKnown>,
}

/// What is known of it.
struct LastKnown {
    /// Our last word.
    last: Seq,
    /// When it was ours for the last time, and over which connection we knew.
    at: Moment,
    /// Why it is ours no more.
    lost: Option<JournalError>,
}

/// A time, and how often the connection to the bus had been made anew.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    at: Instant,
    connections: u64,
}

impl TaskOwnership {
    pub(super) fn new(place: TaskAssignment) -> Self {
        let at = Moment { at: Instant::now(), connections: place.record.connections() };
        Self { place, known: Mutex::new(LastKnown { last: Seq(0), at, lost: None }) }
    }

    pub(super) fn now(&self) -> Moment {
        Moment { at: Instant::now(), connections: self.place.record.connections() }
    }

    /// Our word of this position was taken, and had been sent at this moment or later.
    pub(super) fn confirm(&self, last: Seq, at: Moment) {
        let mut known = self.known();
        (known.last, known.at) = (last, at);
    }

    /// Why the task is not ours any more.
    pub(super) fn lost(&self) -> JournalError {
        self.known().lost.take().unwrap_or(JournalError::Lost)
    }

    async fn look(&self) -> Result<(), JournalError> {
        let (last, known) = {
            let known = self.known();
            (known.last, known.at)
        };
        let now = self.now();
        if now.at.duration_since(known.at) < SURE && now.connections == known.connections {
            return Ok(());
        }
        let entries = self.place.entries(last).await?;
        let lost = entries.iter().any(|entry| match &entry.event {
            RecordEvent::Agent(key, written) => self.place.ends_part(key, written),
            RecordEvent::Decided(_) | RecordEvent::Offered(_) => false,
        });
        if lost {
            return Err(JournalError::Lost);
        }
        self.confirm(last, now);
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, LastKnown> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Ownership for TaskOwnership {
    async fn holds(&self) -> Result<(), String> {
        self.look().await.map_err(|error| {
            let why = error.to_string();
            self.known().lost = Some(error);
            why
        })
    }
}
