//! One request and its answer, within limits of time and size.

use std::error::Error;

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap};
use reqwest::{Client, Method, Response};
use url::Url;

use crate::guard::Refused;
use crate::guard::resolver::AddressRefused;

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
}

impl Question {
    pub(crate) fn get(url: Url) -> Self {
        Self { method: Method::GET, url, headers: HeaderMap::new(), body: None }
    }
}

/// What was answered. The body is unpacked.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether there was more of the body than is read.
    pub(crate) cut: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// The address may not be connected to.
    #[error("{0}")]
    Refused(Refused),
    /// Nothing was sent, because nobody could be connected to.
    #[error("no connection could be made: {0}")]
    NotConnected(String),
    /// Who answers is not who is meant.
    #[error("its certificate is not trusted: {0}")]
    Certificate(String),
    /// The answer is larger than what is read.
    #[error("it is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The body is packed in a way that nobody asked for.
    #[error("its body is packed as {0}, which was not asked for and is not unpacked")]
    Packed(String),
    /// The answer broke off, or is none.
    #[error("its answer is broken: {0}")]
    Broken(String),
    /// It took too long.
    #[error("it did not answer in time")]
    TimedOut,
}

/// Which bodies are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bodies {
    /// All.
    All,
    /// Not those of redirects, which nobody looks at.
    NotOfRedirects,
}

/// What becomes of a body that is larger than what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// There is no answer.
    Refused,
    /// What is too much is not read.
    LeftOut,
}

/// Limits on an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerLimits {
    /// Largest body, unpacked, in bytes.
    pub(crate) max_bytes: u64,
    pub(crate) bodies: Bodies,
    pub(crate) beyond: Beyond,
}

/// Sends a question and reads the answer.
pub(crate) async fn exchange(
    client: &Client,
    question: Question,
    limits: AnswerLimits,
) -> Result<Answer, NoAnswer> {
    let Question { method, url, headers, body } = question;
    let request = client.request(method, url).headers(headers);
    let request = match body {
        Some(body) => request.body(body),
        None => request,
    };
    let response = request.send().await.map_err(|error| cause(&error))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let skips = limits.bodies == Bodies::NotOfRedirects && status.is_redirection();
    let (body, cut) = if skips { (Bytes::new(), false) } else { body_of(response, limits).await? };
    Ok(Answer { status: status.as_u16(), headers, body, cut })
}

/// The body, and whether there was more of it.
async fn body_of(mut response: Response, limits: AnswerLimits) -> Result<(Bytes, bool), NoAnswer> {
    let (limit, refuses) = (limits.max_bytes, limits.beyond == Beyond::Refused);
    // What the client unpacks has lost this header.
    if let Some(packed) = response.headers().get(CONTENT_ENCODING) {
        let packed = String::from_utf8_lossy(packed.as_bytes()).trim().to_lowercase();
        if !packed.is_empty() && packed != "identity" {
            return Err(NoAnswer::Packed(muster_shared::text::beginning(&packed, 40)));
        }
    }
    let announced =
        response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if refuses && announced.is_some_and(|length| length > limit) {
        return Err(NoAnswer::TooLarge { limit });
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| cause(&error))? {
        let room = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(body.len());
        if chunk.len() > room {
            if refuses {
                return Err(NoAnswer::TooLarge { limit });
            }
            body.extend_from_slice(&chunk[..room]);
            return Ok((body.freeze(), true));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body.freeze(), false))
}

/// What went wrong, found among the causes of the client's error. Its own words are not used: they repeat the URL.
fn cause(error: &reqwest::Error) -> NoAnswer {
    let mut causes = Vec::new();
    let mut next: Option<&(dyn Error + 'static)> = error.source();
    while let Some(cause) = next.filter(|_| causes.len() < 16) {
        if let Some(AddressRefused(refused)) = cause.downcast_ref::<AddressRefused>() {
            return NoAnswer::Refused(refused.clone());
        }
        causes.push(cause);
        next = cause.source();
    }
    let innermost = causes.last().map_or_else(|| "nothing is known of it".to_owned(), ToString::to_string);
    let innermost = muster_shared::text::one_line(&innermost, 200);
    if causes.iter().any(|cause| cause.is::<rustls::Error>()) || innermost.contains("certificate") {
        return NoAnswer::Certificate(innermost);
    }
    if error.is_connect() {
        NoAnswer::NotConnected(if error.is_timeout() { "it took too long".to_owned() } else { innermost })
    } else if error.is_timeout() {
        NoAnswer::TimedOut
    } else {
        NoAnswer::Broken(innermost)
    }
}
