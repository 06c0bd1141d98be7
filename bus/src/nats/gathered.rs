//! The messages of a consumer, the first at once and those that come soon after it together: a server that hands over each by
//! itself works, and wakes its reader, for each.

use std::collections::VecDeque;
use std::time::Duration;

use async_nats::jetstream::consumer::{Consumer, pull};
use futures::StreamExt;
use tokio::time::{Instant, sleep_until};

use super::Nats;
use super::convert::{self, Delivered};
use super::follow::{CHUNK, deliveries};

/// How long the server keeps the question for the next message: whether it still does is asked as often.
const WAIT: Duration = Duration::from_secs(10);

/// The messages of a consumer, in order.
pub(super) struct Gathered {
    nats: Nats,
    consumer: Consumer<pull::Config>,
    pause: Duration,
    came: VecDeque<Delivered>,
    /// When those are asked for that came after the last that was given; nothing while none did.
    next: Option<Instant>,
}

impl Gathered {
    pub(super) fn new(nats: &Nats, consumer: Consumer<pull::Config>, pause: Duration) -> Self {
        // What is there already is taken together at first.
        Self { nats: nats.clone(), consumer, pause, came: VecDeque::new(), next: Some(Instant::now()) }
    }

    /// The next message; nothing when the consumer is of no use any more.
    pub(super) async fn next(&mut self) -> Option<Delivered> {
        loop {
            if let Some(message) = self.came.pop_front() {
                return Some(message);
            }
            match self.next {
                Some(at) => {
                    sleep_until(at).await;
                    self.take_those_that_came().await?;
                }
                None => self.wait_for_one().await?,
            }
        }
    }

    async fn take_those_that_came(&mut self) -> Option<()> {
        let Nats { link, settings, .. } = &self.nats;
        let came = deliveries(link, settings.request_timeout, &self.consumer, CHUNK).await.ok()?;
        self.came.extend(came);
        let is_more = self.came.len() >= CHUNK;
        let pause = if is_more { Duration::ZERO } else { self.pause };
        self.next = (!self.came.is_empty()).then(|| Instant::now() + pause);
        Some(())
    }

    /// Waits until there is one, or until it is time to ask again.
    async fn wait_for_one(&mut self) -> Option<()> {
        let mut batch = self.consumer.batch().max_messages(1).expires(WAIT).messages().await.ok()?;
        if let Some(message) = batch.next().await {
            self.came.push_back(convert::delivered(message.ok()?).ok()?);
            self.next = Some(Instant::now() + self.pause);
        }
        Some(())
    }
}
