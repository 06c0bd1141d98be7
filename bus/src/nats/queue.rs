//! Work queues: one durable pull consumer each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::Mutex;

use super::{Nats, convert};
use crate::backend::{Ack, Delivery, Pull, QueueSettings, QueueSpec};
use crate::error::BusError;

/// Most deliveries in hand per queue, over all who take from it.
const IN_HAND: i64 = 20_000;
/// Most requests that wait per queue, over all who take from it.
const WAITING: i64 = 8192;
/// Pause after a failed request, so that a caller that asks again at once does no harm.
const PAUSE: Duration = Duration::from_millis(100);
/// Shorter waits ask for what is there now.
const SHORTEST: Duration = Duration::from_millis(5);

pub(super) async fn join(nats: &Nats, spec: &QueueSpec) -> Result<Arc<dyn Pull>, BusError> {
    let consumer = consumer(nats, spec).await?;
    Ok(Arc::new(NatsPull {
        nats: nats.clone(),
        spec: spec.clone(),
        consumer: Mutex::new(Arc::new(consumer)),
    }))
}

/// Creates the consumer, or finds it. Consumers are created here and for readers only, since the right to create
/// them lets a process read what it may not.
async fn consumer(nats: &Nats, spec: &QueueSpec) -> Result<Consumer<pull::Config>, BusError> {
    let config = pull::Config {
        durable_name: Some(spec.name.clone()),
        filter_subject: spec.filter.clone(),
        ack_policy: AckPolicy::Explicit,
        ack_wait: spec.ack_wait,
        max_deliver: -1,
        max_ack_pending: IN_HAND,
        max_waiting: WAITING,
        inactive_threshold: spec.idle.unwrap_or_default(),
        ..pull::Config::default()
    };
    let what = format!("queue {} of stream {}", spec.name, spec.stream);
    nats.limited(&what, nats.context.create_consumer_on_stream(config, spec.stream)).await
}

struct NatsPull {
    nats: Nats,
    spec: QueueSpec,
    consumer: Mutex<Arc<Consumer<pull::Config>>>,
}

#[async_trait]
impl Pull for NatsPull {
    async fn pull(&self, wait: Duration) -> Result<Option<Delivery>, BusError> {
        self.nats.link.check()?;
        let consumer = Arc::clone(&*self.consumer.lock().await);
        let mut epoch = self.nats.link.epoch();
        epoch.mark_unchanged();
        let next = async {
            let mut batch = if wait < SHORTEST {
                consumer.fetch().max_messages(1).messages().await
            } else {
                consumer.batch().max_messages(1).expires(wait).messages().await
            }
            .map_err(|error| error.to_string())?;
            batch.next().await.transpose().map_err(|error| error.to_string())
        };
        let limit = wait + self.nats.settings.request_timeout;
        let message = tokio::select! {
            message = self.nats.within("a queue", limit, next) => message?,
            // The server forgets requests when the connection breaks: the caller asks again.
            _ = epoch.changed() => return Ok(None),
        };
        match message {
            Ok(Some(message)) => delivery(message).map(Some),
            Ok(None) => Ok(None),
            Err(reason) => self.recover(&reason).await,
        }
    }
}

impl NatsPull {
    /// The consumer may be gone: it was idle for too long, or the server was replaced.
    async fn recover(&self, reason: &str) -> Result<Option<Delivery>, BusError> {
        tracing::debug!(queue = self.spec.name, reason, "joining a queue again");
        let joined = consumer(&self.nats, &self.spec).await?;
        *self.consumer.lock().await = Arc::new(joined);
        tokio::time::sleep(PAUSE).await;
        Ok(None)
    }
}

fn delivery(message: async_nats::jetstream::Message) -> Result<Delivery, BusError> {
    let read = convert::delivered(message);
    let read = read.map_err(|reason| BusError::Other { what: "a delivery".into(), reason })?;
    Ok(Delivery { stored: read.stored, delivered: read.delivered, ack: read.ack })
}

pub(super) async fn ack(nats: &Nats, subject: &str, ack: Ack, confirm: bool) -> Result<(), BusError> {
    let word: Bytes = match ack {
        Ack::Done => Bytes::from_static(b"+ACK"),
        Ack::Progress => Bytes::from_static(b"+WPI"),
        Ack::Term => Bytes::from_static(b"+TERM"),
        Ack::Nak(delay) if delay.is_zero() => Bytes::from_static(b"-NAK"),
        Ack::Nak(delay) => format!("-NAK {{\"delay\": {}}}", delay.as_nanos()).into(),
    };
    if confirm {
        nats.limited("an acknowledgement", nats.client.request(subject.to_owned(), word)).await?;
        return Ok(());
    }
    nats.limited("an acknowledgement", nats.client.publish(subject.to_owned(), word)).await
}

pub(super) async fn all(nats: &Nats, stream: &'static str) -> Result<Vec<QueueSettings>, BusError> {
    let handle = nats.stream(stream).await?;
    let consumers = handle.consumers().map_ok(|info| {
        let config = info.config;
        let mut filters = config.filter_subjects;
        filters.extend(Some(config.filter_subject).filter(|filter| !filter.is_empty()));
        QueueSettings {
            name: info.name,
            filters,
            ack_wait: config.ack_wait,
            explicit_ack: matches!(config.ack_policy, AckPolicy::Explicit),
            max_deliver: config.max_deliver,
            backoff: !config.backoff.is_empty(),
            idle: config.inactive_threshold,
        }
    });
    nats.limited("the queues of a stream", consumers.try_collect()).await
}

pub(super) async fn in_hand(nats: &Nats, stream: &'static str) -> Result<BTreeMap<String, u64>, BusError> {
    let handle = nats.stream(stream).await?;
    let consumers = handle.consumers().map_ok(|info| (info.name, info.num_ack_pending as u64));
    nats.limited("the queues of a stream", consumers.try_collect()).await
}
