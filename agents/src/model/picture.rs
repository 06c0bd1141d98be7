//! Pictures that a model is shown with a message. What is kept and hashed of one is its digest and its length; its bytes
//! are in no record.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What requests with a picture are estimated by, in bytes of text: providers count 250 to 1,600 tokens.
pub const ESTIMATED: usize = 6_400;

/// A picture. Read back from JSON, it has no bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatPicture {
    /// Its media type.
    pub media_type: String,
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Its bytes in base64.
    #[serde(skip)]
    data: Arc<str>,
}

impl ChatPicture {
    /// A picture whose bytes come in base64; none when they are no base64.
    #[must_use]
    pub fn read(media_type: String, data: String) -> Option<Self> {
        let bytes = STANDARD.decode(&data).ok()?;
        let (sha256, length) = (hex::encode(Sha256::digest(&bytes)), bytes.len() as u64);
        Some(Self { media_type, sha256, bytes: length, data: data.into() })
    }

    /// Its bytes in base64.
    #[must_use]
    pub const fn data(&self) -> &Arc<str> {
        &self.data
    }

    /// Its bytes as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

/// As it stands in records: `[picture image/png, 45312 bytes, sha256 …]`.
impl fmt::Display for ChatPicture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { media_type, sha256, bytes, .. } = self;
        write!(f, "[picture {media_type}, {bytes} bytes, sha256 {sha256}]")
    }
}

impl fmt::Debug for ChatPicture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_of_a_picture_is_its_digest() {
        let picture = ChatPicture::read("image/png".to_owned(), STANDARD.encode("bytes")).unwrap();
        let sha256 = "277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9";
        let kept = serde_json::to_value(&picture).unwrap();
        assert_eq!(kept, json!({ "media_type": "image/png", "sha256": sha256, "bytes": 5 }));
        assert_eq!(picture.to_string(), format!("[picture image/png, 5 bytes, sha256 {sha256}]"));
        assert_eq!(picture.url(), "data:image/png;base64,Ynl0ZXM=");
        assert!(serde_json::from_value::<ChatPicture>(kept).unwrap().data().is_empty());
        assert_eq!(ChatPicture::read("image/png".to_owned(), "no base64!".to_owned()), None);
    }
}
