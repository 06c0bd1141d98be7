//! Writing to streams: one message, or an atomic batch, with what the broker is to check.

use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{HeaderMap, Request, header};
use muster_shared::ids::Seq;
use serde::Deserialize;
use uuid::Uuid;

use super::{Nats, convert};
use crate::backend::{Appended, FENCE_FILTER, Fence, Message, WriteOptions};
use crate::error::{AppendError, BusError};

/// The fence does not hold.
const WRONG_LAST_SEQUENCE: [u32; 2] = [10071, 10164];
/// No room: the stream's limit, the account's, or the disk's.
const NO_ROOM: [u32; 3] = [10077, 10023, 10047];
/// The message is larger than the stream takes.
const TOO_LARGE: u32 = 10054;

pub(super) async fn append(
    nats: &Nats,
    stream: &'static str,
    messages: Vec<Message>,
    options: WriteOptions,
) -> Result<Appended, AppendError> {
    nats.link.check()?;
    let most = nats.client.max_payload();
    if let Some(message) = messages.iter().find(|message| message.payload.len() > most) {
        return Err(AppendError::TooLarge { bytes: message.payload.len(), most });
    }
    let limit = nats.settings.request_timeout;
    match nats.within("a write", limit, send(nats, stream, messages, &options, limit)).await {
        Ok(result) => result,
        Err(BusError::TimedOut { limit, .. }) => Err(AppendError::Ambiguous { limit }),
        Err(error) => Err(error.into()),
    }
}

/// Sends all messages; the last one asks for the answer, so a batch costs one round trip.
async fn send(
    nats: &Nats,
    stream: &'static str,
    messages: Vec<Message>,
    options: &WriteOptions,
    limit: Duration,
) -> Result<Appended, AppendError> {
    let count = messages.len();
    let batch = (count > 1).then(|| Uuid::now_v7().simple().to_string());
    for (at, message) in messages.into_iter().enumerate() {
        let (first, last) = (at == 0, at + 1 == count);
        let mut headers = convert::headers(&message.headers);
        if first {
            add_options(&mut headers, options);
        }
        if let Some(batch) = &batch {
            headers.insert(header::NATS_BATCH_ID, batch.as_str());
            headers.insert(header::NATS_BATCH_SEQUENCE, (at + 1).to_string());
        }
        if last {
            if batch.is_some() {
                headers.insert(header::NATS_BATCH_COMMIT, header::NATS_BATCH_COMMIT_FINAL);
            }
            let request = Request::new().headers(headers).payload(message.payload).timeout(None);
            return match nats.client.send_request(message.subject, request).await {
                Ok(answer) => appended(&answer.payload, stream, count as u64),
                Err(error) => Err(refused(nats, stream, error.kind(), &error.to_string(), limit).await),
            };
        }
        let sent = nats.client.publish_with_headers(message.subject, headers, message.payload).await;
        sent.map_err(|error| BusError::Other { what: "a write".into(), reason: error.to_string() })?;
    }
    Err(BusError::Other { what: "a write".into(), reason: "there is nothing to write".into() }.into())
}

fn add_options(headers: &mut HeaderMap, options: &WriteOptions) {
    if let Some(Fence { filter, after }) = &options.fence {
        headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string());
        headers.insert(FENCE_FILTER, filter.as_str());
    }
    if let Some(ttl) = options.ttl {
        headers.insert(header::NATS_MESSAGE_TTL, format!("{}s", ttl.as_secs().max(1)));
    }
    if let Some(name) = &options.dedup {
        headers.insert(header::NATS_MESSAGE_ID, name.as_str());
    }
}

#[derive(Deserialize)]
struct WriteReply {
    #[serde(default)]
    seq: u64,
    error: Option<Complaint>,
}

#[derive(Deserialize)]
struct Complaint {
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

/// What the server's answer to a write means.
fn appended(answer: &[u8], stream: &'static str, count: u64) -> Result<Appended, AppendError> {
    let other = |reason: String| AppendError::Bus(BusError::Other { what: "a write".into(), reason });
    let answer: WriteReply = serde_json::from_slice(answer).map_err(|error| other(error.to_string()))?;
    let Some(Complaint { err_code, description }) = answer.error else {
        let last = answer.seq;
        return Ok(Appended { first: Seq((last + 1).saturating_sub(count)), last: Seq(last) });
    };
    Err(match err_code {
        code if WRONG_LAST_SEQUENCE.contains(&code) => AppendError::Conflict,
        code if NO_ROOM.contains(&code) => {
            BusError::Full { what: format!("stream {stream} ({description})") }.into()
        }
        TOO_LARGE => {
            let most = muster_shared::wire::codec::MAX_MESSAGE_BYTES;
            BusError::TooLarge { what: "a message".into(), bytes: most + 1, most }.into()
        }
        _ => other(format!("{description} ({err_code})")),
    })
}

/// What it means that a write got no proper answer.
async fn refused(
    nats: &Nats,
    stream: &'static str,
    kind: RequestErrorKind,
    reason: &str,
    limit: Duration,
) -> AppendError {
    match kind {
        // Nobody takes the subject: the stream is missing, or its leader is away for a moment.
        RequestErrorKind::NoResponders => match nats.context.get_stream(stream).await {
            Err(error) if is_missing(&error) => {
                BusError::NotProvisioned { what: format!("stream {stream}") }.into()
            }
            Ok(_) | Err(_) => BusError::TimedOut { what: "a write".into(), limit }.into(),
        },
        RequestErrorKind::MaxPayloadExceeded => {
            let most = nats.client.max_payload();
            AppendError::TooLarge { bytes: most + 1, most }
        }
        // The connection broke in between.
        RequestErrorKind::TimedOut | RequestErrorKind::Other => AppendError::Ambiguous { limit },
        RequestErrorKind::InvalidSubject => {
            BusError::Other { what: "a write".into(), reason: reason.to_owned() }.into()
        }
    }
}

/// Whether the answer is that there is no such stream.
pub(super) fn is_missing(error: &async_nats::jetstream::context::GetStreamError) -> bool {
    use async_nats::jetstream::ErrorCode;
    use async_nats::jetstream::context::GetStreamErrorKind::JetStream;
    matches!(error.kind(), JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let done = appended(br#"{"stream":"RUNS","seq":12,"batch":"b","count":3}"#, "RUNS", 3).unwrap();
        assert_eq!(done, Appended { first: Seq(10), last: Seq(12) });
        let refusal = |code: u32| {
            let text = format!(r#"{{"error":{{"code":400,"err_code":{code},"description":"no"}}}}"#);
            appended(text.as_bytes(), "RUNS", 1).unwrap_err()
        };
        assert!(matches!(refusal(10071), AppendError::Conflict));
        assert!(matches!(refusal(10164), AppendError::Conflict));
        assert!(matches!(refusal(10077), AppendError::Bus(BusError::Full { .. })));
        assert!(matches!(refusal(1), AppendError::Bus(BusError::Other { .. })));
        assert!(appended(b"nonsense", "RUNS", 1).is_err());
    }
}
