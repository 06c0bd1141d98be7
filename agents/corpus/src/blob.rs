//! Where packs and manifests travel through: the bus's object store, or a stand-in.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;

use super::error::CorpusError;
use muster_shared::sync::lock;

/// Longest wait for one blob.
const BLOB_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BlobError(pub String);

/// Immutable blobs by key. Keys are of letters, digits, `/`, `-` and `.`.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Stores a blob. Storing the same key again changes nothing.
    ///
    /// # Errors
    /// When the store fails.
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), BlobError>;

    /// The blob, if the store has it.
    ///
    /// # Errors
    /// When the store fails.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, BlobError>;

    /// Whether the store has a blob.
    ///
    /// # Errors
    /// When the store fails.
    async fn has(&self, key: &str) -> Result<bool, BlobError>;
}

pub(super) async fn put(store: &dyn BlobStore, key: &str, bytes: Bytes) -> Result<(), CorpusError> {
    bounded(store.put(key, bytes)).await
}

pub(super) async fn get(store: &dyn BlobStore, key: &str) -> Result<Option<Bytes>, CorpusError> {
    bounded(store.get(key)).await
}

pub(super) async fn has(store: &dyn BlobStore, key: &str) -> Result<bool, CorpusError> {
    bounded(store.has(key)).await
}

async fn bounded<T>(work: impl Future<Output = Result<T, BlobError>>) -> Result<T, CorpusError> {
    tokio::time::timeout(BLOB_TIMEOUT, work)
        .await
        .map_err(|_| CorpusError::Timeout("the store of documents"))?
        .map_err(CorpusError::from)
}

/// A store in memory, for tests and for fleets of one process.
#[derive(Debug, Default)]
pub struct MemoryBlobs(Mutex<HashMap<String, Bytes>>);

impl MemoryBlobs {
    /// The keys held, sorted.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = lock(&self.0).keys().cloned().collect();
        keys.sort();
        keys
    }

    /// Takes a blob away.
    pub fn remove(&self, key: &str) {
        lock(&self.0).remove(key);
    }
}

#[async_trait]
impl BlobStore for MemoryBlobs {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), BlobError> {
        lock(&self.0).insert(key.to_owned(), bytes);
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, BlobError> {
        Ok(lock(&self.0).get(key).cloned())
    }

    async fn has(&self, key: &str) -> Result<bool, BlobError> {
        Ok(lock(&self.0).contains_key(key))
    }
}
