//! What the typed services need of a broker. Two implementations: [`crate::nats`] and [`crate::in_memory`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use muster_shared::ids::Seq;
use muster_shared::time::Millis;
use tokio::sync::watch;

use crate::bus::ServerInfo;
use crate::error::{AppendError, BusError};
use crate::partition::Partitions;
use crate::store::ListedObject;

/// Headers of a message, in order. Names are unique.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers(pub(crate) Vec<(String, String)>);

impl Headers {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Adds a header. Line breaks, which would end it, become spaces.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.replace(['\r', '\n'], " ")));
    }
}

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) subject: String,
    pub(crate) headers: Headers,
    pub(crate) payload: Bytes,
}

/// Where answers may go: to what clients make for them, and never to a subject that says something by itself.
pub(crate) const INBOX: &str = "_INBOX.";

/// A message as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    pub(crate) message: Message,
    /// Where an answer goes, if the sender waits for one.
    pub(crate) reply: Option<String>,
}

/// A message that a stream holds.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) seq: Seq,
    pub(crate) at: Millis,
    pub(crate) message: Message,
}

/// A message that a queue gave to this process.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) stored: Stored,
    /// How often it was given out, from 1.
    pub(crate) delivered: u64,
    /// Where its acknowledgement goes.
    pub(crate) ack: String,
}

/// What is said about a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ack {
    /// Done: remove it.
    Done,
    /// Still at it.
    Progress,
    /// Give it out again after a while.
    Nak(Duration),
    /// Remove it: it cannot be done.
    Term,
}

/// The header with the subjects that a fence covers. The client has no name for it.
pub(crate) const FENCE_FILTER: &str = "Nats-Expected-Last-Subject-Sequence-Subject";
/// The header in which a stored message keeps where its fence stood: 0 for the first of all that it covers.
pub(crate) const FENCED_AFTER: &str = "Nats-Expected-Last-Subject-Sequence";

/// The header of the first decision of a run that was started for another one: that run.
pub(crate) const OUTER_RUN: &str = "Muster-Outer-Run";

/// The write happens only if the last message on `filter` has sequence `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fence {
    pub(crate) filter: String,
    pub(crate) after: Seq,
}

/// What goes with a write to a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    pub(crate) fence: Option<Fence>,
    /// The message is removed after this time (whole seconds).
    pub(crate) ttl: Option<Duration>,
    /// A second message of the same name within the stream's window is dropped.
    pub(crate) dedup: Option<String>,
}

/// Where a write stands: the positions of its first and last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Of the first message.
    pub first: Seq,
    /// Of the last message.
    pub last: Seq,
}

/// How soon a follower has what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Each message as it comes.
    AtOnce,
    /// The first at once, and what comes within so long after it together: much cheaper for the server and the reader where
    /// much comes.
    Gathered(Duration),
}

/// Where following begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With the first message after this position.
    After(Seq),
    /// With the last message of every subject.
    LastPerSubject,
}

/// A durable queue on a work stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueSpec {
    pub(crate) stream: &'static str,
    pub(crate) name: String,
    pub(crate) filter: String,
    pub(crate) ack_wait: Duration,
    /// The queue disappears when nobody asks it for this long.
    pub(crate) idle: Option<Duration>,
}

/// What a stream holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamState {
    /// Positions before this one are given up on purpose.
    pub(crate) first: Seq,
    pub(crate) last: Seq,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) max_bytes: Option<u64>,
    /// Whether nothing can be removed from it.
    pub(crate) keeps_all: bool,
    /// Messages per subject, when subjects were asked for.
    pub(crate) subjects: BTreeMap<String, u64>,
}

/// A broker. Every call is bounded in time.
#[async_trait]
pub(crate) trait Backend: Send + Sync + 'static {
    /// How the record is parted; nothing where there is none.
    async fn parted(&self) -> Result<Option<Partitions>, BusError>;
    /// Creates or upgrades everything in [`crate::topology`].
    async fn provision(&self) -> Result<(), BusError>;
    /// Creates what is missing of it, and changes nothing that is there.
    async fn mend(&self) -> Result<(), BusError>;
    async fn server(&self) -> Result<ServerInfo, BusError>;
    /// The server's clock minus ours, in milliseconds, where it can be told.
    async fn clock_skew(&self) -> Option<i64>;
    /// The error that ended this connection for good, once there is one.
    fn fatal(&self) -> watch::Receiver<Option<BusError>>;
    /// How often the connection broke and was made again.
    fn connections(&self) -> u64;
    /// How long the server takes to answer, whatever it stores.
    async fn ping(&self) -> Result<std::time::Duration, BusError>;
    /// Whether the connection stands at this moment.
    fn is_connected(&self) -> bool;
    /// Largest message, in bytes.
    fn max_payload(&self) -> usize;

    /// Stores messages: one, or an atomic batch. The options go with the first.
    async fn append(
        &self,
        stream: &'static str,
        messages: Vec<Message>,
        options: WriteOptions,
    ) -> Result<Appended, AppendError>;
    /// All messages on the filters after a position, up to the last at the time of the call.
    async fn scan(
        &self,
        stream: &'static str,
        filters: &[String],
        after: Seq,
    ) -> Result<Vec<Stored>, BusError>;
    /// The same without bodies: subjects and headers.
    async fn heads(
        &self,
        stream: &'static str,
        filters: &[String],
        after: Seq,
    ) -> Result<Vec<Stored>, BusError>;
    /// Messages on the filters as they come, in order, none missing and none twice, over reconnects too.
    async fn follow(
        &self,
        stream: &'static str,
        filters: Vec<String>,
        begin: Begin,
        pace: Pace,
    ) -> Result<BoxStream<'static, Stored>, BusError>;
    /// The last message of a subject.
    async fn last(&self, stream: &'static str, subject: &str) -> Result<Option<Stored>, BusError>;
    /// The message at a place.
    async fn get(&self, stream: &'static str, seq: Seq) -> Result<Option<Stored>, BusError>;
    /// Removes the message at a place, if it is there.
    async fn remove(&self, stream: &'static str, seq: Seq) -> Result<(), BusError>;
    async fn state(&self, stream: &'static str, subjects: Option<&str>) -> Result<StreamState, BusError>;
    /// Removes the messages of a subject (wildcards allowed) and says how many.
    async fn purge(&self, stream: &'static str, filter: &str) -> Result<u64, BusError>;

    /// Makes sure a queue exists.
    async fn join(&self, queue: &QueueSpec) -> Result<Arc<dyn Pull>, BusError>;
    /// Says something about a delivery; with `confirm`, waits until the broker took note.
    async fn ack(&self, subject: &str, ack: Ack, confirm: bool) -> Result<(), BusError>;
    /// Has a queue give out the newest message of a subject once more, if it was given out and nobody acknowledged it.
    /// Says whether it was given out.
    async fn give_out_again(&self, queue: &QueueSpec, subject: &str) -> Result<bool, BusError>;
    /// Deletes a consumer of a stream.
    async fn delete_consumer(&self, _stream: &'static str, _name: &str) -> Result<(), BusError> {
        Ok(())
    }
    /// Deliveries in hand, per queue of a stream.
    async fn in_hand(&self, stream: &'static str) -> Result<BTreeMap<String, u64>, BusError>;

    async fn object_put(&self, name: &str, bytes: Bytes) -> Result<(), BusError>;
    /// The object, if there is one; larger ones than `most` are an error.
    async fn object_get(&self, name: &str, most: usize) -> Result<Option<Bytes>, BusError>;
    async fn object_has(&self, name: &str) -> Result<bool, BusError>;
    async fn object_delete(&self, name: &str) -> Result<(), BusError>;
    /// The objects whose names begin so, by name.
    async fn object_list(&self, prefix: &str) -> Result<Vec<ListedObject>, BusError>;
    /// Sweeps out what no object refers to and is so old; says of how many objects.
    async fn object_sweep(&self, unused_for: Duration) -> Result<u64, BusError>;

    /// Publishes to whoever listens; not stored unless a stream takes the subject.
    async fn publish(&self, message: Message) -> Result<(), BusError>;
    /// Messages on a subject (wildcards allowed), from now on.
    async fn subscribe(&self, subject: &str) -> Result<BoxStream<'static, Message>, BusError>;
    /// The same on a connection of its own, so that a flood elsewhere does not delay it.
    async fn subscribe_apart(&self, subjects: &[String]) -> Result<BoxStream<'static, Incoming>, BusError>;
    /// Messages on a subject from now on, each to one of all who serve it under the same name.
    async fn serve(&self, subject: &str, name: &str) -> Result<BoxStream<'static, Incoming>, BusError>;
    /// Publishes a message and waits for the first answer; an error at once where nobody listens.
    async fn request(&self, message: Message, patience: Duration) -> Result<Message, BusError>;
    /// What the server says of connections, by its system account; nothing when that is not set.
    async fn presence(&self) -> Result<Option<BoxStream<'static, Message>>, BusError>;
    /// The health of each server, by its system account; empty when that is not set.
    async fn health(&self) -> Result<Vec<Bytes>, BusError> {
        Ok(Vec::new())
    }
}

/// A queue that this process takes from.
#[async_trait]
pub(crate) trait Pull: Send + Sync {
    /// The next message; nothing when none came within `wait`.
    async fn pull(&self, wait: Duration) -> Result<Option<Delivery>, BusError>;
}
