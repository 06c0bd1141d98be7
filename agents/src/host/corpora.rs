//! The documents of runs: opened when first needed, shared by all slots, a handful kept.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use muster_bus::Store;
use muster_corpus::{BlobError, BlobStore, Corpus, CorpusId};
use muster_shared::flow::{CorpusRef, TaskRights};
use tokio::sync::{Mutex, OnceCell};

use crate::react::resources::DocumentSource;

/// Corpora kept open; the one unused for longest is closed first.
const KEPT: usize = 4;

/// The documents of runs.
pub(super) struct Corpora {
    cache: PathBuf,
    store: BusBlobs,
    /// Used last stands last.
    open: Mutex<Vec<(String, Arc<OnceCell<Corpus>>)>>,
}

impl Corpora {
    pub(super) fn new(cache: PathBuf, store: Store) -> Self {
        Self { cache, store: BusBlobs(store), open: Mutex::new(Vec::new()) }
    }

    /// The documents, from this host's cache or from the store. Slots that want the same wait for one opening.
    async fn get(&self, wanted: &CorpusRef) -> Result<Corpus, String> {
        let cell = self.cell(&wanted.id).await;
        let opened = cell.get_or_try_init(async || {
            let id = CorpusId::parse(&wanted.id).map_err(|error| error.to_string())?;
            let opened = Corpus::open_or_fetch(&self.cache, &id, &self.store, None).await;
            opened.map_err(|error| format!("the documents of the goal cannot be opened: {error}"))
        });
        opened.await.cloned()
    }

    /// The documents that a task with these rights may read: the others are not there for it.
    pub(super) async fn readable(
        &self,
        wanted: &CorpusRef,
        rights: &Arc<TaskRights>,
    ) -> Result<Corpus, String> {
        Ok(self.get(wanted).await?.within(rights))
    }

    async fn cell(&self, id: &str) -> Arc<OnceCell<Corpus>> {
        let mut open = self.open.lock().await;
        let found = open.iter().position(|(known, _)| known == id).map(|at| open.remove(at));
        let entry = found.unwrap_or_else(|| (id.to_owned(), Arc::new(OnceCell::new())));
        let cell = Arc::clone(&entry.1);
        open.push(entry);
        if open.len() > KEPT {
            open.remove(0);
        }
        cell
    }
}

/// The documents of one goal.
pub(super) struct DocumentsOfGoal {
    pub(super) corpora: Arc<Corpora>,
    pub(super) wanted: CorpusRef,
    /// What of them may be read.
    pub(super) rights: Arc<TaskRights>,
}

#[async_trait]
impl DocumentSource for DocumentsOfGoal {
    async fn open(&self) -> Result<Corpus, String> {
        self.corpora.readable(&self.wanted, &self.rights).await
    }
}

/// The bus's object store as a store of blobs.
pub struct BusBlobs(pub Store);

#[async_trait]
impl BlobStore for BusBlobs {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), BlobError> {
        self.0.put_named(key, bytes).await.map_err(failed)
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, BlobError> {
        self.0.get(key).await.map_err(failed)
    }

    async fn has(&self, key: &str) -> Result<bool, BlobError> {
        self.0.has(key).await.map_err(failed)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn failed(error: muster_bus::BusError) -> BlobError {
    BlobError(error.to_string())
}
