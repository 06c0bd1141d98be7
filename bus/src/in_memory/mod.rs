//! The bus in this process's memory, for tests: the same behaviour as on NATS, from the same layout.

mod broker;
mod queue;
mod stream;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::Seq;
use muster_shared::sync::lock;
use muster_shared::time::Millis;
use muster_shared::wire::codec::MAX_MESSAGE_BYTES;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use self::broker::Broker;
use self::queue::QueueKey;
use crate::backend::{
    Ack, Appended, Backend, Begin, Delivery, INBOX, Incoming, Message, Pace, Pull, QueueSpec, Stored,
    StreamState, WriteOptions,
};
use crate::bus::{ServerInfo, now};
use crate::error::{AppendError, BusError, NOBODY};
use crate::partition::Partitions;
use crate::settings::{BusSettings, SUBSCRIPTION_BUFFER};
use crate::store::ListedObject;

/// A broker in memory. Provisioned from the start.
pub(crate) struct InMemory {
    shared: Arc<Shared>,
    parted: Partitions,
}

struct Shared {
    broker: Mutex<Broker>,
    /// Told of every change.
    changed: Notify,
}

impl Shared {
    /// The broker, with everything done that time brings about.
    fn broker(&self) -> MutexGuard<'_, Broker> {
        let mut broker = lock(&self.broker);
        if broker.pass_time(now()) {
            self.changed.notify_waiters();
        }
        broker
    }

    /// The next message on the filters, whenever it comes.
    async fn next_after(&self, stream: &'static str, filters: &[String], last: Seq) -> Option<Stored> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let next = self.broker().stream(stream).ok()?.next_after(filters, last);
            if next.is_some() {
                return next;
            }
            self.change(changed).await;
        }
    }

    /// Waits until something changes, or time may bring something about.
    async fn change(&self, changed: impl Future<Output = ()>) {
        let next = self.broker().next_event();
        let pause = next.map_or(IDLE, |at| at.since(now()).clamp(Duration::from_millis(1), IDLE));
        let _ = tokio::time::timeout(pause, changed).await;
    }
}

/// How often a waiting call looks at the clock when nothing is due.
const IDLE: Duration = Duration::from_millis(500);

impl InMemory {
    pub(crate) fn new(settings: &BusSettings) -> Self {
        let broker = Mutex::new(Broker::new(settings));
        let shared = Arc::new(Shared { broker, changed: Notify::new() });
        Self { shared, parted: settings.parted() }
    }

    fn listen(&self, subjects: &[String], group: Option<&str>) -> BoxStream<'static, Incoming> {
        let receiver = self.shared.broker().subscribe(subjects, group, SUBSCRIPTION_BUFFER);
        let messages = futures::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|message| (message, receiver))
        });
        messages.boxed()
    }
}

#[async_trait]
impl Backend for InMemory {
    async fn parted(&self) -> Result<Option<Partitions>, BusError> {
        Ok(Some(self.parted))
    }

    async fn provision(&self) -> Result<(), BusError> {
        Ok(())
    }

    async fn mend(&self) -> Result<(), BusError> {
        // Nothing is ever taken away from it.
        Ok(())
    }

    async fn server(&self) -> Result<ServerInfo, BusError> {
        Ok(ServerInfo {
            url: "in memory".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            name: "in memory".into(),
            jetstream: true,
            max_payload: MAX_MESSAGE_BYTES,
            round_trip: Duration::ZERO,
            clock_skew: Some(0),
        })
    }

    async fn clock_skew(&self) -> Option<i64> {
        Some(0)
    }

    fn fatal(&self) -> watch::Receiver<Option<BusError>> {
        watch::channel(None).1
    }

    fn connections(&self) -> u64 {
        0
    }

    async fn ping(&self) -> Result<std::time::Duration, BusError> {
        Ok(std::time::Duration::ZERO)
    }

    fn is_connected(&self) -> bool {
        true
    }

    fn max_payload(&self) -> usize {
        MAX_MESSAGE_BYTES
    }

    async fn append(
        &self,
        stream: &'static str,
        messages: Vec<Message>,
        options: WriteOptions,
    ) -> Result<Appended, AppendError> {
        let appended = self.shared.broker().append(stream, &messages, &options, now())?;
        self.shared.changed.notify_waiters();
        Ok(appended)
    }

    async fn scan(
        &self,
        stream: &'static str,
        filters: &[String],
        after: Seq,
    ) -> Result<Vec<Stored>, BusError> {
        Ok(self.shared.broker().stream(stream)?.scan(filters, after))
    }

    async fn heads(
        &self,
        stream: &'static str,
        filters: &[String],
        after: Seq,
    ) -> Result<Vec<Stored>, BusError> {
        let mut heads = self.scan(stream, filters, after).await?;
        heads.iter_mut().for_each(|stored| stored.message.payload = Bytes::new());
        Ok(heads)
    }

    async fn follow(
        &self,
        stream: &'static str,
        filters: Vec<String>,
        begin: Begin,
        _pace: Pace,
    ) -> Result<BoxStream<'static, Stored>, BusError> {
        let (ready, last) = match begin {
            Begin::After(seq) => (Vec::new(), seq),
            Begin::LastPerSubject => self.shared.broker().stream(stream)?.last_per_subject(&filters),
        };
        let state = (Arc::clone(&self.shared), filters, last);
        let rest = futures::stream::unfold(state, move |(shared, filters, last)| async move {
            let stored = shared.next_after(stream, &filters, last).await?;
            let seq = stored.seq;
            Some((stored, (shared, filters, seq)))
        });
        Ok(futures::stream::iter(ready).chain(rest).boxed())
    }

    async fn last(&self, stream: &'static str, subject: &str) -> Result<Option<Stored>, BusError> {
        Ok(self.shared.broker().stream(stream)?.last_on(subject))
    }

    async fn get(&self, stream: &'static str, seq: Seq) -> Result<Option<Stored>, BusError> {
        let after = Seq(seq.0.saturating_sub(1));
        let next = self.shared.broker().stream(stream)?.next_after(&[">".to_owned()], after);
        Ok(next.filter(|found| found.seq == seq))
    }

    async fn remove(&self, stream: &'static str, seq: Seq) -> Result<(), BusError> {
        self.shared.broker().stream(stream)?.remove(seq.0);
        Ok(())
    }

    async fn state(&self, stream: &'static str, subjects: Option<&str>) -> Result<StreamState, BusError> {
        Ok(self.shared.broker().stream(stream)?.state(subjects))
    }

    async fn purge(&self, stream: &'static str, filter: &str) -> Result<u64, BusError> {
        Ok(self.shared.broker().stream(stream)?.purge(filter))
    }

    async fn join(&self, queue: &QueueSpec) -> Result<Arc<dyn Pull>, BusError> {
        let key = self.shared.broker().join(queue)?;
        Ok(Arc::new(MemoryPull { shared: Arc::clone(&self.shared), key }))
    }

    async fn ack(&self, subject: &str, ack: Ack, _confirm: bool) -> Result<(), BusError> {
        self.shared.broker().ack(subject, ack, now());
        self.shared.changed.notify_waiters();
        Ok(())
    }

    async fn give_out_again(&self, queue: &QueueSpec, subject: &str) -> Result<bool, BusError> {
        let was_given_out = self.shared.broker().give_out_again(queue, subject, now())?;
        self.shared.changed.notify_waiters();
        Ok(was_given_out)
    }

    async fn in_hand(&self, stream: &'static str) -> Result<BTreeMap<String, u64>, BusError> {
        Ok(self.shared.broker().in_hand(stream))
    }

    async fn object_put(&self, name: &str, bytes: Bytes) -> Result<(), BusError> {
        self.shared.broker().object_put(name, bytes)
    }

    async fn object_get(&self, name: &str, most: usize) -> Result<Option<Bytes>, BusError> {
        let object = self.shared.broker().objects.get(name).cloned();
        match object {
            Some(bytes) if bytes.len() > most => {
                Err(BusError::TooLarge { what: format!("object {name}"), bytes: bytes.len(), most })
            }
            object => Ok(object),
        }
    }

    async fn object_has(&self, name: &str) -> Result<bool, BusError> {
        Ok(self.shared.broker().objects.contains_key(name))
    }

    async fn object_delete(&self, name: &str) -> Result<(), BusError> {
        self.shared.broker().objects.remove(name);
        Ok(())
    }

    async fn object_list(&self, prefix: &str) -> Result<Vec<ListedObject>, BusError> {
        let broker = self.shared.broker();
        let wanted = broker.objects.iter().filter(|(name, _)| name.starts_with(prefix));
        let listed = |(name, bytes): (&String, &Bytes)| ListedObject {
            name: name.clone(),
            bytes: bytes.len() as u64,
            // Written long ago: nobody else is about to name it.
            at: Millis(0),
        };
        let mut listed: Vec<ListedObject> = wanted.map(listed).collect();
        listed.sort();
        Ok(listed)
    }

    async fn object_sweep(&self, _: Duration) -> Result<u64, BusError> {
        // Nothing is kept of what was replaced.
        Ok(0)
    }

    async fn publish(&self, message: Message) -> Result<(), BusError> {
        self.shared.broker().publish(&message, now())?;
        self.shared.changed.notify_waiters();
        Ok(())
    }

    async fn subscribe(&self, subject: &str) -> Result<BoxStream<'static, Message>, BusError> {
        Ok(self.listen(&[subject.to_owned()], None).map(|incoming| incoming.message).boxed())
    }

    async fn subscribe_apart(&self, subjects: &[String]) -> Result<BoxStream<'static, Incoming>, BusError> {
        Ok(self.listen(subjects, None))
    }

    async fn serve(&self, subject: &str, name: &str) -> Result<BoxStream<'static, Incoming>, BusError> {
        Ok(self.listen(&[subject.to_owned()], Some(name)))
    }

    async fn request(&self, message: Message, patience: Duration) -> Result<Message, BusError> {
        let inbox = format!("{INBOX}{}", Uuid::now_v7().simple());
        let mut answers = self.listen(std::slice::from_ref(&inbox), None);
        if !self.shared.broker().hand_out(&message, Some(&inbox)) {
            return Err(BusError::Other { what: "a request".into(), reason: NOBODY.to_owned() });
        }
        match tokio::time::timeout(patience, answers.next()).await {
            Ok(Some(answer)) => Ok(answer.message),
            Ok(None) | Err(_) => Err(BusError::TimedOut { what: "a request".into(), limit: patience }),
        }
    }

    async fn presence(&self) -> Result<Option<BoxStream<'static, Message>>, BusError> {
        Ok(None)
    }
}

struct MemoryPull {
    shared: Arc<Shared>,
    key: QueueKey,
}

#[async_trait]
impl Pull for MemoryPull {
    async fn pull(&self, wait: Duration) -> Result<Option<Delivery>, BusError> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(delivery) = self.shared.broker().pull(&self.key, now())? {
                return Ok(Some(delivery));
            }
            if tokio::time::timeout_at(until, self.shared.change(changed)).await.is_err() {
                return Ok(None);
            }
        }
    }
}
