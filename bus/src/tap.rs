//! The tap: all that passes, decoded.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use muster_shared::ids::RunId;
use muster_shared::time::Millis;
use muster_shared::wire::Envelope;

use crate::backend::{FENCE_FILTER, Message};
use crate::bus::{Core, now};
use crate::error::BusError;
use crate::partition::plain;
use crate::seal::open_inline;
use crate::subject::watched;
use crate::watchers::Watch;

/// The tap.
#[derive(Clone)]
pub struct Tap {
    pub(crate) core: Arc<Core>,
}

/// A message that passed.
#[derive(Debug, Clone)]
pub struct Tapped {
    /// Its subject.
    pub subject: String,
    /// When it was seen, in UTC milliseconds.
    pub at: Millis,
    /// The message as it was.
    pub bytes: Bytes,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// The message decoded, or why it cannot be. A body in the object store stays a reference.
    pub content: Result<Envelope, String>,
}

impl Tap {
    /// All that passes from now on, about one run or about anything. A watcher too slow loses messages; it never
    /// slows anybody down. What is [live](crate::LiveFeed) is said from now on, since somebody listens.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch(&self, run: Option<RunId>) -> Result<BoxStream<'static, Tapped>, BusError> {
        let mut all = SelectAll::new();
        let parted = self.core.parted().await?;
        for subject in watched(run).into_iter().map(|filter| parted.watched(run, filter)) {
            all.push(self.core.backend.subscribe(&subject).await?);
        }
        let watch = Watch::begin(&self.core, run).await;
        let tapped = move |message| {
            let _kept = &watch;
            tapped(message)
        };
        Ok(all.map(tapped).boxed())
    }

    /// All that passes on these subjects from now on, acknowledgements and buckets among them.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn raw(&self, subjects: &[&str]) -> Result<BoxStream<'static, Tapped>, BusError> {
        let mut all = SelectAll::new();
        for subject in subjects {
            all.push(self.core.backend.subscribe(subject).await?);
        }
        Ok(all.map(tapped).boxed())
    }
}

/// Subjects are told as they are in a record of one part, those of fences too.
fn tapped(message: Message) -> Tapped {
    let content = open_inline(&message);
    let subject = plain(&message.subject).into_owned();
    let mut headers = message.headers.0;
    for (_, fence) in headers.iter_mut().filter(|(name, _)| name == FENCE_FILTER) {
        *fence = plain(fence).into_owned();
    }
    Tapped { content, subject, at: now(), bytes: message.payload, headers }
}
