//! What passes between whoever wants a document read and the child that reads it.
//!
//! A request is the length of its head (four bytes, the highest first), the head in JSON, and the bytes of the document.
//! An answer is the length of the JSON that follows, and the JSON.

use muster_tools::settings::Part;
use serde::{Deserialize, Serialize};

use crate::found::{Failure, Found};
use muster_tools::settings::ReadLimits;

/// Longest head of a request, in bytes.
pub(crate) const MOST_HEAD: u32 = 64 * 1024;

/// What is asked, before the bytes of the document.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) name: String,
    pub(crate) media_type: Option<String>,
    pub(crate) keeps_source: bool,
    pub(crate) limits: ReadLimits,
    /// How many bytes the document has.
    pub(crate) bytes: u64,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) found: Result<Found, Failure>,
    /// The child has grown and ends now.
    pub(crate) ends: bool,
    /// What the kernel has nothing to keep the child in by.
    pub(crate) missing: Vec<Part>,
}

/// The most bytes that an answer may have with these limits: text grows when it is written as JSON, at most sixfold.
pub(crate) fn most_answer(limits: &ReadLimits) -> u64 {
    limits.max_text.saturating_mul(6).saturating_add(16 * 1024 * 1024).min(u64::from(u32::MAX))
}

/// JSON behind its length.
pub(crate) fn framed(message: &impl Serialize) -> Option<Vec<u8>> {
    let json = serde_json::to_vec(message).ok()?;
    let length = u32::try_from(json.len()).ok()?;
    let mut frame = Vec::with_capacity(json.len() + 4);
    frame.extend(length.to_be_bytes());
    frame.extend(json);
    Some(frame)
}
