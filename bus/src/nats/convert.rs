//! Between our messages and the client's.

use async_nats::HeaderMap;
use async_nats::jetstream;
use muster_shared::ids::Seq;
use muster_shared::time::Millis;

use crate::backend::{Headers, Incoming, Message, Stored};

pub(super) fn headers(headers: &Headers) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in &headers.0 {
        map.insert(name.as_str(), value.as_str());
    }
    map
}

fn our_headers(map: Option<&HeaderMap>) -> Headers {
    let mut headers = Headers::default();
    for (name, values) in map.into_iter().flat_map(HeaderMap::iter) {
        if let Some(value) = values.first() {
            headers.0.push((name.to_string(), value.to_string()));
        }
    }
    headers
}

pub(super) fn message(message: async_nats::Message) -> Message {
    let headers = our_headers(message.headers.as_ref());
    Message { subject: message.subject.to_string(), headers, payload: message.payload }
}

pub(super) fn incoming(mut incoming: async_nats::Message) -> Incoming {
    let reply = incoming.reply.take().map(|reply| reply.to_string());
    Incoming { message: message(incoming), reply }
}

pub(super) fn raw(message: jetstream::message::StreamMessage) -> Stored {
    let headers = our_headers(Some(&message.headers));
    Stored {
        seq: Seq(message.sequence),
        at: millis(message.time.unix_timestamp_nanos()),
        message: Message { subject: message.subject.to_string(), headers, payload: message.payload },
    }
}

/// A consumer's message: its place and time stand in its reply subject.
pub(super) struct Delivered {
    pub(super) stored: Stored,
    pub(super) delivered: u64,
    /// Counts what the consumer gave out, without gaps.
    pub(super) consumer_seq: u64,
    pub(super) ack: String,
}

pub(super) fn delivered(from: jetstream::Message) -> Result<Delivered, String> {
    let info = from.info().map_err(|error| error.to_string())?;
    let (seq, at) = (Seq(info.stream_sequence), millis(info.published.unix_timestamp_nanos()));
    let (consumer_seq, delivered) = (info.consumer_sequence, u64::try_from(info.delivered).unwrap_or(1));
    let ack = from.message.reply.as_ref().map(ToString::to_string).unwrap_or_default();
    Ok(Delivered { stored: Stored { seq, at, message: message(from.message) }, delivered, consumer_seq, ack })
}

fn millis(nanos: i128) -> Millis {
    Millis(u64::try_from(nanos / 1_000_000).unwrap_or(0))
}
