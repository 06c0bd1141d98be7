//! All streams, queues, objects and subscriptions in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use muster_shared::time::Millis;
use muster_shared::wire::codec::MAX_MESSAGE_BYTES;
use tokio::sync::mpsc;

use super::queue::{MemoryQueue, QueueKey};
use super::stream::MemoryStream;
use crate::backend::{Ack, Appended, Delivery, Incoming, Message, QueueSpec, WriteOptions};
use crate::error::{AppendError, BusError};
use crate::settings::BusSettings;
use crate::subject::matches;
use crate::topology::{self, StreamSpec};

pub(super) struct Broker {
    streams: BTreeMap<&'static str, MemoryStream>,
    queues: HashMap<QueueKey, MemoryQueue>,
    pub(super) objects: HashMap<String, Bytes>,
    objects_bytes: u64,
    subscriptions: Vec<Subscription>,
}

struct Subscription {
    filters: Vec<String>,
    /// Of all in a group, one gets each message.
    group: Option<String>,
    to: mpsc::Sender<Incoming>,
}

impl Broker {
    pub(super) fn new(settings: &BusSettings) -> Self {
        let streams = topology::streams(settings);
        let streams = streams.into_iter().map(|spec| (spec.name, MemoryStream::new(spec))).collect();
        Self {
            streams,
            queues: HashMap::new(),
            objects: HashMap::new(),
            objects_bytes: settings.objects_bytes,
            subscriptions: Vec::new(),
        }
    }

    pub(super) fn stream(&mut self, name: &'static str) -> Result<&mut MemoryStream, BusError> {
        let missing = || BusError::NotProvisioned { what: format!("stream {name}") };
        self.streams.get_mut(name).ok_or_else(missing)
    }

    pub(super) fn append(
        &mut self,
        name: &'static str,
        messages: &[Message],
        options: &WriteOptions,
        now: Millis,
    ) -> Result<Appended, AppendError> {
        if let Some(message) = messages.iter().find(|message| message.payload.len() > MAX_MESSAGE_BYTES) {
            return Err(AppendError::TooLarge { bytes: message.payload.len(), most: MAX_MESSAGE_BYTES });
        }
        let appended = self.stream(name)?.append(messages.to_vec(), options, now)?;
        let source = self.streams.get(name).map(|stream| stream.spec.clone());
        for (message, seq) in messages.iter().zip(appended.first.0..) {
            self.hand_out(message, None);
            if let Some(spec) = &source {
                self.copy(spec, message, seq, now);
            }
        }
        Ok(appended)
    }

    /// What streams that source this one, and its republished subjects, make of a message.
    fn copy(&mut self, from: &StreamSpec, message: &Message, seq: u64, now: Millis) {
        if let Some((old, new)) = from.republish
            && let Some(rest) = message.subject.strip_prefix(old)
        {
            let mut shown = Message { subject: format!("{new}{rest}"), ..message.clone() };
            shown.headers.add("Nats-Sequence", &seq.to_string());
            self.hand_out(&shown, None);
        }
        for stream in self.streams.values_mut() {
            let found = stream.spec.sources.iter().find(|source| source.stream == from.name);
            if let Some(subject) =
                found.and_then(|source| transform(&source.filter, source.subject, &message.subject))
            {
                let copy = Message { subject, ..message.clone() };
                // A full queue loses nothing: the offer stands in the record and is made again.
                let _ = stream.append(vec![copy], &WriteOptions::default(), now);
            }
        }
    }

    /// Publishes to subscriptions, and to the stream that takes the subject.
    pub(super) fn publish(&mut self, message: &Message, now: Millis) -> Result<(), BusError> {
        if message.payload.len() > MAX_MESSAGE_BYTES {
            let (bytes, most) = (message.payload.len(), MAX_MESSAGE_BYTES);
            return Err(BusError::TooLarge { what: "a message".into(), bytes, most });
        }
        let taker = self
            .streams
            .values()
            .find(|stream| stream.spec.subjects.iter().any(|subject| matches(subject, &message.subject)));
        match taker.map(|stream| stream.spec.name) {
            Some(name) => {
                self.append(name, std::slice::from_ref(message), &WriteOptions::default(), now)?;
            }
            None => {
                self.hand_out(message, None);
            }
        }
        Ok(())
    }

    /// Hands a message to whoever listens, with the subject for an answer. Subscribers that are too slow lose messages;
    /// those that are gone are forgotten. Says whether anybody listens.
    pub(super) fn hand_out(&mut self, message: &Message, reply: Option<&str>) -> bool {
        self.subscriptions.retain(|subscription| !subscription.to.is_closed());
        // The members of a group take turns.
        if !self.subscriptions.is_empty() {
            self.subscriptions.rotate_left(1);
        }
        let (mut served, mut heard) = (BTreeSet::new(), false);
        for Subscription { filters, group, to } in &self.subscriptions {
            let wanted = filters.iter().any(|filter| matches(filter, &message.subject));
            if wanted && group.as_ref().is_none_or(|group| served.insert(group)) {
                heard = true;
                let incoming = Incoming { message: message.clone(), reply: reply.map(str::to_owned) };
                let _ = to.try_send(incoming);
            }
        }
        heard
    }

    pub(super) fn subscribe(
        &mut self,
        subjects: &[String],
        group: Option<&str>,
        buffer: usize,
    ) -> mpsc::Receiver<Incoming> {
        let (to, receiver) = mpsc::channel(buffer);
        let (filters, group) = (subjects.to_vec(), group.map(str::to_owned));
        self.subscriptions.push(Subscription { filters, group, to });
        receiver
    }

    pub(super) fn join(&mut self, spec: &QueueSpec) -> Result<QueueKey, BusError> {
        self.stream(spec.stream)?;
        let key = (spec.stream, spec.name.clone());
        self.queues.entry(key.clone()).or_insert_with(|| MemoryQueue::new(spec.clone()));
        Ok(key)
    }

    pub(super) fn pull(&mut self, key: &QueueKey, now: Millis) -> Result<Option<Delivery>, BusError> {
        let missing = || BusError::NotProvisioned { what: format!("queue {} of {}", key.1, key.0) };
        let queue = self.queues.get_mut(key).ok_or_else(missing)?;
        let stream = self.streams.get(key.0).ok_or_else(missing)?;
        Ok(queue.pull(stream, now))
    }

    /// An acknowledgement by its subject. One of something unknown does nothing, as on the server.
    pub(super) fn ack(&mut self, subject: &str, ack: Ack, now: Millis) {
        let tokens: Vec<&str> = subject.split('.').collect();
        let ["$JS", "ACK", stream, queue, _, seq, ..] = tokens.as_slice() else { return };
        let found = self.queues.iter_mut().find(|((of, name), _)| of == stream && name == queue);
        let Some((((stream, _), queue), seq)) = found.zip(seq.parse::<u64>().ok()) else { return };
        if let Some(stream) = self.streams.get_mut(stream) {
            queue.ack(stream, seq, ack, now);
        }
    }

    pub(super) fn give_out_again(
        &mut self,
        spec: &QueueSpec,
        subject: &str,
        now: Millis,
    ) -> Result<bool, BusError> {
        let Some(newest) = self.stream(spec.stream)?.last_on(subject) else { return Ok(false) };
        let queue = self.queues.get_mut(&(spec.stream, spec.name.clone()));
        Ok(queue.is_some_and(|queue| queue.give_out_again(newest.seq.0, now)))
    }

    pub(super) fn in_hand(&self, stream: &str) -> BTreeMap<String, u64> {
        let now = crate::bus::now();
        let queues = self.queues.iter().filter(|((of, _), _)| *of == stream);
        queues.map(|((_, name), queue)| (name.clone(), queue.in_hand(now))).collect()
    }

    pub(super) fn object_put(&mut self, name: &str, bytes: Bytes) -> Result<(), BusError> {
        let held: usize = self.objects.iter().filter(|(known, _)| *known != name).map(|(_, b)| b.len()).sum();
        if (held + bytes.len()) as u64 > self.objects_bytes {
            return Err(BusError::Full { what: "the object store".into() });
        }
        self.objects.insert(name.to_owned(), bytes);
        Ok(())
    }

    /// Does what is due by now; says whether anything was.
    pub(super) fn pass_time(&mut self, now: Millis) -> bool {
        let mut changed = false;
        for stream in self.streams.values_mut() {
            changed |= stream.pass_time(now);
        }
        changed
    }

    /// When time will bring something about.
    pub(super) fn next_event(&self) -> Option<Millis> {
        let streams = self.streams.values().filter_map(MemoryStream::next_event);
        streams.chain(self.queues.values().filter_map(MemoryQueue::next_event)).min()
    }
}

/// The subject that a source makes of another, if its filter matches.
fn transform(filter: &str, pattern: &str, subject: &str) -> Option<String> {
    if !matches(filter, subject) {
        return None;
    }
    let wild: Vec<&str> =
        filter.split('.').zip(subject.split('.')).filter(|(f, _)| *f == "*").map(|p| p.1).collect();
    let numbered = wild.iter().enumerate();
    Some(numbered.fold(pattern.to_owned(), |text, (n, token)| {
        text.replace(&format!("{{{{wildcard({})}}}}", n + 1), token)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_moves_the_wildcards() {
        let pattern = "task.{{wildcard(2)}}.{{wildcard(1)}}.{{wildcard(3)}}";
        let moved = transform("run.*.task.*.*", pattern, "run.R.task.worker.1-2");
        assert_eq!(moved.as_deref(), Some("task.worker.R.1-2"));
        assert_eq!(transform("run.*.task.*.*", pattern, "run.R.decided"), None);
    }
}
