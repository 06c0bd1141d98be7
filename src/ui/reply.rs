//! What is answered: JSON, and errors that say what to do.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use miette::Diagnostic;
use muster_bus::BusError;
use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::redaction::redacted_json;

/// An answer.
pub(crate) type Answer = Response<Body>;

/// An answer, or why there is none.
pub(crate) type Reply = Result<Answer, Problem>;

/// Why a request is not answered as it was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// How it stands in HTTP.
    pub(crate) status: StatusCode,
    /// What is wrong.
    pub(crate) error: String,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

impl Problem {
    /// One without help.
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into(), help: None }
    }

    /// The request cannot be understood.
    pub(crate) fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// There is no such thing.
    pub(crate) fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// Whoever asks may not do it.
    pub(crate) fn forbidden(error: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, error)
    }

    /// It cannot be done as things stand.
    pub(crate) fn conflict(error: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, error)
    }

    /// Adds what to do about it.
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The same, where what was asked for is no such thing rather than wrong.
    pub(crate) fn or_not_found(self) -> Self {
        match self.status {
            StatusCode::BAD_REQUEST => Self { status: StatusCode::NOT_FOUND, ..self },
            _ => self,
        }
    }
}

impl From<BusError> for Problem {
    fn from(error: BusError) -> Self {
        Failure::from(error).into()
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let status = match failure.exit() {
            Exit::Usage => StatusCode::BAD_REQUEST,
            Exit::BusUnreachable => StatusCode::SERVICE_UNAVAILABLE,
            Exit::Refused => StatusCode::TOO_MANY_REQUESTS,
            Exit::Failed | Exit::Stopped | Exit::InPart | Exit::Unmet | Exit::Completed => {
                StatusCode::CONFLICT
            }
        };
        Self {
            status,
            error: failure.to_string(),
            help: Diagnostic::help(&failure).map(|help| help.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Answer {
        let mut told = json!({ "error": self.error, "status": self.status.as_u16() });
        if let Some(help) = self.help {
            told["help"] = json!(help);
        }
        let told = redacted_json(told.to_string(), serde_json::to_string);
        of_bytes(self.status, "application/json", told.into_bytes())
    }
}

/// A value as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> Reply {
    written(&value)
}

/// Once for all types: what is generic is compiled again for each.
fn written(value: &dyn erased_serde::Serialize) -> Reply {
    let text = serde_json::to_string(value).map_err(|error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the answer cannot be written: {error}"))
    })?;
    let text = redacted_json(text, serde_json::to_string);
    Ok(of_bytes(StatusCode::OK, "application/json", text.into_bytes()))
}

/// That something was done, with nothing to tell.
pub(crate) fn done() -> Reply {
    json(&Value::Object(serde_json::Map::new()))
}

/// Bytes of a kind.
pub(crate) fn of_bytes(status: StatusCode, kind: &'static str, bytes: Vec<u8>) -> Answer {
    let mut answer = Response::new(Body::from(bytes));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What programs of others write to the bus has passed no redactor of ours.
    #[tokio::test]
    async fn each_exit_leaves_secrets_out() {
        use muster_shared::traces::{Span, SpanId, SpanKind, TraceId, Value as Said};
        const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ456789";
        let (value, secret) = (json!({ "list": [SECRET] }), || SECRET.to_owned());
        let span = Span {
            trace: TraceId(1),
            id: SpanId(1),
            parent: None,
            name: secret(),
            kind: SpanKind::Internal,
            start: muster_shared::time::Millis(0),
            end: muster_shared::time::Millis(0),
            attributes: vec![("text", Said::Text(secret())), ("texts", Said::Texts(vec![secret()]))],
            links: Vec::new(),
            error: Some(secret()),
        };
        let body = async |answer: Answer| {
            let bytes = axum::body::to_bytes(answer.into_body(), 1000).await.unwrap();
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        for (exit, text) in [
            ("error", format!("{:?}", Failure::usage(SECRET).help(SECRET))),
            ("JSON and webhook", redacted_json(value.to_string(), serde_json::to_string_pretty)),
            ("report", crate::render::safe::report(SECRET)),
            ("span", format!("{:?}", span.with_texts(crate::redaction::redacted))),
            ("dashboard", body(json(&value).unwrap()).await),
            ("error of the dashboard", body(Problem::bad(SECRET).into_response()).await),
            ("live update", super::super::watcher::Told::new("one", &value).data.to_string()),
        ] {
            assert!(!text.contains(SECRET) && text.contains("[redacted]"), "{exit}: {text}");
        }
    }

    #[test]
    fn failures_of_commands_become_statuses_and_keep_their_help() {
        for (exit, status) in [
            (Exit::Usage, 400),
            (Exit::Failed, 409),
            (Exit::BusUnreachable, 503),
            (Exit::Refused, 429),
            (Exit::Stopped, 409),
        ] {
            let problem = Problem::from(Failure::new(exit, "it is wrong").help("mend it"));
            assert_eq!(problem.status.as_u16(), status, "{exit:?}");
            assert_eq!((problem.error.as_str(), problem.help.as_deref()), ("it is wrong", Some("mend it")));
        }
        let missing = Problem::from(Failure::usage("no such run")).or_not_found();
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
    }
}
