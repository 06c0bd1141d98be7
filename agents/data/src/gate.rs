//! How often and by how many something outside is asked at once, by one process.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use muster_shared::flow::Use;
use muster_tools::{ToolContext, ToolFailure};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The door to a source: so many at once, and so many in a minute.
pub(crate) struct Gate {
    places: Semaphore,
    per_minute: u64,
    /// When it was asked within the last minute.
    asked: Mutex<VecDeque<Instant>>,
}

impl Gate {
    pub(crate) fn new(at_once: u64, per_minute: u64) -> Self {
        let places = Semaphore::new(usize::try_from(at_once.max(1)).unwrap_or(1));
        Self { places, per_minute, asked: Mutex::default() }
    }

    /// Whether it may be asked now, by a task that has to have the right to all these hosts; waits for a place.
    pub(crate) async fn admit(
        &self,
        ctx: &ToolContext,
        hosts: &[String],
    ) -> Result<SemaphorePermit<'_>, ToolFailure> {
        for host in hosts {
            ctx.rights.allows(&Use::Host(host)).map_err(|refusal| ToolFailure::NoRight(Box::new(refusal)))?;
        }
        self.count(Instant::now())?;
        self.places
            .acquire()
            .await
            .map_err(|_| ToolFailure::Unavailable("no more queries are made".to_owned()))
    }

    /// Counts a query, unless there were too many in the last minute.
    fn count(&self, now: Instant) -> Result<(), ToolFailure> {
        const MINUTE: Duration = Duration::from_secs(60);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        while asked.front().is_some_and(|first| now.duration_since(*first) >= MINUTE) {
            asked.pop_front();
        }
        let most = self.per_minute;
        if let Some(first) = asked.front().filter(|_| asked.len() as u64 >= most) {
            let wait = MINUTE.saturating_sub(now.duration_since(*first)).as_secs() + 1;
            return Err(ToolFailure::Unavailable(format!(
                "{most} queries in a minute are the most; ask again in {wait} s"
            )));
        }
        asked.push_back(now);
        Ok(())
    }
}
