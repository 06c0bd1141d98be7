//! What runs that ended taught (M1): one entry for each run, the oldest giving way when there is no more room.

use std::sync::Arc;

use futures::stream::BoxStream;
use muster_shared::flow::RunLessons;
use muster_shared::ids::RunId;

use crate::bus::Core;
use crate::error::BusError;
use crate::kv::Bucket;
use crate::topology::LESSONS;

const BUCKET: Bucket = Bucket(LESSONS);

/// The lessons of all runs.
#[derive(Clone)]
pub struct Lessons {
    pub(crate) core: Arc<Core>,
}

impl Lessons {
    /// Keeps the lessons of a run, in place of those it had. Kept twice, they are there once.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn keep(&self, lessons: RunLessons) -> Result<(), BusError> {
        let RunLessons { run, goal, ended_at, completed, lessons } = lessons.bounded();
        let hide = |text: &String| self.core.redactor.redact(text).into_owned();
        let lessons = lessons.iter().map(hide).collect();
        let kept = RunLessons { run, goal: hide(&goal), ended_at, completed, lessons };
        BUCKET.set(&self.core, &run.to_string(), &kept).await
    }

    /// The lessons that there are. What cannot be read (a newer build's) is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn all(&self) -> Result<Vec<RunLessons>, BusError> {
        BUCKET.values(&self.core, "*").await
    }

    /// Forgets the lessons of a run. Runs that were told of them keep what they were told.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn forget(&self, run: RunId) -> Result<bool, BusError> {
        let key = run.to_string();
        if BUCKET.last(&self.core, &key).await?.is_none_or(|entry| entry.message.is_none()) {
            return Ok(false);
        }
        BUCKET.remove(&self.core, &key, None).await?;
        Ok(true)
    }

    /// Lessons as they are kept, beginning with those there are.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch(&self) -> Result<BoxStream<'static, RunLessons>, BusError> {
        BUCKET.watch_values(&self.core).await
    }
}
