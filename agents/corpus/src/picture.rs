//! Pictures among the documents: what is searched and cited of one is a line about it; its bytes travel beside, as a pack of
//! their own, and are checked against their digest wherever they are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Corpus, Outline, blocking, cache, error::CorpusError, manifest::hash_of, pack::PackFolder};

/// A kind of pictures that models are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PictureKind {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    Webp,
}

impl PictureKind {
    /// The kind of a file, by how it begins. A text is none, whatever its first words are.
    #[must_use]
    pub fn of(beginning: &[u8]) -> Option<Self> {
        let kind = if beginning.starts_with(b"\x89PNG") {
            Self::Png
        } else if beginning.starts_with(b"\xff\xd8\xff") {
            Self::Jpeg
        } else if beginning.starts_with(b"GIF87a") || beginning.starts_with(b"GIF89a") {
            Self::Gif
        } else if beginning.starts_with(b"RIFF") && beginning.get(8..12) == Some(b"WEBP") {
            Self::Webp
        } else {
            return None;
        };
        let is_text = !beginning.contains(&0) && std::str::from_utf8(beginning).is_ok();
        (!is_text).then_some(kind)
    }

    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Gif => "GIF",
            Self::Webp => "WebP",
        }
    }

    /// Its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// Where the bytes of a picture are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPicture {
    /// What it is.
    pub kind: PictureKind,
    /// SHA-256 of its bytes, in hex: the pack that they are.
    pub hash: String,
    /// How many there are.
    pub bytes: u64,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// What it is.
    pub kind: PictureKind,
    /// Its bytes, as they stand in its file.
    pub bytes: Vec<u8>,
}

/// The pictures of a corpus, by path.
pub(super) type Pictures = Arc<BTreeMap<String, StoredPicture>>;

impl Corpus {
    /// Whether there is a picture among the documents.
    ///
    /// # Errors
    /// When the cache was deleted meanwhile.
    pub async fn has_pictures(&self) -> Result<bool, CorpusError> {
        let (pictures, readable) = (self.pictures().await?, self.readable());
        Ok(pictures.keys().any(|path| readable.is(path)))
    }

    /// The picture of that path, once its bytes are found to be those that were given.
    ///
    /// # Errors
    /// When there is no such document (with the nearest path), when it is no picture, or when its bytes are not what they
    /// should be.
    pub async fn picture(&self, path: &str) -> Result<Picture, CorpusError> {
        let path = path.strip_prefix("./").unwrap_or(path);
        let pictures = self.pictures().await?;
        let Some(stored) = pictures.get(path).filter(|_| self.readable().is(path)).cloned() else {
            // Says what the nearest path is where there is no such document.
            self.read(path, 1, 1).await?;
            return Err(CorpusError::NoPicture(path.to_owned()));
        };
        let packs = PackFolder::of(&self.inner.cache);
        blocking(move || {
            let bytes = packs.part(&stored.hash, 0, stored.bytes)?;
            if hash_of(&bytes) != stored.hash {
                return Err(CorpusError::Damaged("a picture".to_owned()));
            }
            Ok(Picture { kind: stored.kind, bytes })
        })
        .await
    }

    /// Outlines in which pictures are named as such: the name of a file need not tell.
    pub(super) async fn with_pictures_named(
        &self,
        mut outlines: Vec<Outline>,
    ) -> Result<Vec<Outline>, CorpusError> {
        let pictures = self.pictures().await?;
        for outline in &mut outlines {
            if let Some(stored) = pictures.get(&outline.path) {
                outline.headings = vec![format!("a picture, {}", stored.kind.name())];
            }
        }
        Ok(outlines)
    }

    /// All pictures; those that may not be read are among them.
    async fn pictures(&self) -> Result<Pictures, CorpusError> {
        if let Some(known) = self.inner.pictures.get() {
            return Ok(Arc::clone(known));
        }
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            let manifest = cache::manifest(&inner.cache, &inner.id)?;
            let files = manifest.files.into_iter();
            let pictures = files.filter_map(|file| Some((file.path, file.picture?))).collect();
            Ok(Arc::clone(inner.pictures.get_or_init(|| Arc::new(pictures))))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_the_first_bytes() {
        for (beginning, kind) in [
            (&b"\x89PNG\r\n\x1a\n"[..], Some(PictureKind::Png)),
            (b"\xff\xd8\xff\xe0", Some(PictureKind::Jpeg)),
            (b"GIF89a\x01\0\x01\0", Some(PictureKind::Gif)),
            (b"GIF89a is a format of pictures", None),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some(PictureKind::Webp)),
            (b"RIFF\x10\0\0\0WAVE", None),
            (b"BM\x10\0\0\0\0\0\0\0", None),
            (b"", None),
        ] {
            assert_eq!(PictureKind::of(beginning), kind, "{beginning:?}");
        }
    }
}
