//! The cache directory: where what lies, and how it is kept small.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    disk,
    error::CorpusError,
    extract::ExtractedFolder,
    index::{self, Index},
    manifest::{CorpusId, Manifest, hash_of},
    pack::PackFolder,
};

/// How much a cache directory keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheLimits {
    /// Corpora kept in any case, those used last.
    pub keep: usize,
    /// Corpora used within this time are kept too.
    pub keep_used_within: Duration,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { keep: 8, keep_used_within: Duration::from_secs(24 * 60 * 60) }
    }
}

/// What was made of a set of folders last, if it is still here.
pub(super) fn earlier(cache: &Path, folders: &[PathBuf]) -> Option<Manifest> {
    let id = fs::read_to_string(folders_file(cache, folders)).ok()?;
    manifest(cache, &CorpusId::parse(&id).ok()?).ok()
}

/// Remembers what was made of a set of folders.
pub(super) fn remember(cache: &Path, folders: &[PathBuf], id: &CorpusId) -> Result<(), CorpusError> {
    disk::write_whole(&folders_file(cache, folders), id.as_str().as_bytes())
        .map_err(CorpusError::io("writing to the cache of documents"))
}

/// The manifest of a corpus, from disk.
pub(super) fn manifest(cache: &Path, id: &CorpusId) -> Result<Manifest, CorpusError> {
    match fs::read(manifest_file(cache, id)) {
        Ok(bytes) => Manifest::read(&bytes, id),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(CorpusError::Missing("the manifest".to_owned()))
        }
        Err(error) => Err(CorpusError::io("reading the manifest")(error)),
    }
}

/// The manifest of a corpus if it and all its packs are here.
pub(super) fn complete(cache: &Path, id: &CorpusId) -> Option<Manifest> {
    let packs = PackFolder::of(cache);
    manifest(cache, id).ok().filter(|manifest| manifest.packs.iter().all(|pack| packs.has(pack)))
}

pub(super) fn write_manifest(cache: &Path, id: &CorpusId, manifest: &Manifest) -> Result<(), CorpusError> {
    disk::write_whole(&manifest_file(cache, id), &manifest.to_bytes())
        .map_err(CorpusError::io("writing the manifest"))
}

/// Notes that a corpus is in use, so that it is kept.
pub(super) fn touch(cache: &Path, id: &CorpusId) {
    if let Ok(file) = File::options().append(true).open(manifest_file(cache, id)) {
        // A note that fails costs building an index again, later.
        let _ = file.set_modified(SystemTime::now());
    }
}

pub(super) fn index_file(cache: &Path, id: &CorpusId) -> PathBuf {
    corpus_folder(cache, id).join("index.sqlite")
}

pub(super) fn lock_file(cache: &Path, id: &CorpusId) -> PathBuf {
    cache.join("locks").join(id.as_str())
}

pub(super) fn open_index(cache: &Path, id: &CorpusId) -> Result<Option<Index>, CorpusError> {
    let manifest = manifest(cache, id)?;
    Index::open(&index_file(cache, id), &index::fingerprint(&manifest))
}

pub(super) fn discard_index(cache: &Path, id: &CorpusId) -> Result<(), CorpusError> {
    match fs::remove_file(index_file(cache, id)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CorpusError::io("removing a broken index")(error))
        }
        _ => Ok(()),
    }
}

/// Removes corpora that were not used for long, and packs that none uses. Blocks. Gives how many corpora
/// went. What cannot be removed is left for the next time.
pub fn prune(cache: &Path, limits: &CacheLimits) -> usize {
    let now = SystemTime::now();
    let age = |path: &Path| {
        fs::metadata(path).and_then(|about| about.modified()).ok().and_then(|at| now.duration_since(at).ok())
    };
    let mut corpora: Vec<(Duration, CorpusId)> = names(&cache.join("corpora"))
        .filter_map(|name| CorpusId::parse(&name).ok())
        .map(|id| (age(&manifest_file(cache, &id)).unwrap_or_default(), id))
        .collect();
    corpora.sort();
    let stale: Vec<CorpusId> = corpora
        .into_iter()
        .skip(limits.keep)
        .filter(|(age, _)| *age > limits.keep_used_within)
        .map(|(_, id)| id)
        .collect();
    let gone = stale.iter().filter(|id| fs::remove_dir_all(corpus_folder(cache, id)).is_ok()).count();
    remove_unused_packs(cache, limits, age);
    ExtractedFolder::of(cache).prune();
    gone
}

fn remove_unused_packs(cache: &Path, limits: &CacheLimits, age: impl Fn(&Path) -> Option<Duration>) {
    let used: BTreeSet<String> = names(&cache.join("corpora"))
        .filter_map(|name| CorpusId::parse(&name).ok())
        .filter_map(|id| manifest(cache, &id).ok())
        .flat_map(|manifest| manifest.packs)
        .collect();
    let folder = PackFolder::of(cache);
    for name in names(&cache.join("packs")).filter(|name| !used.contains(name)) {
        let path = folder.path(&name);
        // A young one may belong to a corpus that is just being made.
        if age(&path).is_some_and(|age| age > limits.keep_used_within) {
            let _ = fs::remove_file(path);
        }
    }
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
}

fn corpus_folder(cache: &Path, id: &CorpusId) -> PathBuf {
    cache.join("corpora").join(id.as_str())
}

fn manifest_file(cache: &Path, id: &CorpusId) -> PathBuf {
    corpus_folder(cache, id).join("manifest.json")
}

fn folders_file(cache: &Path, folders: &[PathBuf]) -> PathBuf {
    let mut key = Vec::new();
    for folder in folders {
        key.extend_from_slice(folder.as_os_str().as_encoded_bytes());
        key.push(0);
    }
    cache.join("folders").join(hash_of(&key))
}
