//! The manifest: which files a corpus has, and in which pack each lies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::CorpusError;

/// The version of manifests that this program writes and reads.
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
}

/// What a corpus consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`].
    pub version: u32,
    /// The packs by the SHA-256 of their content.
    pub packs: Vec<String>,
    /// The files by path.
    pub files: Vec<ManifestFile>,
}

impl Manifest {
    /// The id that follows from paths and contents; how files lie in packs has no part in it.
    #[must_use]
    pub fn id(&self) -> CorpusId {
        let by_path: BTreeMap<&str, &str> =
            self.files.iter().map(|file| (file.path.as_str(), file.hash.as_str())).collect();
        let mut hasher = Sha256::new();
        for (path, hash) in by_path {
            hasher.update((path.len() as u64).to_be_bytes());
            hasher.update(path);
            hasher.update(hash);
        }
        CorpusId(hex::encode(hasher.finalize()))
    }

    /// Length of all texts, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // A manifest is strings and numbers: its serialization cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a manifest and checks that it is the one of that id and consistent in itself.
    pub(super) fn read(bytes: &[u8], id: &CorpusId) -> Result<Self, CorpusError> {
        let damaged = || CorpusError::Damaged("the manifest".to_owned());
        let manifest: Self = serde_json::from_slice(bytes).map_err(|_| damaged())?;
        let sound = manifest.version == MANIFEST_VERSION
            && manifest.packs.iter().all(|pack| is_hash(pack))
            && manifest
                .files
                .iter()
                .all(|file| (file.pack as usize) < manifest.packs.len() && is_hash(&file.hash))
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
