//! Tells that a stream is missing from whatever else may be wrong.

use std::fmt::Display;
use std::future::IntoFuture;

use async_nats::jetstream::stream::{
    ConsumerCreateStrictError, ConsumerCreateStrictErrorKind, LastRawMessageError, LastRawMessageErrorKind,
};
use async_nats::jetstream::{self, ErrorCode};

use super::Nats;
use crate::error::BusError;

/// An error of a call about a stream.
pub(super) trait OfStream: Display {
    /// What JetStream answered, if it is its answer.
    fn answer(&self) -> Option<jetstream::Error>;

    /// Whether the answer is that there is no such stream.
    fn is_missing(&self) -> bool {
        self.answer().is_some_and(|answer| answer.error_code() == ErrorCode::STREAM_NOT_FOUND)
    }
}

impl OfStream for LastRawMessageError {
    fn answer(&self) -> Option<jetstream::Error> {
        if let LastRawMessageErrorKind::JetStream(answer) = self.kind() { Some(answer) } else { None }
    }
}

impl OfStream for ConsumerCreateStrictError {
    fn answer(&self) -> Option<jetstream::Error> {
        if let ConsumerCreateStrictErrorKind::JetStream(answer) = self.kind() { Some(answer) } else { None }
    }
}

/// Waits for the answer of a call about a stream, within the limit of requests.
///
/// # Errors
/// [`BusError::NotProvisioned`] when there is no such stream; else when the bus fails.
pub(super) async fn of_stream<T, E: OfStream>(
    nats: &Nats,
    what: &str,
    stream: &str,
    call: impl IntoFuture<Output = Result<T, E>, IntoFuture: Send> + Send,
) -> Result<T, BusError> {
    nats.link.check()?;
    nats.within(what, nats.settings.request_timeout, call.into_future()).await?.map_err(|error| {
        if error.is_missing() {
            BusError::NotProvisioned { what: format!("stream {stream}") }
        } else {
            BusError::Other { what: what.to_owned(), reason: error.to_string() }
        }
    })
}
