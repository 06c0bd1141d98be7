//! Sealing and opening messages: envelope, encoding, redaction, spill to the object store, headers.

use bytes::Bytes;
use muster_shared::ids::{AgentId, Attempt, RunId, TaskId};
use muster_shared::time::Millis;
use muster_shared::traces::{ParentSpan, root_span};
use muster_shared::wire::codec::{Coded, MAX_MESSAGE_BYTES, decode_unbounded};
use muster_shared::wire::envelope::{INLINE_LIMIT, WIRE_VERSION};
use muster_shared::wire::{Body, Encoding, Envelope, MessageKind, StoredBody, TraceContext, decode, encode};
use uuid::Uuid;

use crate::backend::{Headers, Message};
use crate::bus::{Core, now};
use crate::error::{AppendError, BusError};

pub(crate) const CONTENT_TYPE: &str = "Content-Type";
const TRACE_PARENT: &str = "traceparent";
const TYPE: &str = "Muster-Type";
const VERSION: &str = "Muster-Version";

/// What an envelope says besides its body.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub(crate) run: Option<RunId>,
    pub(crate) task: Option<TaskId>,
    pub(crate) receiver: Option<AgentId>,
    pub(crate) expires: Option<Millis>,
    pub(crate) correlation: Option<Uuid>,
    pub(crate) attempt: Option<Attempt>,
    /// The trace it belongs to, where that is none of the run's own.
    pub(crate) trace: Option<TraceContext>,
}

impl About {
    pub(crate) fn run(run: RunId) -> Self {
        Self { run: Some(run), ..Self::default() }
    }

    pub(crate) fn task(run: RunId, task: &TaskId) -> Self {
        Self { run: Some(run), task: Some(task.clone()), ..Self::default() }
    }
}

impl Core {
    /// Makes a message of a body: the one way by which anything of ours gets onto the bus.
    pub(crate) async fn seal(
        &self,
        subject: String,
        body: Body,
        about: About,
        encoding: Encoding,
    ) -> Result<Message, AppendError> {
        self.seal_as(Uuid::now_v7(), subject, body, about, encoding).await
    }

    /// The same under an id of the caller's choice.
    pub(crate) async fn seal_as(
        &self,
        id: Uuid,
        subject: String,
        body: Body,
        about: About,
        encoding: Encoding,
    ) -> Result<Message, AppendError> {
        let kind = body.kind();
        // It travels in the header alone.
        let trace = about.trace.or_else(|| self.trace.clone()).or_else(|| about.run.map(trace_of));
        let mut envelope = Envelope {
            v: WIRE_VERSION,
            id,
            sender: self.who.clone(),
            receiver: about.receiver,
            sent: now(),
            expires: about.expires,
            correlation: about.correlation,
            run: about.run,
            task: about.task,
            attempt: about.attempt,
            trace: None,
            body,
        };
        let mut bytes = self.redacted(encode_any(&envelope, encoding)?, encoding)?;
        if bytes.len() > INLINE_LIMIT {
            envelope.body = Body::Stored(self.spill(&envelope.body, kind, encoding).await?);
            bytes = self.redacted(encode_any(&envelope, encoding)?, encoding)?;
        }
        let most = self.backend.max_payload().min(MAX_MESSAGE_BYTES);
        if bytes.len() > most {
            return Err(AppendError::TooLarge { bytes: bytes.len(), most });
        }
        let headers = headers(kind, encoding, trace.as_ref());
        Ok(Message { subject, headers, payload: bytes.into() })
    }

    /// Puts a large body into the object store, under its hash.
    async fn spill(
        &self,
        body: &Body,
        kind: MessageKind,
        encoding: Encoding,
    ) -> Result<StoredBody, AppendError> {
        let bytes = self.redacted(encode_any(body, encoding)?, encoding)?;
        let most = self.settings.object_limit;
        if bytes.len() > most {
            return Err(AppendError::TooLarge { bytes: bytes.len(), most });
        }
        let length = bytes.len() as u64;
        let hash = crate::store::hash(&bytes);
        self.backend.object_put(&hash, bytes.into()).await?;
        Ok(StoredBody { kind, hash, bytes: length })
    }

    /// The redaction gate: everything that is published or stored as a message passes here, once encoded.
    fn redacted(&self, bytes: Vec<u8>, encoding: Encoding) -> Result<Vec<u8>, BusError> {
        if !self.redactor.hits(&bytes) {
            return Ok(bytes);
        }
        let mut value: serde_json::Value = decode_unbounded(&bytes, encoding)?;
        self.redactor.redact_value(&mut value);
        encode_any(&value, encoding)
    }

    /// Opens a message and fetches its body from the object store where it lies there.
    ///
    /// # Errors
    /// The inner error says in words why the message is of no use to anybody; the outer one that the bus failed.
    pub(crate) async fn open(&self, message: &Message) -> Result<Result<Envelope, String>, BusError> {
        let mut envelope = match open_inline(message) {
            Ok(envelope) => envelope,
            Err(reason) => return Ok(Err(reason)),
        };
        let Body::Stored(stored) = &envelope.body else { return Ok(Ok(envelope)) };
        let bytes = match self.backend.object_get(&stored.hash, self.settings.object_limit).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Err(format!("its body, object {}, is not in the store", stored.hash))),
            Err(error @ BusError::TooLarge { .. }) => return Ok(Err(error.to_string())),
            Err(error) => return Err(error),
        };
        Ok(match unspill(stored, &bytes, encoding_of(message)) {
            Ok(body) => {
                envelope.body = body;
                Ok(envelope)
            }
            Err(reason) => Err(reason),
        })
    }
}

/// Opens a message as it is: a body in the object store stays a reference.
pub(crate) fn open_inline(message: &Message) -> Result<Envelope, String> {
    let encoding = encoding_of(message);
    let envelope: Envelope = decode(&message.payload, encoding).map_err(|error| error.to_string())?;
    if envelope.v > WIRE_VERSION {
        return Err(format!("it has version {}, this build knows {WIRE_VERSION}", envelope.v));
    }
    Ok(envelope)
}

fn unspill(stored: &StoredBody, bytes: &Bytes, encoding: Encoding) -> Result<Body, String> {
    if crate::store::hash(bytes) != stored.hash {
        return Err(format!("object {} does not have the content its name promises", stored.hash));
    }
    let body: Body = decode_unbounded(bytes, encoding).map_err(|error| error.to_string())?;
    if body.kind() != stored.kind || matches!(body, Body::Stored(_)) {
        return Err(format!("object {} holds {:?}, not {:?}", stored.hash, body.kind(), stored.kind));
    }
    Ok(body)
}

pub(crate) fn encoding_of(message: &Message) -> Encoding {
    Encoding::of(message.headers.get(CONTENT_TYPE), &message.payload)
}

fn encode_any<T: Coded>(value: &T, encoding: Encoding) -> Result<Vec<u8>, BusError> {
    Ok(encode(value, encoding)?)
}

fn headers(kind: MessageKind, encoding: Encoding, trace: Option<&TraceContext>) -> Headers {
    let mut headers = Headers::default();
    headers.add(CONTENT_TYPE, encoding.content_type());
    headers.add(TYPE, kind.name());
    headers.add(VERSION, &WIRE_VERSION.to_string());
    if let Some(trace) = trace {
        headers.add(TRACE_PARENT, &trace.0);
    }
    headers
}

/// Without a trace of its caller, a message belongs to the trace of its run: the run's id is the trace id. What whoever gets
/// it does stands below the run.
fn trace_of(run: RunId) -> TraceContext {
    ParentSpan { trace: run.into(), span: root_span(run), is_sampled: true }.written()
}

/// The trace context a message came with.
pub(crate) fn trace_in(message: &Message, envelope: &Envelope) -> Option<TraceContext> {
    envelope
        .trace
        .clone()
        .or_else(|| message.headers.get(TRACE_PARENT).map(|text| TraceContext(text.to_owned())))
}
