//! The links of a run's hash chain, as decisions carry them. [`chain`](crate::run::chain) says what is hashed.

use std::fmt;
use std::str::FromStr;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::Seq;
use crate::text_form::text_form;

/// A SHA-256. Shown as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Wraps the bytes of a hash.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its beginning: enough to tell which entry does not fit, never to prove that one does.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        let [a, b, c, d, ..] = self.0;
        Mark([a, b, c, d])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", self.mark())
    }
}

impl FromStr for Digest {
    type Err = NotHexadecimal;
    fn from_str(text: &str) -> Result<Self, NotHexadecimal> {
        bytes(text).map(Self)
    }
}
text_form!(Digest, "Digest", "^[0-9a-fA-F]{64}$", "A SHA-256, in hexadecimal");

/// The first four bytes of a hash. Shown as 8 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark([u8; 4]);

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl FromStr for Mark {
    type Err = NotHexadecimal;
    fn from_str(text: &str) -> Result<Self, NotHexadecimal> {
        bytes(text).map(Self)
    }
}
text_form!(Mark, "Mark", "^[0-9a-fA-F]{8}$", "The first four bytes of a SHA-256, in hexadecimal");

/// Why a text is no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not {0} hexadecimal digits")]
pub struct NotHexadecimal(usize);

fn bytes<const N: usize>(text: &str) -> Result<[u8; N], NotHexadecimal> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).map(|()| bytes).map_err(|_| NotHexadecimal(2 * N))
}

/// What a decision says of the record before it, and of itself: a link of the run's hash chain. It stands in the header
/// [`Link::HEADER`] of the decision's message, as JSON, so that the message's own bytes can be hashed as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Link {
    /// The beginning of the hash of the link before it; nothing where the chain begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prev: Option<Mark>,
    /// What agents wrote that this link covers, in order: where it stands, and the hash so far after it. Of very many only
    /// every [`Self::every`]th stands here, and the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<MarkedEntry>,
    /// Which of them stand in [`Self::of`]: 1 for all.
    #[serde(default = "one", skip_serializing_if = "crate::is_usual::<_, 1>")]
    pub every: u32,
    /// The hash so far after each message of the decision: its own, and those of the offers that follow it.
    pub own: Vec<Mark>,
    /// The hash over all of it: of the link before, of what agents wrote, and of the decision's messages.
    pub hash: Digest,
    /// Who vouches for the hash; nothing where orchestrators have no credentials of a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
}

impl Link {
    /// The header of a decision's message in which its link stands.
    pub const HEADER: &'static str = "Muster-Link";

    /// The last position of what agents wrote that it covers; nothing when it covers none.
    #[must_use]
    pub fn through(&self) -> Option<Seq> {
        self.of.last().map(|entry| entry.0)
    }

    /// As it stands in the header.
    #[must_use]
    pub fn to_header(&self) -> String {
        // It is made of numbers and texts alone: there is nothing that JSON cannot say.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads it from the header.
    ///
    /// # Errors
    /// When it is no link.
    pub fn of_header(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// An entry that a link covers: where it stands, and the beginning of the hash so far after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MarkedEntry(pub Seq, pub Mark);

/// Who vouches for a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Seal {
    /// Who it is, as signatures tell it; his public key alone where a link of the run before tells it.
    pub by: String,
    /// The signature over the 32 bytes of the link's hash, in URL-safe base64.
    pub signature: String,
}

impl Seal {
    /// Who made it, where that stands here.
    #[must_use]
    pub fn introduction(&self) -> Option<&str> {
        Some(self.by.as_str()).filter(|by| by.contains('.'))
    }
}

const fn one() -> u32 {
    1
}
