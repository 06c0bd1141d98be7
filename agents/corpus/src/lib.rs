//! Documents: read once where the question is asked, sent in packs, indexed once per machine, searched
//! by BM25, cited by `path:line`, or by page, slide or cell where lines mean nothing. Files that are no text are read by an
//! [`Extractor`], and are the folders of what they hold: `sales.xlsx/Budget:7` is row 7 of a sheet.
//!
//! ```text
//! folders --scan--> texts --pack--> packs + manifest --send--> store --fetch--> other machines
//!                                        \--index--> SQLite FTS5 <--search, read-- agents
//! ```
//!
//! A cache directory holds `packs/<hash>`, `corpora/<id>/{manifest.json, index.sqlite}` and, per set of
//! folders, the corpus that was last made of it. Everything in it may be deleted at any time.
//!
//! A crate of its own: whoever changes the agents does not compile SQLite's glue and the index again.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use muster_shared::flow::{PlaceFound, TaskRights};
use muster_shared::sync::lock;

use self::found::Asked;
use self::readable::{Readable, Within};
pub use self::{
    blob::{BlobError, BlobStore, MemoryBlobs},
    build::{CorpusOptions, Opened},
    cache::{CacheLimits, prune},
    cite::{CitedPlace, last_quote, longest_quote, look_up_among},
    decode::decode,
    error::CorpusError,
    extract::{ExtractFailure, Extracted, ExtractedDocument, Extractor},
    found::{Hit, Lines, Outline, SearchKind},
    manifest::{CorpusId, MANIFEST_VERSION, Manifest, ManifestFile},
    outline::in_words,
    pack::{SentPack, check_stored},
    picture::{Picture, PictureKind, StoredPicture},
    progress::{Phase, Progress, ProgressSink},
    scan::{Redact, ScanLimits, SkipReason, Skipped, SkippedFiles},
    unit::{Unit, cut_into},
};
use self::{index::Index, index::find::LineSearch, pack::PackFolder};

mod ahead;
mod blob;
mod build;
mod cache;
mod cite;
mod decode;
mod disk;
mod error;
mod extract;
mod found;
mod html;
mod index;
pub mod input;
mod kind;
mod manifest;
mod outline;
mod pack;
mod passage;
mod picture;
mod progress;
mod query;
mod read;
mod readable;
mod scan;
mod shown;
mod unit;

/// Most passages that one search gives.
pub const MAX_HITS: usize = 50;

/// Most lines that one read gives.
pub const MAX_LINES: u64 = 400;

/// Longest time one question to the index may take.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections kept open between questions. Each keeps at most 2 MB of pages.
const KEPT_CONNECTIONS: usize = 2;

/// The documents of a run, ready to be searched. Cheap to clone; holds nothing open until it is asked.
#[derive(Clone)]
pub struct Corpus {
    inner: Arc<Inner>,
    /// What of them may be read: nothing else is there for whoever has this.
    rights: Arc<TaskRights>,
}

struct Inner {
    id: CorpusId,
    cache: PathBuf,
    /// Idle connections; opened on demand.
    idle: Mutex<Vec<Index>>,
    /// Its pictures, once they were asked for.
    pictures: OnceLock<picture::Pictures>,
}

impl Corpus {
    fn new(id: CorpusId, cache: PathBuf) -> Self {
        let inner = Arc::new(Inner { id, cache, idle: Mutex::new(Vec::new()), pictures: OnceLock::new() });
        Self { inner, rights: Arc::default() }
    }

    /// The same documents without those that these rights do not allow: they are neither found nor read nor named, and
    /// a place in them cannot be cited.
    #[must_use]
    pub fn within(&self, rights: &Arc<TaskRights>) -> Self {
        Self { inner: Arc::clone(&self.inner), rights: Arc::clone(rights) }
    }

    /// Which documents are there for whoever has this.
    fn readable(&self) -> Readable {
        Readable::of(&self.rights)
    }

    /// The corpus's id: the same documents have the same id everywhere.
    #[must_use]
    pub fn id(&self) -> &CorpusId {
        &self.inner.id
    }

    /// Reads the folders, sends to the store what it does not have, and makes the index if this machine
    /// has none of these documents yet. For the side that asks the question.
    ///
    /// # Errors
    /// When a folder cannot be read or has no usable document, or the store or the disk fails.
    pub async fn open_or_build(options: CorpusOptions, store: &dyn BlobStore) -> Result<Opened, CorpusError> {
        build::open_or_build(options, store).await
    }

    /// Opens the documents of that id, getting them from the store and making the index if this machine
    /// does not have them yet. For agents anywhere.
    ///
    /// # Errors
    /// When the store does not have them, or the store or the disk fails.
    pub async fn open_or_fetch(
        cache: &Path,
        id: &CorpusId,
        store: &dyn BlobStore,
        progress: Option<ProgressSink>,
    ) -> Result<Self, CorpusError> {
        build::open_or_fetch(cache, id, store, &progress.unwrap_or_else(build::silent)).await
    }

    /// The manifest, read from disk.
    ///
    /// # Errors
    /// When the cache was deleted meanwhile.
    pub async fn manifest(&self) -> Result<Manifest, CorpusError> {
        let (inner, readable) = (Arc::clone(&self.inner), self.readable());
        blocking(move || {
            let mut manifest = cache::manifest(&inner.cache, &inner.id)?;
            manifest.files.retain(|file| readable.is(&file.path));
            Ok(manifest)
        })
        .await
    }

    /// The best passages for free text: any of its words counts, rarer ones more; what stands in double
    /// quotes and names of several parts count as phrases too. Gives at most [`MAX_HITS`].
    ///
    /// # Errors
    /// When the index or a pack cannot be read, or the search takes too long. Never because of the query.
    pub async fn search(&self, query: &str, k: usize) -> Result<Vec<Hit>, CorpusError> {
        self.find(query::free_text(query), k).await
    }

    /// The same within the documents that `path` means (the path, a part of it, or a pattern with `*`), and by the very text or
    /// a regular expression instead.
    ///
    /// # Errors
    /// As for [`Corpus::search`], and when the regular expression is none.
    pub async fn search_in(
        &self,
        text: &str,
        kind: SearchKind,
        path: Option<&str>,
        k: usize,
    ) -> Result<Vec<Hit>, CorpusError> {
        let (packs, k) = (PackFolder::of(&self.inner.cache), k.min(MAX_HITS));
        let within = Within::new(path, self.readable());
        let search = match kind {
            SearchKind::Words => {
                let Some(query) = query::free_text(text) else { return Ok(Vec::new()) };
                return self.ask(move |index| index.search(&query, &within, k, &packs)).await;
            }
            SearchKind::Exact => LineSearch::exact(text),
            SearchKind::Regex => LineSearch::regex(text),
        };
        let search = search.map_err(CorpusError::BadPattern)?;
        self.ask(move |index| index.search_lines(&search, &within, k, &packs)).await
    }

    /// The first documents in the order of their paths, each with its length and headings.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub async fn outlines(&self, most: usize) -> Result<Vec<Outline>, CorpusError> {
        let readable = self.readable();
        let outlines = self.ask(move |index| index.outlines(most, &readable)).await?;
        self.with_pictures_named(outlines).await
    }

    /// The first and the last line of what stands under a heading of a document.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub async fn section(&self, path: &str, heading: &str) -> Result<Option<(u64, u64)>, CorpusError> {
        let (path, heading) = (path.strip_prefix("./").unwrap_or(path).to_owned(), heading.to_owned());
        if !self.readable().is(&path) {
            return Ok(None);
        }
        self.ask(move |index| index.section(&path, &heading)).await
    }

    async fn find(&self, query: Option<String>, k: usize) -> Result<Vec<Hit>, CorpusError> {
        let Some(query) = query else { return Ok(Vec::new()) };
        let packs = PackFolder::of(&self.inner.cache);
        let within = Within::new(None, self.readable());
        self.ask(move |index| index.search(&query, &within, k.min(MAX_HITS), &packs)).await
    }

    /// Lines `from..=to` of a document, or its pages and the like, as many as [`MAX_LINES`] and a limit of bytes let pass.
    ///
    /// # Errors
    /// When there is no such document (with the nearest path) or no such line.
    pub async fn read(&self, path: &str, from: u64, to: u64) -> Result<Lines, CorpusError> {
        self.read_around(path, from, to, None).await
    }

    /// The same, with very long lines shown around these words where they stand in them.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_around(
        &self,
        path: &str,
        from: u64,
        to: u64,
        find: Option<&str>,
    ) -> Result<Lines, CorpusError> {
        let find = find.map(str::to_owned);
        let packs = PackFolder::of(&self.inner.cache);
        let path = path.strip_prefix("./").unwrap_or(path).to_owned();
        let readable = self.readable();
        self.ask(move |index| {
            let file = index.readable_file(&path, &readable)?;
            let from = from.max(1);
            let (total, unit) = (index.length_of(&file)?, file.unit);
            if from > total || to < from {
                return Err(CorpusError::BadRange { path: file.path, lines: total, unit });
            }
            let text = packs.read(&file.pack, file.position, file.bytes)?;
            let asked =
                Asked { path: file.path, from, to: to.min(total), total, unit, find: find.as_deref() };
            Ok(found::lines(&text, asked))
        })
        .await
    }

    /// The whole text of a document, as it is stored: for those who take it apart themselves, such as tables.
    ///
    /// # Errors
    /// When there is no such document (with the nearest path), or it cannot be read.
    pub async fn text(&self, path: &str) -> Result<String, CorpusError> {
        let packs = PackFolder::of(&self.inner.cache);
        let path = path.strip_prefix("./").unwrap_or(path).to_owned();
        let readable = self.readable();
        self.ask(move |index| {
            let file = index.readable_file(&path, &readable)?;
            packs.read(&file.pack, file.position, file.bytes)
        })
        .await
    }

    /// Looks up places that somebody cites, in their order: whether what is said of them stands there. `shows`: with the
    /// lines where it stands. At most [`MOST_PLACES`](muster_shared::flow::looked_up::MOST_PLACES) are looked up.
    ///
    /// # Errors
    /// When the index or a pack cannot be read, or it takes too long.
    pub async fn look_up(
        &self,
        places: Vec<CitedPlace>,
        shows: bool,
    ) -> Result<Vec<PlaceFound>, CorpusError> {
        let packs = PackFolder::of(&self.inner.cache);
        let most = places.len().min(muster_shared::flow::looked_up::MOST_PLACES);
        let readable = self.readable();
        self.ask(move |index| cite::look_up_in(index, &readable, &packs, &places[..most], shows)).await
    }

    /// Puts a question to the index on a thread of its own. A broken index is built again, once.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(&Index) -> Result<T, CorpusError> + Send + Sync + 'static,
    ) -> Result<T, CorpusError> {
        let question = Arc::new(question);
        match self.ask_once(Arc::clone(&question)).await {
            Err(error) if error.is_broken_index() => {
                tracing::warn!(%error, "the index of documents is broken and is built again");
                self.rebuild().await?;
                self.ask_once(question).await
            }
            answered => answered,
        }
    }

    async fn ask_once<T: Send + 'static>(
        &self,
        question: Arc<impl Fn(&Index) -> Result<T, CorpusError> + Send + Sync + 'static>,
    ) -> Result<T, CorpusError> {
        let inner = Arc::clone(&self.inner);
        let running: Arc<Mutex<Option<rusqlite::InterruptHandle>>> = Arc::default();
        let handle = Arc::clone(&running);
        let answer = blocking(move || {
            let index = inner.take()?;
            *lock(&handle) = Some(index.interrupt_handle());
            let answer = question(&index);
            *lock(&handle) = None;
            if !answer.as_ref().is_err_and(CorpusError::is_broken_index) {
                inner.give_back(index);
            }
            answer
        });
        match tokio::time::timeout(QUERY_TIMEOUT, answer).await {
            Ok(answer) => answer,
            Err(_) => {
                if let Some(handle) = &*lock(&running) {
                    handle.interrupt();
                }
                Err(CorpusError::Timeout("the search; use fewer or rarer words"))
            }
        }
    }

    async fn rebuild(&self) -> Result<(), CorpusError> {
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            lock(&inner.idle).clear();
            cache::discard_index(&inner.cache, &inner.id)?;
            build::ensure_index(&inner.cache, &inner.id, &build::silent())
        })
        .await
    }
}

impl Inner {
    fn take(&self) -> Result<Index, CorpusError> {
        if let Some(index) = lock(&self.idle).pop() {
            return Ok(index);
        }
        build::ensure_index(&self.cache, &self.id, &build::silent())?;
        cache::open_index(&self.cache, &self.id)?.ok_or_else(|| CorpusError::Damaged("the index".to_owned()))
    }

    fn give_back(&self, index: Index) {
        let mut idle = lock(&self.idle);
        if idle.len() < KEPT_CONNECTIONS {
            idle.push(index);
        }
    }
}

impl std::fmt::Debug for Corpus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Corpus").field(&self.inner.id.as_str()).finish()
    }
}

/// Runs blocking work on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CorpusError> + Send + 'static,
) -> Result<T, CorpusError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(broken) => Err(CorpusError::Damaged(format!("a document broke its reader ({broken}); a part"))),
    }
}

#[cfg(test)]
mod tests;
