//! Making a corpus ready: from folders where the question is asked, from the store elsewhere.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Corpus, ProgressSink,
    blob::BlobStore,
    blocking,
    cache::{self, CacheLimits},
    disk,
    error::CorpusError,
    extract::Extractor,
    index::{self, Index},
    manifest::{CorpusId, Manifest},
    pack::{self, PackFolder, SentPack},
    scan::{self, Redact, ScanLimits, Skipped},
};

/// What a corpus is made of and how.
#[derive(Clone)]
pub struct CorpusOptions {
    /// Where packs and indexes are kept on this machine.
    pub cache: PathBuf,
    /// The folders, or single files, with the documents.
    pub folders: Vec<PathBuf>,
    /// What is read at most.
    pub limits: ScanLimits,
    /// A pack of texts is closed once it has so many bytes.
    pub pack_bytes: usize,
    /// Takes secrets out of texts before they are stored, indexed or sent.
    pub redact: Option<Redact>,
    /// Where progress is told.
    pub progress: Option<ProgressSink>,
    /// What gets the text out of files that are no text; without it they are left out.
    pub extractor: Option<Arc<dyn Extractor>>,
}

impl CorpusOptions {
    /// Options with default limits, no redaction and no progress.
    pub fn new(cache: impl Into<PathBuf>, folders: Vec<PathBuf>) -> Self {
        Self {
            cache: cache.into(),
            folders,
            limits: ScanLimits::default(),
            pack_bytes: 8 * 1024 * 1024,
            redact: None,
            progress: None,
            extractor: None,
        }
    }
}

/// A corpus made ready from folders.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The documents.
    pub corpus: Corpus,
    /// How many documents there are.
    pub documents: u64,
    /// Length of all documents, in bytes.
    pub bytes: u64,
    /// What was left out.
    pub skipped: Skipped,
    /// What had to be sent.
    pub sent: SentPack,
}

/// Tells nobody.
pub(super) fn silent() -> ProgressSink {
    Arc::new(|_| {})
}

pub(super) async fn open_or_build(
    options: CorpusOptions,
    store: &dyn BlobStore,
) -> Result<Opened, CorpusError> {
    let cache_dir = options.cache.clone();
    let progress = options.progress.clone().unwrap_or_else(silent);
    let sink = Arc::clone(&progress);
    let (id, manifest, skipped) = blocking(move || read_folders(&options, &sink)).await?;
    let packs = PackFolder::of(&cache_dir);
    let (dir, of, sink) = (cache_dir.clone(), id.clone(), Arc::clone(&progress));
    let ((), sent) = futures::try_join!(
        blocking(move || ensure_index(&dir, &of, &sink)),
        pack::send(&manifest, &packs, store, &progress)
    )?;
    tidy(&cache_dir).await?;
    Ok(Opened {
        documents: manifest.files.len() as u64,
        bytes: manifest.bytes(),
        corpus: Corpus::new(id, cache_dir),
        skipped,
        sent,
    })
}

fn read_folders(
    options: &CorpusOptions,
    progress: &ProgressSink,
) -> Result<(CorpusId, Manifest, Skipped), CorpusError> {
    let folders = scan::resolve(&options.folders)?;
    let earlier = cache::earlier(&options.cache, &folders);
    let (manifest, skipped) = pack::gather(&folders, options, earlier.as_ref(), progress)?;
    if manifest.files.is_empty() {
        let folders: Vec<String> =
            options.folders.iter().map(|folder| format!("`{}`", folder.display())).collect();
        return Err(CorpusError::NothingUsable { folders: folders.join(", "), skipped });
    }
    let id = manifest.id();
    let manifest = adopt(&options.cache, &id, manifest)?;
    cache::remember(&options.cache, &folders, &id)?;
    Ok((id, manifest, skipped))
}

/// What is here under that id already stays, so that its index stays good.
fn adopt(cache_dir: &Path, id: &CorpusId, manifest: Manifest) -> Result<Manifest, CorpusError> {
    let _one = disk::lock(&cache::lock_file(cache_dir, id))?;
    if let Some(present) = cache::complete(cache_dir, id) {
        return Ok(present);
    }
    cache::write_manifest(cache_dir, id, &manifest)?;
    Ok(manifest)
}

pub(super) async fn open_or_fetch(
    cache_dir: &Path,
    id: &CorpusId,
    store: &dyn BlobStore,
    progress: &ProgressSink,
) -> Result<Corpus, CorpusError> {
    let (dir, of) = (cache_dir.to_owned(), id.clone());
    if blocking(move || Ok(cache::complete(&dir, &of))).await?.is_none() {
        fetch(cache_dir, id, store, progress).await?;
        tidy(cache_dir).await?;
    }
    let (dir, of, sink) = (cache_dir.to_owned(), id.clone(), Arc::clone(progress));
    blocking(move || ensure_index(&dir, &of, &sink)).await?;
    Ok(Corpus::new(id.clone(), cache_dir.to_owned()))
}

async fn fetch(
    cache_dir: &Path,
    id: &CorpusId,
    store: &dyn BlobStore,
    progress: &ProgressSink,
) -> Result<(), CorpusError> {
    let (dir, of) = (cache_dir.to_owned(), id.clone());
    let (guard, present) =
        blocking(move || Ok((disk::lock(&cache::lock_file(&dir, &of))?, cache::complete(&dir, &of)))).await?;
    if present.is_none() {
        let manifest = pack::fetch_manifest(id, store).await?;
        pack::fetch_packs(&manifest, &PackFolder::of(cache_dir), store, progress).await?;
        let (dir, of) = (cache_dir.to_owned(), id.clone());
        blocking(move || cache::write_manifest(&dir, &of, &manifest)).await?;
    }
    drop(guard);
    Ok(())
}

/// Keeps the cache small whenever something came into it.
async fn tidy(cache_dir: &Path) -> Result<(), CorpusError> {
    let dir = cache_dir.to_owned();
    let gone = blocking(move || Ok(cache::prune(&dir, &CacheLimits::default()))).await?;
    if gone > 0 {
        tracing::info!(gone, "removed corpora that were not used for long from the cache");
    }
    Ok(())
}

/// Builds the index unless a good one is here. Several processes may ask at once: one builds. Blocks.
pub(super) fn ensure_index(
    cache_dir: &Path,
    id: &CorpusId,
    progress: &ProgressSink,
) -> Result<(), CorpusError> {
    cache::touch(cache_dir, id);
    let manifest = cache::manifest(cache_dir, id)?;
    let path = cache::index_file(cache_dir, id);
    let fingerprint = index::fingerprint(&manifest);
    if Index::open(&path, &fingerprint)?.is_some() {
        return Ok(());
    }
    let _one = disk::lock(&cache::lock_file(cache_dir, id))?;
    if Index::open(&path, &fingerprint)?.is_some() {
        return Ok(());
    }
    index::build(&path, &manifest, &PackFolder::of(cache_dir), progress)
}
