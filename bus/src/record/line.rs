//! A message of the record as it goes into a file and comes out of one, with all that was stored of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use muster_shared::ids::{RunId, Seq};
use muster_shared::time::Millis;
use muster_shared::wire::Body;
use serde::{Deserialize, Serialize};

use super::chain::kept;
use super::{KeptMessage, Record};
use crate::backend::{Headers, Message, Stored};
use crate::error::BusError;
use crate::seal::open_inline;

/// A message of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordLine {
    /// Its place in the record that it was written to. Entries name each other by places, and the hash chain covers them: they
    /// are the same wherever the run is read.
    pub seq: Seq,
    /// When the broker stored it.
    pub at: Millis,
    /// Its subject, without the number of a part.
    pub subject: String,
    /// Its headers, in order: links, signatures, how its bytes are written.
    pub headers: Vec<(String, String)>,
    /// Its bytes, in base64.
    pub payload: String,
}

impl RecordLine {
    fn of(stored: &Stored) -> Self {
        let Stored { seq, at, message } = stored;
        Self {
            seq: *seq,
            at: *at,
            subject: message.subject.clone(),
            headers: message.headers.0.clone(),
            payload: STANDARD.encode(&message.payload),
        }
    }

    /// The run that its subject names; nothing where it is no subject of the record.
    #[must_use]
    pub fn run(&self) -> Option<RunId> {
        let mut tokens = self.subject.split('.');
        match (tokens.next(), tokens.next(), tokens.next()) {
            (Some("run" | "evt"), Some(run), Some(_)) => run.parse().ok(),
            _ => None,
        }
    }

    /// The message, as an audit reads it.
    ///
    /// # Errors
    /// Says why its bytes are none.
    pub fn to_kept(&self) -> Result<KeptMessage, String> {
        self.to_stored().map(kept)
    }

    /// The object that holds its body, where that lies apart from it.
    #[must_use]
    pub fn body_apart(&self) -> Option<String> {
        let envelope = open_inline(&self.to_stored().ok()?.message).ok()?;
        let Body::Stored(stored) = envelope.body else { return None };
        Some(stored.hash)
    }

    pub(crate) fn to_stored(&self) -> Result<Stored, String> {
        let payload: Bytes = STANDARD.decode(&self.payload).map_err(|error| error.to_string())?.into();
        let (subject, headers) = (self.subject.clone(), Headers(self.headers.clone()));
        Ok(Stored { seq: self.seq, at: self.at, message: Message { subject, headers, payload } })
    }
}

impl Record {
    /// All messages of a run with all that was stored of them, to be written to a file.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn lines(&self, run: RunId) -> Result<Vec<RecordLine>, BusError> {
        Ok(self.stored(run).await?.iter().map(RecordLine::of).collect())
    }
}
