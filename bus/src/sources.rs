//! Streams and buckets of others, as sources of knowledge: what of them is asked, and what comes of it. Reading changes
//! nothing and leaves nothing behind.

use std::collections::BTreeMap;

use bytes::Bytes;
use muster_shared::time::Millis;

use crate::partition::Partitions;
use crate::topology;

pub use crate::nats::source::SourceReader;

/// What a stream is, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceState {
    /// Its name.
    pub stream: String,
    /// What is published to it.
    pub subjects: Vec<String>,
    /// The streams that it copies.
    pub copies: Vec<String>,
    /// How many messages it is behind the one that it mirrors, where it does.
    pub behind: Option<u64>,
    /// How many messages it holds.
    pub messages: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The place of its first message.
    pub first: u64,
    /// The place of its last message.
    pub last: u64,
    /// When the first was stored; nothing of an empty stream.
    pub first_at: Option<Millis>,
    /// When the last was stored.
    pub last_at: Option<Millis>,
    /// The server's clock when it was asked.
    pub asked_at: Millis,
    /// Subjects with how many messages each has, where they were asked for; no more of them than were asked for.
    pub counts: BTreeMap<String, u64>,
    /// How many subjects there are, of those that the server told.
    pub counted: u64,
}

impl SourceState {
    /// The stream of Muster's own that this is, or that is copied into it.
    #[must_use]
    pub fn of_muster(&self) -> Option<&str> {
        std::iter::once(&self.stream).chain(&self.copies).map(String::as_str).find(|name| is_of_muster(name))
    }
}

/// Where reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceBegin {
    /// With the first message at this place or after it.
    At(u64),
    /// With the first message of this time or after it.
    Since(Millis),
    /// With the last message of each subject.
    LastPerSubject,
}

/// What is read of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceWanted {
    /// Only these subjects.
    pub filter: Option<String>,
    /// Where it begins.
    pub begin: SourceBegin,
    /// Nothing after this place.
    pub until: Option<u64>,
    /// Most messages.
    pub most: usize,
    /// Most bytes of all messages; a few more may come.
    pub most_bytes: usize,
    /// Whether only subjects, places, times and headers are wanted.
    pub headers_only: bool,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourcePage {
    /// Messages in their order.
    pub entries: Vec<SourceEntry>,
    /// How many more there were from the beginning on, whatever the end.
    pub more: u64,
    /// Whether the server stopped before it was done, so that some are missing.
    pub is_broken_off: bool,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceEntry {
    /// Its place in the stream.
    pub seq: u64,
    /// When it was stored, by the server's clock.
    pub at: Millis,
    /// Its subject.
    pub subject: String,
    /// Its body; empty where only headers were asked for.
    pub body: Bytes,
    /// How many bytes its body has.
    pub bytes: u64,
    /// Whether it says that the value of a key was taken away.
    pub is_removal: bool,
}

/// Whether a stream of this name is one of Muster's own, whatever the fleet: in them stand the goals, the documents and the answers
/// of all runs.
#[must_use]
pub fn is_of_muster(stream: &str) -> bool {
    use topology as t;
    let others = [
        t::TASKS,
        t::COMMANDS,
        t::DEAD,
        t::ADVISORIES,
        t::AGENTS,
        t::LEASE,
        t::CONTEXT,
        t::ALLOWANCE,
        t::LESSONS,
        t::ANSWERS,
        t::ASKED,
        t::FILES,
        t::TRACK_RECORD,
        t::TRIALS,
        t::KEPT,
        t::OBJECTS_STREAM,
    ];
    // Names of streams keep capitals apart; those who read settings do not always.
    let of_record = || Partitions::with_stream(&stream.to_uppercase()).is_some();
    others.iter().any(|own| own.eq_ignore_ascii_case(stream)) || of_record()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::BusSettings;

    #[test]
    fn every_stream_of_our_own_is_known_by_its_name() {
        for partitions in [1, 2, 4, 8, 16] {
            for spec in topology::streams(&BusSettings { partitions, ..BusSettings::default() }) {
                assert!(is_of_muster(spec.name), "{}", spec.name);
                assert!(is_of_muster(&spec.name.to_lowercase()), "{}", spec.name);
            }
        }
        for other in ["ORDERS", "KV_prices", "RUNSHEET", "TASKS_2", ""] {
            assert!(!is_of_muster(other), "{other}");
        }
    }
}
