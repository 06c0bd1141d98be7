//! What agents and tools did in runs that ended (M6): one entry for each run, the oldest giving way when there is no
//! more room.

use std::sync::Arc;

use futures::stream::BoxStream;
use muster_shared::track_record::RunTrackRecord;

use crate::bus::Core;
use crate::error::BusError;
use crate::kv::Bucket;
use crate::topology::TRACK_RECORD;

const BUCKET: Bucket = Bucket(TRACK_RECORD);

/// What was done in all runs.
#[derive(Clone)]
pub struct TrackRecord {
    pub(crate) core: Arc<Core>,
}

impl TrackRecord {
    /// Keeps what was done in a run, in place of what was known of it. Kept twice, it is there once.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn keep(&self, track_record: RunTrackRecord) -> Result<(), BusError> {
        let kept = track_record.bounded();
        BUCKET.set(&self.core, &kept.run.to_string(), &kept).await
    }

    /// What there is. What cannot be read (a newer build's) is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn all(&self) -> Result<Vec<RunTrackRecord>, BusError> {
        BUCKET.values(&self.core, "*").await
    }

    /// What was done as it is kept, beginning with what there is.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch(&self) -> Result<BoxStream<'static, RunTrackRecord>, BusError> {
        BUCKET.watch_values(&self.core).await
    }
}
