//! Values of the shared context as they are written, for whoever listens: dashboards, and agents in other languages. The
//! record of the run is what counts; what stands here is the last that was shown of each value, for a day.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::flow::context::is_key;
use muster_shared::ids::RunId;
use muster_shared::wire::{Body, ContextUpdate, Encoding};

use crate::bus::Core;
use crate::error::BusError;
use crate::kv::{Bucket, KvEntry};
use crate::seal::About;
use crate::topology::CONTEXT;

const BUCKET: Bucket = Bucket(CONTEXT);

/// How long a value is shown.
const SHOWN: Duration = Duration::from_secs(24 * 3600);

/// The shared context as it is shown.
#[derive(Clone)]
pub struct SharedContext {
    core: Arc<Core>,
}

impl SharedContext {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// Shows a value as `bb.<run>.<key>`, in JSON, in place of what was shown of it.
    ///
    /// # Errors
    /// When the key is no name, the value is too large, or the bus fails.
    pub async fn show(&self, update: ContextUpdate) -> Result<(), BusError> {
        if !is_key(&update.key) {
            let name = update.key.chars().take(80).collect();
            let rule = "a key is a letter and then letters, digits, -, _ and single dots between them";
            return Err(BusError::BadName { name, rule });
        }
        let run = update.run;
        let subject = BUCKET.subject(&format!("{run}.{}", update.key));
        let body = Body::Context(update);
        let message = self.core.seal(subject, body, About::run(run), Encoding::Json).await?;
        BUCKET.put(&self.core, message, Some(SHOWN), None).await?;
        Ok(())
    }

    /// Values as they are shown, beginning with those there are. What cannot be read is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch(&self, run: RunId) -> Result<BoxStream<'static, ContextUpdate>, BusError> {
        let entries = BUCKET.watch(&self.core, &format!("{run}.>")).await?;
        let core = Arc::clone(&self.core);
        let values = entries.filter_map(move |entry| {
            let core = Arc::clone(&core);
            async move { read(&core, entry).await }
        });
        Ok(values.boxed())
    }
}

async fn read(core: &Core, entry: KvEntry) -> Option<ContextUpdate> {
    let envelope = core.open(&entry.message?).await.ok()?.ok()?;
    if let Body::Context(update) = envelope.body { Some(update) } else { None }
}
