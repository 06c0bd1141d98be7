//! Buckets: streams with one message per key, laid out as every NATS client knows them.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::Seq;
use muster_shared::time::Millis;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::backend::{Begin, Fence, Headers, Message, Pace, Stored, WriteOptions};
use crate::bus::Core;
use crate::error::{AppendError, BusError};

const OPERATION: &str = "KV-Operation";
/// How the broker marks what expired.
const MARKER: &str = "Nats-Marker-Reason";

/// How long the mark of a removed key stays, so that watchers who are away for a moment see it.
const MARK_TTL: Duration = Duration::from_secs(60);

/// A bucket, by the name of its stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket(pub(crate) &'static str);

/// What a key holds.
#[derive(Debug, Clone)]
pub(crate) struct KvEntry {
    pub(crate) key: String,
    pub(crate) revision: Seq,
    pub(crate) at: Millis,
    /// Nothing when the key was removed or expired.
    pub(crate) message: Option<Message>,
}

impl KvEntry {
    /// The value, as [`Bucket::json`] wrote it; nothing where there is none that can be read.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Option<T> {
        serde_json::from_slice(&self.message?.payload).ok()
    }
}

impl Bucket {
    /// A value of a key as JSON, which every NATS client can read.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub(crate) fn json<T: Serialize>(self, key: &str, value: &T) -> Result<Message, BusError> {
        let payload = serde_json::to_vec(value)?;
        let mut headers = Headers::default();
        headers.add("Content-Type", "application/json");
        Ok(Message { subject: self.subject(key), headers, payload: payload.into() })
    }

    pub(crate) fn subject(self, key: &str) -> String {
        format!("{}{key}", self.prefix())
    }

    fn prefix(self) -> String {
        format!("$KV.{}.", self.0.trim_start_matches("KV_"))
    }

    fn entry(self, stored: Stored) -> KvEntry {
        let headers = &stored.message.headers;
        let removed =
            headers.get(OPERATION).is_some_and(|operation| operation == "DEL" || operation == "PURGE")
                || headers.get(MARKER).is_some();
        let prefix = self.prefix();
        let key = stored.message.subject.strip_prefix(&prefix).unwrap_or(&stored.message.subject).to_owned();
        let message = (!removed).then_some(stored.message);
        KvEntry { key, revision: stored.seq, at: stored.at, message }
    }

    /// The last entry of a key, be it a value or the mark of its removal.
    pub(crate) async fn last(self, core: &Core, key: &str) -> Result<Option<KvEntry>, BusError> {
        let stored = core.backend.last(self.0, &self.subject(key)).await?;
        Ok(stored.map(|stored| self.entry(stored)))
    }

    /// All keys that have a value.
    pub(crate) async fn all(self, core: &Core, keys: &str) -> Result<Vec<KvEntry>, BusError> {
        let stored = core.backend.scan(self.0, &[self.subject(keys)], Seq(0)).await?;
        Ok(stored
            .into_iter()
            .map(|stored| self.entry(stored))
            .filter(|entry| entry.message.is_some())
            .collect())
    }

    /// Changes as they come, beginning with what there is.
    pub(crate) async fn watch(
        self,
        core: &Core,
        keys: &str,
    ) -> Result<BoxStream<'static, KvEntry>, BusError> {
        let filters = vec![self.subject(keys)];
        let messages = core.backend.follow(self.0, filters, Begin::LastPerSubject, Pace::AtOnce).await?;
        Ok(messages.map(move |stored| self.entry(stored)).boxed())
    }

    /// Writes a key; with `after`, only if its last entry is that one (0: there is none).
    pub(crate) async fn put(
        self,
        core: &Core,
        message: Message,
        ttl: Option<Duration>,
        after: Option<Seq>,
    ) -> Result<Seq, AppendError> {
        let fence = after.map(|after| Fence { filter: message.subject.clone(), after });
        let options = WriteOptions { fence, ttl, ..WriteOptions::default() };
        core.backend.append(self.0, vec![message], options).await.map(|appended| appended.last)
    }

    /// Writes a key that has no value yet. The mark of a removed one gives way.
    pub(crate) async fn create(
        self,
        core: &Core,
        key: &str,
        message: Message,
        ttl: Option<Duration>,
    ) -> Result<Seq, AppendError> {
        match self.put(core, message.clone(), ttl, Some(Seq(0))).await {
            Err(AppendError::Conflict) => {}
            result => return result,
        }
        match self.last(core, key).await? {
            Some(entry) if entry.message.is_some() => Err(AppendError::Conflict),
            Some(entry) => self.put(core, message, ttl, Some(entry.revision)).await,
            None => self.put(core, message, ttl, Some(Seq(0))).await,
        }
    }

    /// The values of the keys, without those that cannot be read.
    ///
    /// # Errors
    /// When the bus fails.
    pub(crate) async fn values<T: DeserializeOwned>(
        self,
        core: &Core,
        keys: &str,
    ) -> Result<Vec<T>, BusError> {
        Ok(self.all(core, keys).await?.into_iter().filter_map(KvEntry::read).collect())
    }

    /// The values of all keys, then each new value, without those that cannot be read.
    ///
    /// # Errors
    /// When the bus fails.
    pub(crate) async fn watch_values<T: DeserializeOwned + Send + 'static>(
        self,
        core: &Core,
    ) -> Result<BoxStream<'static, T>, BusError> {
        let entries = self.watch(core, "*").await?;
        Ok(entries.filter_map(|entry| async move { entry.read() }).boxed())
    }

    /// Stores a value as JSON in place of any other.
    ///
    /// # Errors
    /// When the bus fails.
    pub(crate) async fn set<T: Serialize>(self, core: &Core, key: &str, value: &T) -> Result<(), BusError> {
        self.put(core, self.json(key, value)?, None, None).await?;
        Ok(())
    }

    /// Stores a value as JSON in place of the revision `after`. Returns `false` if another author wrote first, or if it is
    /// unknown whether the value was stored: read the key again.
    ///
    /// # Errors
    /// When the bus fails.
    pub(crate) async fn replace<T: Serialize>(
        self,
        core: &Core,
        key: &str,
        value: &T,
        after: Seq,
    ) -> Result<bool, BusError> {
        match self.put(core, self.json(key, value)?, None, Some(after)).await {
            Ok(_) => Ok(true),
            Err(AppendError::Conflict | AppendError::Ambiguous { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a key; with `after`, only if its last entry is that one.
    pub(crate) async fn remove(self, core: &Core, key: &str, after: Option<Seq>) -> Result<(), AppendError> {
        let mut headers = Headers::default();
        headers.add(OPERATION, "PURGE");
        let message = Message { subject: self.subject(key), headers, payload: Bytes::new() };
        let fence = after.map(|after| Fence { filter: message.subject.clone(), after });
        let options = WriteOptions { fence, ttl: Some(MARK_TTL), ..WriteOptions::default() };
        core.backend.append(self.0, vec![message], options).await.map(|_| ())
    }
}
