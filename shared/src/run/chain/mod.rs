//! The hash chain of a run: every decision carries a [`Link`] with a hash over all that was written before it.
//!
//! Agents write while a decision is being made, so a decision cannot know all that stands before it. A link covers the
//! entries of agents up to the last one that its author had heard of, without a gap and in the order of the stream, then
//! the messages of the decision itself. What came in between is covered by the next link.
//!
//! All hashes are SHA-256. The hash so far begins with the hash of the link before, or with [`beginning`]. Each entry is
//! added to it by [`add`]: its [`digest`] with its place. The messages of the decision have place 0, since whoever writes
//! them does not know it. Pure.

mod verify;

#[cfg(test)]
mod tests;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use super::event::{Digest, Link, Mark, MarkedEntry, Seal};
pub use verify::{ChainFault, Misfit, Read, Verified, verify};

use crate::ids::{RunId, Seq};

/// Most entries of agents that a link names one by one: it is a header of a message.
pub const MOST_MARKS: usize = 256;

/// The place that stands for that of a decision's own messages.
const OWN: Seq = Seq(0);

/// The hash of a message: of the length of its subject (four bytes, the highest first), its subject, and its bytes. Where
/// the record has several parts, the number of the part is left out of the subject.
#[must_use]
pub fn digest(subject: &str, bytes: &[u8]) -> Digest {
    let mut hash = Sha256::new();
    hash.update(u32::try_from(subject.len()).unwrap_or(u32::MAX).to_be_bytes());
    hash.update(subject.as_bytes());
    hash.update(bytes);
    Digest::from_bytes(hash.finalize().into())
}

/// What a chain begins with: the hash of `muster-chain-1`, a space and the run's id.
#[must_use]
pub fn beginning(run: RunId) -> Digest {
    Digest::from_bytes(Sha256::digest(format!("muster-chain-1 {run}")).into())
}

/// The hash so far with one more entry: of the hash before, the entry's place (eight bytes, the highest first) and its
/// [`digest`].
#[must_use]
pub fn add(so_far: Digest, place: Seq, entry: Digest) -> Digest {
    let mut hash = Sha256::new();
    hash.update(so_far.as_bytes());
    hash.update(place.0.to_be_bytes());
    hash.update(entry.as_bytes());
    Digest::from_bytes(hash.finalize().into())
}

/// An entry of an agent: its place, and its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Covered {
    /// Its place.
    pub seq: Seq,
    /// See [`digest`].
    pub digest: Digest,
}

/// An entry as far as the chain goes by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainEntry {
    /// Of an agent.
    Agent(Covered),
    /// A decision with a link.
    Linked {
        /// Its place.
        seq: Seq,
        /// Its link.
        link: Box<Link>,
    },
}

/// The chain of a run as an orchestrator carries it on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Chain {
    /// The hash of the newest link.
    head: Option<Digest>,
    /// What agents wrote and no link covers yet, in order.
    waiting: Vec<Covered>,
    /// How far is known what agents wrote.
    known: Seq,
}

impl Chain {
    /// The hash of the newest link; nothing where there is none.
    #[must_use]
    pub const fn head(&self) -> Option<Digest> {
        self.head
    }

    /// An agent wrote. All that agents write must be noted in order; what was read before is passed over.
    pub fn note(&mut self, entry: Covered) {
        if entry.seq > self.known {
            self.known = entry.seq;
            self.waiting.push(entry);
        }
    }

    /// An entry of the record was read, in order.
    pub fn read(&mut self, entry: ChainEntry) {
        match entry {
            ChainEntry::Agent(entry) => self.note(entry),
            ChainEntry::Linked { seq, link } => {
                if link.prev.is_none() {
                    self.begins_at(seq);
                }
                let through = link.through().unwrap_or_default();
                self.waiting.retain(|entry| entry.seq > through);
                self.head = Some(link.hash);
            }
        }
    }

    /// The link of the next decision, as far as it is known before its messages are.
    #[must_use]
    pub fn draft(&self, run: RunId) -> LinkDraft {
        let Some(head) = self.head else {
            return LinkDraft { prev: None, of: Vec::new(), every: 1, so_far: beginning(run) };
        };
        let every = self.waiting.len().div_ceil(MOST_MARKS).max(1);
        let (mut so_far, mut of) = (head, Vec::with_capacity(self.waiting.len().min(MOST_MARKS)));
        for (at, entry) in self.waiting.iter().enumerate() {
            so_far = add(so_far, entry.seq, entry.digest);
            if (at + 1).is_multiple_of(every) || at + 1 == self.waiting.len() {
                of.push(MarkedEntry(entry.seq, so_far.mark()));
            }
        }
        LinkDraft { prev: Some(head.mark()), of, every: u32::try_from(every).unwrap_or(u32::MAX), so_far }
    }

    /// The decision for which the link was drafted stands in the record. Nothing was noted meanwhile.
    pub fn wrote(&mut self, first: Seq, link: Digest) {
        if self.head.is_none() {
            self.begins_at(first);
        }
        self.waiting.clear();
        self.head = Some(link);
    }

    /// What agents wrote before the first link is no part of the chain.
    fn begins_at(&mut self, first: Seq) {
        self.known = self.known.max(first);
        self.waiting.retain(|entry| entry.seq > first);
    }
}

/// A link for which only the decision's own messages are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkDraft {
    prev: Option<Mark>,
    of: Vec<MarkedEntry>,
    every: u32,
    so_far: Digest,
}

impl LinkDraft {
    /// The link, over these messages of the decision besides.
    #[must_use]
    pub fn over(self, messages: impl IntoIterator<Item = Digest>) -> Link {
        let Self { prev, of, every, mut so_far } = self;
        let mut own = Vec::new();
        for message in messages {
            so_far = add(so_far, OWN, message);
            own.push(so_far.mark());
        }
        Link { prev, of, every, own, hash: so_far, seal: None }
    }
}
