//! A batch of spans is sent to a receiver, over HTTP.

use std::time::Duration;

use muster_shared::text::one_line;
use muster_shared::traces::{Span, otlp};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode};

use super::OtlpSettings;
use crate::redaction::redacted;

/// Longest time of a request.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait that a receiver may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// How much is told of what a receiver answers, in characters.
const TOLD: usize = 200;

/// Most of an answer that is read, in bytes.
const MOST_READ: usize = 64 * 1024;

/// Why a batch was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SendError {
    /// In words.
    pub(crate) reason: String,
    /// Whether it may be taken later.
    pub(crate) is_transient: bool,
    /// How long the receiver wants to be left alone.
    pub(crate) after: Option<Duration>,
}

/// Sends spans to one receiver.
pub(crate) struct Sender {
    client: Client,
    settings: OtlpSettings,
    headers: HeaderMap,
}

impl Sender {
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// A header is not valid.
    pub(crate) fn new(settings: OtlpSettings) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let key = HeaderName::try_from(name.as_str())
                .map_err(|_| "OTEL_EXPORTER_OTLP_HEADERS names a header that is none".to_owned())?;
            let mut value = HeaderValue::try_from(value.as_str())
                .map_err(|_| format!("what OTEL_EXPORTER_OTLP_HEADERS says of {key} cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        Ok(Self { client: client()?, settings, headers })
    }

    /// What was set.
    pub(crate) const fn settings(&self) -> &OtlpSettings {
        &self.settings
    }

    /// Sends spans. Those that a receiver did not take though it took others are told in its words.
    ///
    /// # Errors
    /// See [`SendError`].
    pub(crate) async fn send(&self, spans: &[Span]) -> Result<Option<otlp::Refusal>, SendError> {
        let spans: Vec<Span> = spans.iter().map(|span| span.clone().with_texts(redacted)).collect();
        let body = otlp::protobuf(&spans, &self.settings.resource);
        let request = self.client.post(&self.settings.endpoint).headers(self.headers.clone()).body(body);
        let answer = request.send().await.map_err(|error| SendError {
            reason: told(&error),
            is_transient: true,
            after: None,
        })?;
        let status = answer.status();
        if status.is_success() {
            let body = answer.bytes().await.unwrap_or_default();
            return Ok((body.len() <= MOST_READ).then(|| otlp::refused(&body)).flatten());
        }
        let after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let after = after.map(|seconds| Duration::from_secs(seconds).min(LONGEST_WAIT));
        let is_transient = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        let hint = if status.is_redirection() { ": give the address that it is at" } else { "" };
        Err(SendError { reason: format!("the receiver answers {status}{hint}"), is_transient, after })
    }
}

/// Why it could not be reached, without the address: a password may stand in it.
fn told(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "the receiver did not answer in time".to_owned();
    }
    let mut source = std::error::Error::source(error);
    let mut last = None;
    while let Some(error) = source {
        last = Some(error.to_string());
        source = error.source();
    }
    let why = last.map_or_else(String::new, |why| format!(": {}", one_line(&why, TOLD)));
    format!("the receiver cannot be reached{why}")
}

fn client() -> Result<Client, String> {
    let build = || {
        Client::builder()
            .timeout(TIMEOUT)
            // A redirect would send the headers and the spans to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")))
    };
    // Without system certificates, the client cannot be built, although http needs none.
    let built = build().build().or_else(|_| build().tls_certs_only([]).build());
    built.map_err(|error| error.to_string())
}
