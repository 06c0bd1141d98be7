//! The manifest: which files a corpus has, and in which pack each lies.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{error::CorpusError, picture::StoredPicture, unit::Unit};

/// The version of manifests.
pub const MANIFEST_VERSION: u32 = 1;

/// The name of a corpus: the SHA-256 of its paths and contents, in hex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CorpusId(String);

impl CorpusId {
    /// Reads an id: 64 hexadecimal digits in lower case.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn parse(text: &str) -> Result<Self, CorpusError> {
        if is_hash(text) { Ok(Self(text.to_owned())) } else { Err(CorpusError::Damaged("the id".to_owned())) }
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for CorpusId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for CorpusId {
    type Error = CorpusError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<CorpusId> for String {
    fn from(id: CorpusId) -> Self {
        id.0
    }
}

/// One file of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Path as cited: relative to the given folder, `/`-separated.
    pub path: String,
    /// SHA-256 of the text as stored, in hex.
    pub hash: String,
    /// Length of the text as stored, in bytes of UTF-8.
    pub bytes: u64,
    /// How many lines it has.
    pub lines: u64,
    /// Index into [`Manifest::packs`].
    pub pack: u32,
    /// Where the text begins in the pack.
    pub offset: u64,
    /// What of it is cited.
    #[serde(default, skip_serializing_if = "Unit::is_line")]
    pub unit: Unit,
    /// The picture that the text is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<StoredPicture>,
}

/// What a corpus consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`MANIFEST_VERSION`].
    pub version: u32,
    /// The packs by the SHA-256 of their content.
    pub packs: Vec<String>,
    /// The files by path.
    pub files: Vec<ManifestFile>,
}

impl Manifest {
    pub(super) const fn of(packs: Vec<String>, files: Vec<ManifestFile>) -> Self {
        Self { version: MANIFEST_VERSION, packs, files }
    }

    /// The id that follows from paths and contents; how files lie in packs has no part in it.
    #[must_use]
    pub fn id(&self) -> CorpusId {
        let by_path: BTreeMap<&str, &ManifestFile> =
            self.files.iter().map(|file| (file.path.as_str(), file)).collect();
        let mut hasher = Sha256::new();
        for (path, file) in by_path {
            hasher.update((path.len() as u64).to_be_bytes());
            hasher.update(path);
            hasher.update(&file.hash);
            if !file.unit.is_line() {
                // No length begins with a letter: what follows a hash is told apart.
                hasher.update(file.unit.one());
            }
            if let Some(picture) = &file.picture {
                // Two pictures of one size are told in the same words.
                hasher.update("picture");
                hasher.update(&picture.hash);
            }
        }
        CorpusId(hex::encode(hasher.finalize()))
    }

    /// Length of all texts, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Length of all that lies in packs, in bytes.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.bytes() + self.files.iter().filter_map(|file| Some(file.picture.as_ref()?.bytes)).sum::<u64>()
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // A manifest is strings and numbers: its serialization cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a manifest and checks that it is the one of that id and consistent in itself.
    pub(super) fn read(bytes: &[u8], id: &CorpusId) -> Result<Self, CorpusError> {
        let damaged = || CorpusError::Damaged("the manifest".to_owned());
        let manifest: Self = serde_json::from_slice(bytes).map_err(|_| damaged())?;
        let packs: BTreeSet<&str> = manifest.packs.iter().map(String::as_str).collect();
        let is_there = |picture: &StoredPicture| packs.contains(picture.hash.as_str());
        let sound = manifest.version == MANIFEST_VERSION
            && manifest.packs.iter().all(|pack| is_hash(pack))
            && manifest
                .files
                .iter()
                .all(|file| (file.pack as usize) < manifest.packs.len() && is_hash(&file.hash))
            && manifest.files.iter().filter_map(|file| file.picture.as_ref()).all(is_there)
            && manifest.id() == *id;
        if sound { Ok(manifest) } else { Err(damaged()) }
    }
}

/// The SHA-256 of bytes, in hex.
pub(super) fn hash_of(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::super::picture::PictureKind;
    use super::*;

    #[test]
    fn manifests_are_read_as_written_and_texts_keep_their_ids() {
        let hash = hash_of(b"fine");
        let text = format!(
            r#"{{"version":1,"packs":["{hash}"],"files":[{{"path":"a.md","hash":"{hash}","bytes":4,"lines":1,"pack":0,"offset":0}}]}}"#
        );
        let id = CorpusId::parse("1d6832ef8ab97a71fb8adbbe15785092b4f936bd7db6c665a8e33c8f94bfef26").unwrap();
        let manifest = Manifest::read(text.as_bytes(), &id).unwrap();
        assert_eq!(manifest.files[0].unit, Unit::Line);
        assert_eq!(manifest.to_bytes(), text.as_bytes());
        let mut files = manifest.files.clone();
        files[0].unit = Unit::Page;
        let paged = Manifest::of(manifest.packs.clone(), files);
        assert_ne!(paged.id(), id, "the same text in pages is another document");
        assert_eq!(Manifest::read(&paged.to_bytes(), &paged.id()).unwrap(), paged);
        let picture = |bytes: &[u8]| {
            let stored = StoredPicture { kind: PictureKind::Png, hash: hash_of(bytes), bytes: 3 };
            let shown = ManifestFile { picture: Some(stored), ..manifest.files[0].clone() };
            Manifest::of(vec![hash.clone(), hash_of(bytes)], vec![shown])
        };
        let (one, other) = (picture(b"one"), picture(b"two"));
        assert!(one.id() != id && one.id() != other.id(), "pictures are told apart by their bytes");
        assert_eq!(Manifest::read(&one.to_bytes(), &one.id()).unwrap(), one);
        let without = Manifest { packs: vec![hash.clone()], ..one };
        assert!(
            Manifest::read(&without.to_bytes(), &without.id()).is_err(),
            "its bytes have to be in a pack"
        );
        let newer = Manifest { version: MANIFEST_VERSION + 1, ..paged };
        assert!(Manifest::read(&newer.to_bytes(), &newer.id()).is_err());
    }
}
