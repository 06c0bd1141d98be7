//! What is happening right now, for whoever watches: where nobody does, nothing is said. May be lost; the record has what
//! counts.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::RunId;
use muster_shared::sync::lock;
use muster_shared::wire::{Body, Live};
use tokio::sync::mpsc;

use crate::bus::Core;
use crate::error::BusError;
use crate::seal::{About, open_inline};
use crate::subject::Subject;
use crate::watchers::{Watch, Watchers};

/// The live feed.
#[derive(Clone)]
pub struct LiveFeed {
    pub(crate) core: Arc<Core>,
}

/// Live messages that wait to be sent; more are dropped. What came before the last few hundred is old news by the time
/// that it could be shown.
const CAPACITY: usize = 256;

/// The way to the task that publishes, which begins with the first message.
#[derive(Clone, Default)]
pub(crate) struct LiveSender {
    queue: Arc<Mutex<Option<mpsc::Sender<Live>>>>,
    watchers: Arc<Watchers>,
}

impl LiveSender {
    /// The queue, with its task running. Nothing outside a runtime.
    fn queue(&self, core: &Arc<Core>) -> Option<mpsc::Sender<Live>> {
        let mut queue = lock(&self.queue);
        if let Some(queue) = queue.as_ref().filter(|queue| !queue.is_closed()) {
            return Some(queue.clone());
        }
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let (sender, receiver) = mpsc::channel(CAPACITY);
        // The task must not keep the queue's own sender alive, else it would never end.
        let publisher = Core { live: Self::default(), ..(**core).clone() };
        runtime.spawn(publish_all(publisher, receiver));
        *queue = Some(sender.clone());
        Some(sender)
    }
}

async fn publish_all(core: Core, mut queue: mpsc::Receiver<Live>) {
    while let Some(live) = queue.recv().await {
        let subject = Subject::Live(live.run, live.role.clone(), core.who.clone(), live.task.clone());
        let about = About::task(live.run, &live.task);
        let sealed = core.seal(subject.to_string(), Body::Live(live), about, crate::settings::ENCODING).await;
        let published = match sealed {
            Ok(message) => core.backend.publish(message).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = published {
            tracing::debug!(%error, "a live message is lost");
        }
    }
}

impl LiveFeed {
    /// Whether anybody listens to what happens in a run, as far as is known: what is said of others is not heard.
    #[must_use]
    pub fn is_watched(&self, run: RunId) -> bool {
        self.core.live.watchers.is_watched(run, &self.core)
    }

    /// Says what is happening, where somebody [listens](Self::is_watched). Never waits; when too many messages wait already,
    /// this one is dropped. Says whether it was taken.
    pub fn publish(&self, live: Live) -> bool {
        if !self.is_watched(live.run) {
            return false;
        }
        let queue = self.core.live.queue(&self.core);
        queue.is_some_and(|queue| queue.try_send(live).is_ok())
    }

    /// What is happening, in one run or in all, from now on; those who speak are told that somebody listens for as long as
    /// the stream is kept. What cannot be read is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch(&self, run: Option<RunId>) -> Result<BoxStream<'static, Live>, BusError> {
        let subject = run.map_or_else(|| "live.>".to_owned(), |run| format!("live.{run}.>"));
        let messages = self.core.backend.subscribe(&subject).await?;
        let watch = Watch::begin(&self.core, run).await;
        Ok(messages
            .filter_map(move |message| {
                let _kept = &watch;
                let live = match open_inline(&message).map(|envelope| envelope.body) {
                    Ok(Body::Live(live)) => Some(live),
                    Ok(_) | Err(_) => None,
                };
                std::future::ready(live)
            })
            .boxed())
    }
}
