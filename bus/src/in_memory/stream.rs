//! One stream in memory.

use std::collections::{BTreeMap, HashMap};

use muster_shared::ids::Seq;
use muster_shared::time::Millis;

use crate::backend::{Appended, FENCED_AFTER, Fence, Headers, Message, Stored, StreamState, WriteOptions};
use crate::error::{AppendError, BusError};
use crate::subject::matches;
use crate::topology::{StreamSpec, WhenFull};

/// How long the mark of an expired message stays, in milliseconds.
const MARK_MILLIS: u64 = 60_000;

pub(super) struct MemoryStream {
    pub(super) spec: StreamSpec,
    pub(super) messages: BTreeMap<u64, Kept>,
    last: u64,
    bytes: u64,
    /// Names of messages, where they stand, and until when the name is remembered.
    names: HashMap<String, (Seq, Millis)>,
}

/// A message in the stream.
pub(super) struct Kept {
    pub(super) at: Millis,
    pub(super) message: Message,
    expires: Option<Millis>,
}

impl MemoryStream {
    pub(super) fn new(spec: StreamSpec) -> Self {
        Self { spec, messages: BTreeMap::new(), last: 0, bytes: 0, names: HashMap::new() }
    }

    /// Stores messages, all or none.
    pub(super) fn append(
        &mut self,
        messages: Vec<Message>,
        options: &WriteOptions,
        now: Millis,
    ) -> Result<Appended, AppendError> {
        if let Some(seq) = options.dedup.as_ref().and_then(|name| self.named(name, now)) {
            return Ok(Appended { first: seq, last: seq });
        }
        if let Some(Fence { filter, after }) = &options.fence
            && self.last_matching(filter) != *after
        {
            return Err(AppendError::Conflict);
        }
        let wanted = messages.iter().map(size).sum::<u64>();
        if self.spec.when_full == WhenFull::RefuseNew && self.bytes + wanted > self.spec.max_bytes {
            return Err(BusError::Full { what: format!("stream {}", self.spec.name) }.into());
        }
        let first = Seq(self.last + 1);
        for (at, mut message) in messages.into_iter().enumerate() {
            if let Some(fence) = options.fence.as_ref().filter(|_| at == 0) {
                message.headers.add(FENCED_AFTER, &fence.after.to_string());
            }
            self.store(message, options, now);
        }
        let last = Seq(self.last);
        if let (Some(name), Some(window)) = (&options.dedup, self.spec.dedup) {
            self.names.insert(name.clone(), (last, now.after(window)));
        }
        Ok(Appended { first, last })
    }

    fn store(&mut self, message: Message, options: &WriteOptions, now: Millis) {
        if let Some(keep) = self.spec.per_subject {
            self.trim(&message.subject, keep.saturating_sub(1) as usize);
        }
        self.last += 1;
        self.bytes += size(&message);
        let by_ttl = options.ttl.map(|ttl| now.after(ttl));
        let by_age = self.spec.max_age.map(|age| now.after(age));
        let expires = by_ttl.into_iter().chain(by_age).min();
        let kept = Kept { at: now, message, expires };
        self.messages.insert(self.last, kept);
        while self.bytes > self.spec.max_bytes && self.spec.when_full == WhenFull::DropOldest {
            let Some(oldest) = self.messages.keys().next().copied() else { break };
            self.remove(oldest);
        }
    }

    /// Keeps the newest messages of a subject.
    fn trim(&mut self, subject: &str, keep: usize) {
        let mut held: Vec<u64> = self.on(subject).map(|(seq, _)| seq).collect();
        held.truncate(held.len().saturating_sub(keep));
        for seq in held {
            self.remove(seq);
        }
    }

    pub(super) fn remove(&mut self, seq: u64) -> Option<Kept> {
        let kept = self.messages.remove(&seq)?;
        self.bytes = self.bytes.saturating_sub(size(&kept.message));
        Some(kept)
    }

    fn on<'a>(&'a self, filter: &'a str) -> impl DoubleEndedIterator<Item = (u64, &'a Kept)> {
        let found = self.messages.iter().filter(move |(_, kept)| matches(filter, &kept.message.subject));
        found.map(|(&seq, kept)| (seq, kept))
    }

    fn last_matching(&self, filter: &str) -> Seq {
        Seq(self.on(filter).next_back().map_or(0, |(seq, _)| seq))
    }

    fn named(&self, name: &str, now: Millis) -> Option<Seq> {
        self.names.get(name).filter(|(_, until)| *until > now).map(|(seq, _)| *seq)
    }

    pub(super) fn scan(&self, filters: &[String], after: Seq) -> Vec<Stored> {
        let rest = self.messages.range(after.0.saturating_add(1)..);
        rest.filter(|(_, kept)| any(filters, kept)).map(|(&seq, kept)| stored(seq, kept)).collect()
    }

    pub(super) fn next_after(&self, filters: &[String], after: Seq) -> Option<Stored> {
        let mut rest = self.messages.range(after.0.saturating_add(1)..);
        rest.find(|(_, kept)| any(filters, kept)).map(|(&seq, kept)| stored(seq, kept))
    }

    pub(super) fn last_on(&self, subject: &str) -> Option<Stored> {
        self.on(subject).next_back().map(|(seq, kept)| stored(seq, kept))
    }

    /// The last message of every subject, and the position after which new ones come.
    pub(super) fn last_per_subject(&self, filters: &[String]) -> (Vec<Stored>, Seq) {
        let mut last = BTreeMap::new();
        for found in self.scan(filters, Seq(0)) {
            last.insert(found.message.subject.clone(), found);
        }
        let mut found: Vec<Stored> = last.into_values().collect();
        found.sort_by_key(|stored| stored.seq);
        (found, Seq(self.last))
    }

    pub(super) fn state(&self, subjects: Option<&str>) -> StreamState {
        let mut state = StreamState {
            first: Seq(self.messages.keys().next().copied().unwrap_or(self.last + 1)),
            last: Seq(self.last),
            messages: u64::try_from(self.messages.len()).unwrap_or(u64::MAX),
            bytes: self.bytes,
            max_bytes: Some(self.spec.max_bytes),
            keeps_all: self.spec.keeps_all,
            subjects: BTreeMap::new(),
        };
        if let Some(filter) = subjects {
            for (_, kept) in self.on(filter) {
                *state.subjects.entry(kept.message.subject.clone()).or_insert(0) += 1;
            }
        }
        state
    }

    pub(super) fn purge(&mut self, filter: &str) -> u64 {
        let found: Vec<u64> = self.on(filter).map(|(seq, _)| seq).collect();
        found.iter().filter(|&&seq| self.remove(seq).is_some()).count() as u64
    }

    /// When something will expire.
    pub(super) fn next_event(&self) -> Option<Millis> {
        self.messages.values().filter_map(|kept| kept.expires).min()
    }

    /// Removes what expired, leaving marks where the stream does so. Says whether anything did.
    pub(super) fn pass_time(&mut self, now: Millis) -> bool {
        let due = |at: Option<Millis>| at.is_some_and(|at| at <= now);
        let expired: Vec<u64> =
            self.messages.iter().filter(|(_, kept)| due(kept.expires)).map(|(&seq, _)| seq).collect();
        let changed = !expired.is_empty();
        for seq in expired {
            if let Some(kept) = self.remove(seq) {
                self.mark(&kept, now);
            }
        }
        self.names.retain(|_, (_, until)| *until > now);
        changed
    }

    /// Leaves a mark where the last message of a subject expired, unless that was itself a mark.
    fn mark(&mut self, kept: &Kept, now: Millis) {
        let subject = kept.message.subject.clone();
        let is_mark = kept.message.payload.is_empty() && !kept.message.headers.0.is_empty();
        if !self.spec.marks || is_mark || self.last_on(&subject).is_some() {
            return;
        }
        let mut headers = Headers::default();
        headers.add("Nats-Marker-Reason", "MaxAge");
        let message = Message { subject, headers, payload: bytes::Bytes::new() };
        self.last += 1;
        self.bytes += size(&message);
        let expires = Some(Millis(now.0 + MARK_MILLIS));
        self.messages.insert(self.last, Kept { at: now, message, expires });
    }
}

fn any(filters: &[String], kept: &Kept) -> bool {
    filters.iter().any(|filter| matches(filter, &kept.message.subject))
}

pub(super) fn stored(seq: u64, kept: &Kept) -> Stored {
    Stored { seq: Seq(seq), at: kept.at, message: kept.message.clone() }
}

/// What a message takes: about what the server counts.
fn size(message: &Message) -> u64 {
    let headers: usize = message.headers.0.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    (message.subject.len() + headers + message.payload.len() + 22) as u64
}
