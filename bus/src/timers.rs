//! Timers: one per run, its next deadline. A firing is a hint: whoever takes it compares the deadline with the clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use muster_shared::ids::RunId;
use muster_shared::time::Millis;

use crate::backend::{Ack, Headers, Message, Pull, QueueSpec, Schedule, WriteOptions};
use crate::bus::Core;
use crate::error::BusError;
use crate::subject::Subject;
use crate::topology::TIMERS;

/// The timers of runs.
#[derive(Clone)]
pub struct Timers {
    core: Arc<Core>,
}

impl Timers {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// Sets the timer of a run, in place of the one it had. A time that has passed fires at once.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn set(&self, run: RunId, at: Millis) -> Result<(), BusError> {
        let subject = Subject::TimerSet(run).to_string();
        let message = Message { subject, headers: Headers::default(), payload: Bytes::new() };
        let schedule = Some(Schedule { at, target: Subject::TimerDue(run).to_string() });
        let options = WriteOptions { schedule, rollup: true, ..WriteOptions::default() };
        self.core.backend.append(TIMERS, vec![message], options).await?;
        Ok(())
    }

    /// Removes the timer of a run. One that has just fired may still arrive.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn clear(&self, run: RunId) -> Result<(), BusError> {
        self.core.backend.purge(TIMERS, &Subject::TimerSet(run).to_string()).await?;
        Ok(())
    }

    /// Joins the queue of firings, which all orchestrators share.
    ///
    /// # Errors
    /// When the bus is not provisioned, or fails.
    pub async fn join(&self) -> Result<TimerQueue, BusError> {
        let spec = QueueSpec {
            stream: TIMERS,
            name: "orchestrators".into(),
            filter: "timer.due.>".into(),
            ack_wait: self.core.settings.ack_wait,
            idle: None,
        };
        let pull = self.core.backend.join(&spec).await?;
        Ok(TimerQueue { core: Arc::clone(&self.core), pull })
    }
}

/// The queue of firings.
#[derive(Clone)]
pub struct TimerQueue {
    core: Arc<Core>,
    pull: Arc<dyn Pull>,
}

impl TimerQueue {
    /// The next firing; nothing when none came within `wait`.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn take(&self, wait: Duration) -> Result<Option<FiredTimer>, BusError> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Some(delivery) = self.pull.pull(left).await? else { return Ok(None) };
            match Subject::parse(&delivery.stored.message.subject) {
                Ok(Subject::TimerDue(run)) => {
                    let core = Arc::clone(&self.core);
                    return Ok(Some(FiredTimer { core, run, at: delivery.stored.at, ack: delivery.ack }));
                }
                Ok(_) | Err(_) => self.core.backend.ack(&delivery.ack, Ack::Term, false).await?,
            }
        }
    }
}

/// A timer that fired.
pub struct FiredTimer {
    core: Arc<Core>,
    ack: String,
    /// Whose it is.
    pub run: RunId,
    /// When the broker fired it.
    pub at: Millis,
}

impl FiredTimer {
    /// Removes the firing from the queue.
    ///
    /// # Errors
    /// When the bus fails; the firing may then come again.
    pub async fn done(self) -> Result<(), BusError> {
        self.core.backend.ack(&self.ack, Ack::Done, false).await
    }

    /// Gives the firing back, to come again after `delay`: this process does not own the run.
    ///
    /// # Errors
    /// When the bus fails; the firing then comes again after `ack_wait`.
    pub async fn hand_back(self, delay: Duration) -> Result<(), BusError> {
        self.core.backend.ack(&self.ack, Ack::Nak(delay), false).await
    }
}

impl std::fmt::Debug for FiredTimer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FiredTimer").field("run", &self.run).field("at", &self.at).finish_non_exhaustive()
    }
}
