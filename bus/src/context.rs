//! The shared context of a run: named values with versions. A stale write is refused.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::time::Millis;
use muster_shared::wire::{Body, ContextUpdate};
use serde_json::Value;

use crate::bus::Core;
use crate::error::{AppendError, BusError};
use crate::kv::{Bucket, KvEntry};
use crate::seal::About;
use crate::subject::is_token;
use crate::topology::CONTEXT;

const BUCKET: Bucket = Bucket(CONTEXT);

/// The shared context.
#[derive(Clone)]
pub struct SharedContext {
    core: Arc<Core>,
}

/// A value of the shared context.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextValue {
    /// What it is called.
    pub key: String,
    /// What it is; null when it was removed.
    pub value: Value,
    /// Its version, to be named by whoever changes it.
    pub version: Seq,
    /// Who wrote it; unknown when it was removed.
    pub by: Option<AgentId>,
    /// When, by the broker's clock.
    pub at: Millis,
}

impl SharedContext {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// A value, if there is one.
    ///
    /// # Errors
    /// When the key is no name, the value cannot be read, or the bus fails.
    pub async fn get(&self, run: RunId, key: &str) -> Result<Option<ContextValue>, BusError> {
        let entry = BUCKET.last(&self.core, &path(run, key)?).await?;
        match entry.filter(|entry| entry.message.is_some()) {
            Some(entry) => self.core.context_value(entry).await.map(Some),
            None => Ok(None),
        }
    }

    /// Writes a value, if its version is still `version` (0: there is none yet), and gives the new version.
    ///
    /// # Errors
    /// [`AppendError::Conflict`] when somebody else wrote first: read again. Else when the key is no name, the
    /// value is too large, or the bus fails.
    pub async fn set(&self, run: RunId, key: &str, value: Value, version: Seq) -> Result<Seq, AppendError> {
        let path = path(run, key)?;
        let body = Body::Context(ContextUpdate { run, key: key.to_owned(), value });
        let encoding = self.core.settings.encoding;
        let message = self.core.seal(BUCKET.subject(&path), body, About::run(run), encoding).await?;
        if version == Seq(0) {
            BUCKET.create(&self.core, &path, message, None).await
        } else {
            BUCKET.put(&self.core, message, None, Some(version)).await
        }
    }

    /// Removes a value, if its version is still `version`.
    ///
    /// # Errors
    /// As for [`SharedContext::set`].
    pub async fn remove(&self, run: RunId, key: &str, version: Seq) -> Result<(), AppendError> {
        BUCKET.remove(&self.core, &path(run, key)?, Some(version)).await
    }

    /// All values of a run.
    ///
    /// # Errors
    /// When a value cannot be read, or the bus fails.
    pub async fn list(&self, run: RunId) -> Result<Vec<ContextValue>, BusError> {
        let mut values = Vec::new();
        for entry in BUCKET.all(&self.core, &format!("{run}.*")).await? {
            values.push(self.core.context_value(entry).await?);
        }
        Ok(values)
    }

    /// Values as they change, beginning with those there are. What cannot be read is left out.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch(&self, run: RunId) -> Result<BoxStream<'static, ContextValue>, BusError> {
        let entries = BUCKET.watch(&self.core, &format!("{run}.*")).await?;
        let core = Arc::clone(&self.core);
        let values = entries.filter_map(move |entry| {
            let core = Arc::clone(&core);
            async move { core.context_value(entry).await.ok() }
        });
        Ok(values.boxed())
    }
}

impl Core {
    async fn context_value(&self, entry: KvEntry) -> Result<ContextValue, BusError> {
        let key = entry.key.split_once('.').map_or(entry.key.as_str(), |(_, key)| key).to_owned();
        let (version, at) = (entry.revision, entry.at);
        let Some(message) = entry.message else {
            return Ok(ContextValue { key, value: Value::Null, version, by: None, at });
        };
        let unreadable = |reason: String| {
            let subject = message.subject.clone();
            BusError::Unreadable { seq: version, subject, reason }
        };
        let envelope = self.open(&message).await?.map_err(unreadable)?;
        match envelope.body {
            Body::Context(update) => {
                Ok(ContextValue { key, value: update.value, version, by: Some(envelope.sender), at })
            }
            other => Err(unreadable(format!("a body of kind {:?} is no value", other.kind()))),
        }
    }
}

fn path(run: RunId, key: &str) -> Result<String, BusError> {
    if is_token(key) {
        Ok(format!("{run}.{key}"))
    } else {
        let name = key.chars().take(80).collect();
        Err(BusError::BadName { name, rule: "a key is letters, digits, - and _, 128 at most" })
    }
}
