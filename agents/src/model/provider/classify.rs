//! From errors of transports, providers and genai to ours: what happened, whether time heals it, and what to do.

use std::error::Error as _;
use std::time::Duration;

use genai::webc::StreamTimeout;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::model::chat::{ModelError, ModelErrorKind};
use crate::model::target::{ModelProvider, ModelTarget};

/// Sorts an error of genai's.
pub(super) fn error(error: &genai::Error, target: &ModelTarget) -> ModelError {
    let (kind, message) = sort(error, target);
    ModelError::new(kind, target.name(), target.redact(&message))
}

/// Sorts what went wrong on the way.
pub(super) fn transport(error: &reqwest::Error, target: &ModelTarget) -> ModelError {
    let (kind, message) = from_reqwest(error, target);
    ModelError::new(kind, target.name(), target.redact(&message))
}

/// Sorts a refusal by its HTTP status.
pub(super) fn status(
    status: StatusCode,
    headers: &HeaderMap,
    body: &str,
    target: &ModelTarget,
) -> ModelError {
    let (kind, message) = from_status(status, headers, body, target);
    ModelError::new(kind, target.name(), target.redact(&message))
}

/// Sorts an error that the provider reports within a stream.
pub(super) fn reported(body: &Value, target: &ModelTarget) -> ModelError {
    let (kind, message) = from_error_event(body, target);
    ModelError::new(kind, target.name(), target.redact(&message))
}

fn sort(error: &genai::Error, target: &ModelTarget) -> (ModelErrorKind, String) {
    use genai::Error as E;
    match error {
        E::HttpError { status, body, headers, .. } => from_status(*status, headers, body, target),
        E::WebModelCall { webc_error, .. } | E::WebAdapterCall { webc_error, .. } => {
            from_web(webc_error, target)
        }
        E::WebStream { error, cause, .. } => {
            if let Some(inner) = error.downcast_ref::<genai::Error>() {
                sort(inner, target)
            } else if let Some(inner) = error.downcast_ref::<reqwest::Error>() {
                from_reqwest(inner, target)
            } else if let Some(inner) = error.downcast_ref::<StreamTimeout>() {
                (ModelErrorKind::Timeout, format!("{inner}: the server has fallen silent"))
            } else {
                (ModelErrorKind::BadAnswer, format!("the answer is garbage: {cause}"))
            }
        }
        E::ChatResponse { body, .. } => from_error_event(body, target),
        E::RequiresApiKey { .. } | E::NoAuthResolver { .. } | E::NoAuthData { .. } => {
            (ModelErrorKind::Unauthorized, key_advice(target))
        }
        E::ChatResponseGeneration { cause, .. } => {
            (ModelErrorKind::BadAnswer, format!("the answer is garbage: {cause}"))
        }
        E::StreamParse { serde_error, .. } => {
            (ModelErrorKind::BadAnswer, format!("the answer is garbage: {serde_error}"))
        }
        E::NoChatResponse { .. }
        | E::InvalidJsonResponseElement { .. }
        | E::JsonValueExt(_)
        | E::SerdeJson(_) => (ModelErrorKind::BadAnswer, format!("the answer is garbage: {error}")),
        other => (ModelErrorKind::BadRequest, other.to_string()),
    }
}

fn from_web(error: &genai::webc::Error, target: &ModelTarget) -> (ModelErrorKind, String) {
    use genai::webc::Error as E;
    match error {
        E::ResponseFailedStatus { status, body, headers } => from_status(*status, headers, body, target),
        E::Reqwest(error) => from_reqwest(error, target),
        E::ResponseFailedNotJson { content_type, body } => (
            ModelErrorKind::BadAnswer,
            format!("the server answered with {content_type:?} instead of JSON: {}", head(body)),
        ),
        E::ResponseFailedInvalidJson { cause, .. } => {
            (ModelErrorKind::BadAnswer, format!("the answer is garbage or cut off: {cause}"))
        }
        E::JsonValueExt(cause) => (ModelErrorKind::BadAnswer, format!("the answer is garbage: {cause}")),
    }
}

fn from_reqwest(error: &reqwest::Error, target: &ModelTarget) -> (ModelErrorKind, String) {
    let chain = causes(error);
    if error.is_timeout() {
        let kind = if error.is_connect() { ModelErrorKind::Unreachable } else { ModelErrorKind::Timeout };
        return (kind, format!("{target} did not answer in time: {chain}"));
    }
    if error.is_connect() {
        return (
            ModelErrorKind::Unreachable,
            format!(
                "cannot reach {target}: {chain}. Check the endpoint ({}) and that the server runs",
                advice_variable(target)
            ),
        );
    }
    if error.is_builder() {
        return (ModelErrorKind::BadRequest, format!("the request cannot be made: {chain}"));
    }
    (ModelErrorKind::BadAnswer, format!("the connection ended before the answer was whole: {chain}"))
}

/// Sorts an HTTP status, with the body's own words where they say more.
fn from_status(
    status: StatusCode,
    headers: &HeaderMap,
    body: &str,
    target: &ModelTarget,
) -> (ModelErrorKind, String) {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let said = parsed.as_ref().and_then(error_text).unwrap_or_else(|| head(body));
    let code = status.as_u16();
    let words = said_words(body);
    if is_used_up(&words) {
        return (
            ModelErrorKind::Unauthorized,
            format!("the account's quota is used up ({code}): add credit or choose another model. {said}"),
        );
    }
    if (400..500).contains(&code) && is_withheld(&words) {
        return (ModelErrorKind::Refused, super::convert::withheld(&said));
    }
    match code {
        429 => (
            ModelErrorKind::RateLimited { retry_after: retry_after(headers) },
            format!("too many requests (429): {said}"),
        ),
        401 | 403 => (
            ModelErrorKind::Unauthorized,
            format!("the provider refuses the key ({code}): {}. {said}", key_advice(target)),
        ),
        408 => (ModelErrorKind::Timeout, format!("the server gave up waiting (408): {said}")),
        500..=599 => (
            ModelErrorKind::Overloaded { retry_after: retry_after(headers) },
            format!("the server failed ({code}): {said}"),
        ),
        413 => (ModelErrorKind::ContextTooLong, too_long(&said)),
        400..=499 if is_too_long(&words) => (ModelErrorKind::ContextTooLong, too_long(&said)),
        404 => (ModelErrorKind::BadRequest, format!("not found (404): {said}. {}", missing_advice(target))),
        _ => (ModelErrorKind::BadRequest, format!("the server refuses the question ({code}): {said}")),
    }
}

/// Sorts an error that came as an event within a stream, where no status is left.
fn from_error_event(body: &Value, target: &ModelTarget) -> (ModelErrorKind, String) {
    let said = error_text(body).unwrap_or_else(|| head(&body.to_string()));
    let words = said_words(&body.to_string());
    let has = |part: &str| words.contains(part);
    let kind = if is_withheld(&words) {
        ModelErrorKind::Refused
    } else if is_used_up(&words) || has("authentication") || has("invalid_api_key") {
        ModelErrorKind::Unauthorized
    } else if has("rate_limit") || has("429") || has("too many requests") {
        ModelErrorKind::RateLimited { retry_after: None }
    } else if is_too_long(&words) {
        ModelErrorKind::ContextTooLong
    } else if has("invalid_request") {
        ModelErrorKind::BadRequest
    } else {
        ModelErrorKind::Overloaded { retry_after: None }
    };
    let advice = if kind == ModelErrorKind::Unauthorized {
        format!(": {}", key_advice(target))
    } else {
        String::new()
    };
    (kind, format!("the server reported an error while answering{advice}: {said}"))
}

fn said_words(body: &str) -> String {
    head(body).to_ascii_lowercase()
}

fn is_used_up(words: &str) -> bool {
    words.contains("insufficient_quota") || words.contains("credit balance is too low")
}

/// Providers that look at a question before a model sees it refuse it as a request.
fn is_withheld(words: &str) -> bool {
    ["content_filter", "content_policy_violation", "content management policy", "usage policies"]
        .iter()
        .any(|phrase| words.contains(phrase))
}

fn is_too_long(words: &str) -> bool {
    [
        "context_length_exceeded",
        "maximum context length",
        "context window",
        "context length",
        "prompt is too long",
        "input is too long",
        "exceeds the maximum number of tokens",
        "exceed_context_size",
    ]
    .iter()
    .any(|phrase| words.contains(phrase))
}

fn too_long(said: &str) -> String {
    format!(
        "the question is longer than the model's window: shorten it or choose a model with a larger one. {said}"
    )
}

fn key_advice(target: &ModelTarget) -> String {
    match target.provider.key_variables().first() {
        Some(name) => format!("set {name} to a valid key"),
        None => "check the server's access rules".to_owned(),
    }
}

fn missing_advice(target: &ModelTarget) -> String {
    match target.provider {
        ModelProvider::Ollama => format!("Try: ollama pull {}", target.model),
        ModelProvider::OpenAi | ModelProvider::Anthropic | ModelProvider::Gemini | ModelProvider::Offline => {
            format!("Check the model name ({}) and the endpoint ({})", target.model, advice_variable(target))
        }
    }
}

fn advice_variable(target: &ModelTarget) -> &'static str {
    target.provider.endpoint_variables().first().copied().unwrap_or("the endpoint setting")
}

/// The readable part of an error body: `error.message` in most protocols, `error` in Ollama's.
fn error_text(body: &Value) -> Option<String> {
    ["/error/message", "/message", "/error", "/detail", "/0/error/message"]
        .iter()
        .find_map(|path| body.pointer(path).and_then(Value::as_str))
        .map(head)
}

/// The beginning of a text, in one line.
fn head(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(400).collect()
}

/// How long the provider asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = text("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    // The server's own clock is the one the date is meant by.
    let now =
        text("date").and_then(|date| jiff::fmt::rfc2822::parse(date).ok()).map(|date| date.timestamp())?;
    Duration::try_from(until.duration_since(now)).ok()
}

fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn retry_after_in_all_its_forms() {
        type StepContext = (&'static [(&'static str, &'static str)], Option<f64>);
        const DATE: &str = "Wed, 21 Oct 2026 07:28:00 GMT";
        const LATER: &str = "Wed, 21 Oct 2026 07:28:09 GMT";
        let cases: &[StepContext] = &[
            (&[], None),
            (&[("retry-after", "3")], Some(3.0)),
            (&[("retry-after", " 0.5 ")], Some(0.5)),
            (&[("retry-after", "-3")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "3"), ("retry-after-ms", "250")], Some(0.25)),
            (&[("retry-after", LATER), ("date", DATE)], Some(9.0)),
            (&[("retry-after", DATE), ("date", LATER)], None),
        ];
        for (given, expected) in cases {
            let got = retry_after(&headers(given));
            assert_eq!(got, expected.map(Duration::from_secs_f64), "{given:?}");
        }
    }

    #[test]
    fn statuses_and_bodies_are_told_apart() {
        let target =
            ModelTarget { provider: ModelProvider::OpenAi, model: "m".into(), endpoint: None, key: None };
        let kind = |status: u16, body: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            from_status(status, &HeaderMap::new(), body, &target).0.name()
        };
        assert_eq!(kind(429, "slow down"), "rate_limited");
        assert_eq!(kind(429, r#"{"error":{"code":"insufficient_quota","message":"x"}}"#), "unauthorized");
        assert_eq!(kind(401, "{}"), "unauthorized");
        assert_eq!(kind(500, "<html>"), "overloaded");
        assert_eq!(kind(529, "{}"), "overloaded");
        assert_eq!(
            kind(400, r#"{"error":{"message":"This model's maximum context length is 8192"}}"#),
            "context_too_long"
        );
        assert_eq!(kind(413, ""), "context_too_long");
        assert_eq!(kind(422, "nope"), "bad_request");
        assert_eq!(kind(400, r#"{"error":{"code":"content_filter","message":"x"}}"#), "refused");
        assert_eq!(kind(302, "elsewhere"), "bad_request");
        let (_, text) = from_status(StatusCode::UNAUTHORIZED, &HeaderMap::new(), "", &target);
        assert!(text.contains("set OPENAI_API_KEY"), "{text}");
    }
}
