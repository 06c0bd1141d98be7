//! Answers that are large are packed.

use std::io::Write;

use axum::body::{Body, HttpBody, to_bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::door::text;
use super::reply::Answer;

/// Smaller answers are not worth it.
const WORTH_IT: u64 = 2 * 1024;
/// Largest answer that is packed.
const LARGEST: usize = 256 * 1024 * 1024;

/// Whether whoever asks takes what is packed.
pub(crate) fn is_taken(headers: &HeaderMap) -> bool {
    let taken = text(headers, "accept-encoding").unwrap_or_default();
    taken.split(',').any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        name.trim().eq_ignore_ascii_case("gzip") && weight.trim() != "q=0"
    })
}

/// Packs bytes.
pub(crate) fn pack(bytes: &[u8], level: Compression) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), level);
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// An answer packed, where it is large and is JSON: what is streamed is not held up, and files are as they are.
pub(crate) async fn zipped(answer: Answer) -> Answer {
    let is_json = text(answer.headers(), "content-type") == Some("application/json");
    let is_large = answer.body().size_hint().exact().is_some_and(|bytes| bytes >= WORTH_IT);
    if !is_json || !is_large || answer.headers().contains_key(header::CONTENT_ENCODING) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let Ok(bytes) = to_bytes(body, LARGEST).await else {
        parts.status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
        return Answer::from_parts(parts, Body::empty());
    };
    let given = bytes.clone();
    let packed = tokio::task::spawn_blocking(move || pack(&given, Compression::fast())).await;
    match packed {
        Ok(Some(packed)) => {
            parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
            Answer::from_parts(parts, Body::from(packed))
        }
        Ok(None) | Err(_) => Answer::from_parts(parts, Body::from(bytes)),
    }
}
