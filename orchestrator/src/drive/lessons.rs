//! What earlier runs taught, at hand for goals that come in. It is held in memory, so that no goal waits for it: one
//! that comes before the lessons were read waits a moment at most and then goes on without them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use muster_bus::BusError;
use muster_shared::flow::RunLessons;
use muster_shared::recall;
use muster_shared::sync::lock;
use tokio_util::sync::CancellationToken;

use super::context::OrchestratorContext;
use super::repeat;

/// The longest that a goal waits for lessons (W11).
const PATIENCE: Duration = Duration::from_millis(200);

/// What earlier runs taught.
#[derive(Debug, Default)]
pub(crate) struct Lessons {
    known: Mutex<recall::Lessons>,
    /// Set once those that there were have been read.
    read: CancellationToken,
}

impl Lessons {
    /// Takes the lessons of a run in.
    pub(super) fn learn(&self, lessons: RunLessons) {
        lock(&self.known).learn(lessons.bounded());
    }

    /// At most `most` lessons for a goal; none when they are not at hand in time.
    pub(super) async fn recall(&self, goal: &str, most: usize) -> Vec<String> {
        if most == 0 {
            return Vec::new();
        }
        if tokio::time::timeout(PATIENCE, self.read.cancelled()).await.is_err() {
            tracing::warn!("the lessons of earlier runs are not at hand; the run begins without them");
        }
        lock(&self.known).recall(goal, most)
    }
}

/// Reads what there is, then follows what others keep, for as long as it is polled.
pub(super) async fn follow(context: Arc<OrchestratorContext>) {
    repeat("the lessons of earlier runs cannot be read", || read(&context)).await;
}

async fn read(context: &OrchestratorContext) -> Result<(), BusError> {
    let lessons = context.bus.lessons();
    for kept in lessons.all().await? {
        context.lessons.learn(kept);
    }
    context.lessons.read.cancel();
    let mut kept = lessons.watch().await?;
    while let Some(kept) = kept.next().await {
        context.lessons.learn(kept);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_goal_waits_for_lessons_a_moment_at_most() {
        let lessons = Lessons::default();
        let began = Instant::now();
        assert!(lessons.recall("a goal", 5).await.is_empty());
        let waited = began.elapsed();
        assert!(waited >= PATIENCE && waited < PATIENCE * 5, "{waited:?}");
        lessons.read.cancel();
        let began = Instant::now();
        assert!(lessons.recall("a goal", 5).await.is_empty());
        assert!(began.elapsed() < PATIENCE);
    }
}
