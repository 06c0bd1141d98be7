//! Packs: many texts in one blob of about 8 MB, named by its content. Texts that an earlier corpus of
//! the same folders holds already stay where they are and are not sent again.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use serde::Serialize;

use super::{
    CorpusOptions, Phase, Progress, ProgressSink, ahead,
    blob::{self, BlobStore},
    disk,
    error::CorpusError,
    manifest::{CorpusId, Manifest, ManifestFile, hash_of},
    picture::{Picture, StoredPicture},
    read::{self, ReadDocument},
    scan::{self, SkipReason, Skipped},
};

/// Largest pack or manifest accepted from a store.
const MAX_BLOB: usize = 64 * 1024 * 1024;

/// Progress is told after so many files, or so much time.
const TOLD_EVERY: (u64, Duration) = (64, Duration::from_millis(250));

/// The folder of packs within a cache directory.
#[derive(Debug, Clone)]
pub(super) struct PackFolder(PathBuf);

impl PackFolder {
    pub(super) fn of(cache: &Path) -> Self {
        Self(cache.join("packs"))
    }

    pub(super) fn path(&self, hash: &str) -> PathBuf {
        self.0.join(hash)
    }

    pub(super) fn has(&self, hash: &str) -> bool {
        self.path(hash).is_file()
    }

    fn write(&self, bytes: &[u8]) -> Result<String, CorpusError> {
        let hash = hash_of(bytes);
        if !self.has(&hash) {
            disk::write_whole(&self.path(&hash), bytes)
                .map_err(CorpusError::io("writing a pack of documents"))?;
        }
        Ok(hash)
    }

    /// A part of a pack as text.
    pub(super) fn read(&self, pack: &str, offset: u64, bytes: u64) -> Result<String, CorpusError> {
        let part = self.part(pack, offset, bytes)?;
        String::from_utf8(part).map_err(|_| CorpusError::Damaged("a pack".to_owned()))
    }

    /// A part of a pack.
    pub(super) fn part(&self, pack: &str, offset: u64, bytes: u64) -> Result<Vec<u8>, CorpusError> {
        let damaged = || CorpusError::Damaged("a pack".to_owned());
        let file = File::open(self.path(pack)).map_err(|_| CorpusError::Missing("a pack".to_owned()))?;
        let length = usize::try_from(bytes).ok().filter(|length| *length <= MAX_BLOB).ok_or_else(damaged)?;
        let mut buffer = vec![0; length];
        file.read_exact_at(&mut buffer, offset).map_err(|_| damaged())?;
        Ok(buffer)
    }
}

/// Reads all documents of the folders into packs. Blocks.
pub(super) fn gather(
    folders: &[PathBuf],
    options: &CorpusOptions,
    earlier: Option<&Manifest>,
    progress: &ProgressSink,
) -> Result<(Manifest, Skipped), CorpusError> {
    let (limits, packs) = (&options.limits, PackFolder::of(&options.cache));
    let mut skipped = Skipped::default();
    let candidates = scan::walk(folders, limits, &mut skipped);
    let (total, mut done, mut bytes) = (candidates.len() as u64, 0u64, 0u64);
    let mut packer = Packer::new(&packs, options.pack_bytes, earlier);
    let mut told = Instant::now();
    let read = |candidate| read::read(&candidate, options);
    ahead::in_order(candidates, at_once(options), read, |file| {
        for (reason, path) in file.left_out {
            skipped.add(reason, &path);
        }
        for document in file.documents {
            let with_it = bytes + document.stored_bytes();
            let is_one_too_many = document.picture.is_some() && packer.pictures >= limits.max_pictures;
            if with_it > limits.max_total || packer.len() >= limits.max_files || is_one_too_many {
                skipped.add(SkipReason::OverLimit, &document.path);
            } else if packer.has(&document.path) {
                // A folder may be named as a file is, and hold what that file holds.
                skipped.add(SkipReason::BadName, &document.path);
            } else {
                bytes = with_it;
                packer.add(document)?;
            }
        }
        done += 1;
        if done.is_multiple_of(TOLD_EVERY.0) || done == total || told.elapsed() > TOLD_EVERY.1 {
            told = Instant::now();
            progress(Progress { phase: Phase::Reading, done, total, bytes });
        }
        Ok::<(), CorpusError>(())
    })?;
    Ok((packer.finish()?, skipped))
}

/// On how many threads files are read: texts alone are read faster than they are packed.
fn at_once(options: &CorpusOptions) -> usize {
    const MOST: usize = 8;
    match (&options.extractor, options.limits.extracted_at_once) {
        (None, _) => 1,
        (Some(_), 0) => std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST),
        (Some(_), set) => set.min(MOST),
    }
}

struct Packer<'a> {
    folder: &'a PackFolder,
    /// A pack is closed once it has so many bytes.
    pack_bytes: usize,
    /// Where texts lie already, by hash: in earlier packs, or in this corpus.
    known: HashMap<String, (u32, u64)>,
    /// The paths of the files.
    paths: HashSet<String>,
    packs: Vec<String>,
    files: Vec<ManifestFile>,
    /// How many of them are pictures.
    pictures: usize,
    open: Option<(u32, Vec<u8>)>,
}

impl<'a> Packer<'a> {
    fn new(folder: &'a PackFolder, pack_bytes: usize, earlier: Option<&Manifest>) -> Self {
        let mut known = HashMap::new();
        let mut packs = Vec::new();
        if let Some(earlier) = earlier.filter(|earlier| worth_keeping(folder, pack_bytes, earlier)) {
            packs.clone_from(&earlier.packs);
            known.extend(earlier.files.iter().map(|file| (file.hash.clone(), (file.pack, file.offset))));
        }
        let (paths, files) = (HashSet::new(), Vec::new());
        Self { folder, pack_bytes, known, paths, packs, files, pictures: 0, open: None }
    }

    fn len(&self) -> usize {
        self.files.len()
    }

    fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    fn add(&mut self, document: ReadDocument) -> Result<(), CorpusError> {
        let ReadDocument { path, unit, text, picture } = document;
        let hash = hash_of(text.as_bytes());
        let (pack, offset) = match self.known.get(&hash) {
            Some(place) => *place,
            None => self.place(&text)?,
        };
        self.known.insert(hash.clone(), (pack, offset));
        let (bytes, lines) = (text.len() as u64, scan::lines_of(&text));
        self.paths.insert(path.clone());
        let picture = picture.map(|picture| self.place_picture(&picture)).transpose()?;
        self.files.push(ManifestFile { path, hash, bytes, lines, pack, offset, unit, picture });
        Ok(())
    }

    /// A picture is a pack of its own: whoever gets the packs has it, and looks at its digest as at theirs.
    fn place_picture(&mut self, Picture { kind, bytes }: &Picture) -> Result<StoredPicture, CorpusError> {
        let hash = self.folder.write(bytes)?;
        if !self.packs.contains(&hash) {
            self.packs.push(hash.clone());
        }
        self.pictures += 1;
        Ok(StoredPicture { kind: *kind, hash, bytes: bytes.len() as u64 })
    }

    fn place(&mut self, text: &str) -> Result<(u32, u64), CorpusError> {
        let (pack, mut content) = match self.open.take() {
            Some(open) => open,
            None => {
                self.packs.push(String::new());
                (u32::try_from(self.packs.len() - 1).unwrap_or(u32::MAX), Vec::new())
            }
        };
        let offset = content.len() as u64;
        content.extend_from_slice(text.as_bytes());
        if content.len() >= self.pack_bytes {
            self.packs[pack as usize] = self.folder.write(&content)?;
        } else {
            self.open = Some((pack, content));
        }
        Ok((pack, offset))
    }

    fn finish(mut self) -> Result<Manifest, CorpusError> {
        if let Some((pack, content)) = self.open.take() {
            self.packs[pack as usize] = self.folder.write(&content)?;
        }
        Ok(without_unused_packs(Manifest::of(self.packs, self.files)))
    }
}

/// Earlier packs are used again when all are here and less than half of them is waste.
fn worth_keeping(folder: &PackFolder, pack_bytes: usize, earlier: &Manifest) -> bool {
    let sizes: Option<u64> =
        earlier.packs.iter().map(|pack| fs::metadata(folder.path(pack)).map(|about| about.len()).ok()).sum();
    sizes.is_some_and(|size| size <= 2 * earlier.stored_bytes() + pack_bytes as u64)
}

fn without_unused_packs(mut manifest: Manifest) -> Manifest {
    let mut used: BTreeSet<u32> = manifest.files.iter().map(|file| file.pack).collect();
    let pictures: HashSet<&str> =
        manifest.files.iter().filter_map(|file| Some(file.picture.as_ref()?.hash.as_str())).collect();
    let of_pictures = (0u32..).zip(&manifest.packs).filter(|(_, pack)| pictures.contains(pack.as_str()));
    used.extend(of_pictures.map(|(at, _)| at));
    let renumbered: HashMap<u32, u32> = used.iter().copied().zip(0..).collect();
    for file in &mut manifest.files {
        file.pack = renumbered.get(&file.pack).copied().unwrap_or(file.pack);
    }
    manifest.packs = used.iter().map(|pack| std::mem::take(&mut manifest.packs[*pack as usize])).collect();
    manifest
}

/// What was sent to the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SentPack {
    /// How many packs.
    pub packs: u64,
    /// How many bytes, the manifest left out.
    pub bytes: u64,
}

/// Sends what the store does not have: packs first, so that a manifest in the store is always complete.
pub(super) async fn send(
    manifest: &Manifest,
    folder: &PackFolder,
    store: &dyn BlobStore,
    progress: &ProgressSink,
) -> Result<SentPack, CorpusError> {
    let mut sent = SentPack::default();
    let total = manifest.packs.len() as u64;
    for (done, pack) in (1u64..).zip(&manifest.packs) {
        let key = pack_key(pack);
        if !blob::has(store, &key).await? {
            let path = folder.path(pack);
            let bytes =
                tokio::fs::read(&path).await.map_err(CorpusError::io("reading a pack of documents"))?;
            sent.packs += 1;
            sent.bytes += bytes.len() as u64;
            blob::put(store, &key, Bytes::from(bytes)).await?;
        }
        progress(Progress { phase: Phase::Sending, done, total, bytes: sent.bytes });
    }
    let key = manifest_key(&manifest.id());
    if sent.packs > 0 || !blob::has(store, &key).await? {
        blob::put(store, &key, Bytes::from(manifest.to_bytes())).await?;
    }
    Ok(sent)
}

/// Gets the manifest of a corpus from the store.
pub(super) async fn fetch_manifest(id: &CorpusId, store: &dyn BlobStore) -> Result<Manifest, CorpusError> {
    let bytes = blob::get(store, &manifest_key(id)).await?;
    let bytes = bytes.ok_or_else(|| CorpusError::Missing("the manifest".to_owned()))?;
    Manifest::read(&bytes, id)
}

/// Checks that the store has all documents of an id.
///
/// # Errors
/// When a part is missing or damaged, or the store fails.
pub async fn check_stored(id: &CorpusId, store: &dyn BlobStore) -> Result<(), CorpusError> {
    for pack in fetch_manifest(id, store).await?.packs {
        if !blob::has(store, &pack_key(&pack)).await? {
            return Err(CorpusError::Missing("a pack".to_owned()));
        }
    }
    Ok(())
}

/// Gets the packs that are not here yet from the store, each checked against its name.
pub(super) async fn fetch_packs(
    manifest: &Manifest,
    folder: &PackFolder,
    store: &dyn BlobStore,
    progress: &ProgressSink,
) -> Result<(), CorpusError> {
    let total = manifest.packs.len() as u64;
    let mut received = 0;
    for (done, pack) in (1u64..).zip(&manifest.packs) {
        if !folder.has(pack) {
            let bytes = blob::get(store, &pack_key(pack)).await?;
            let bytes = bytes.ok_or_else(|| CorpusError::Missing("a pack".to_owned()))?;
            received += bytes.len() as u64;
            let (folder, pack) = (folder.clone(), pack.clone());
            super::blocking(move || {
                if bytes.len() > MAX_BLOB || hash_of(&bytes) != pack {
                    return Err(CorpusError::Damaged("a pack".to_owned()));
                }
                folder.write(&bytes).map(drop)
            })
            .await?;
        }
        progress(Progress { phase: Phase::Fetching, done, total, bytes: received });
    }
    Ok(())
}

/// Passes the text of every file to `each`, in the order of the manifest. Removes a pack if a text in it does not have the
/// hash that the manifest states. Blocks.
pub(super) fn for_each_text(
    manifest: &Manifest,
    folder: &PackFolder,
    mut each: impl FnMut(usize, &ManifestFile, Arc<str>) -> Result<(), CorpusError>,
) -> Result<(), CorpusError> {
    for (index, file) in manifest.files.iter().enumerate() {
        let pack = &manifest.packs[file.pack as usize];
        let text = folder.read(pack, file.offset, file.bytes)?;
        if hash_of(text.as_bytes()) != file.hash {
            // The next use writes or fetches it again.
            let _ = fs::remove_file(folder.path(pack));
            return Err(CorpusError::Damaged("a pack".to_owned()));
        }
        each(index, file, text.into())?;
    }
    Ok(())
}

fn pack_key(hash: &str) -> String {
    format!("corpus/pack/{hash}")
}

fn manifest_key(id: &CorpusId) -> String {
    format!("corpus/manifest/{id}")
}
