//! From a socket to a scripted reply.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State as AxumState};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::serve::ListenerExt;
use futures::stream;
use serde_json::{Value, json};

use super::log::Log;
use super::protocol::{Protocol, Rendered, Route};
use super::reply::{Fault, Reply};
use super::request::{self, CapturedRequest};
use super::script::Script;

/// The longest request read, in bytes.
const MAX_REQUEST: usize = 64 << 20;

pub(super) struct State {
    pub(super) log: Log,
    script: Script,
}

impl State {
    pub(super) fn new(script: Script) -> Self {
        Self { log: Log::new(script.keep), script }
    }
}

/// Serves until told to stop.
pub(super) async fn run(
    listener: std::net::TcpListener,
    state: Arc<State>,
    stopped: tokio::sync::oneshot::Receiver<()>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let listener = listener.tap_io(|socket| {
        // Without it, small replies wait for the asker's acknowledgement.
        let _ = socket.set_nodelay(true);
    });
    let app = Router::new().fallback(answer).with_state(state);
    tokio::select! {
        _ = stopped => {}
        _ = async { axum::serve(listener, app).await } => {}
    }
}

async fn answer(AxumState(state): AxumState<Arc<State>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    if head.method == Method::GET && path.ends_with("/models") {
        let list =
            json!({"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "tests"}]});
        return respond(StatusCode::OK, "application/json", list.to_string());
    }
    if head.method == Method::GET && path.ends_with("/api/tags") {
        return respond(
            StatusCode::OK,
            "application/json",
            json!({"models": [{"name": "scripted"}]}).to_string(),
        );
    }
    let Some(route) = Route::find(&head.method, &path) else {
        return respond(StatusCode::NOT_FOUND, "application/json", error_body("not_found", "no such path"));
    };
    let Ok(bytes) = axum::body::to_bytes(body, MAX_REQUEST).await else {
        return respond(
            StatusCode::BAD_REQUEST,
            "application/json",
            error_body("invalid_request_error", "bad body"),
        );
    };
    let captured = Arc::new(capture(&state.log, &route, &head.headers, &bytes));
    state.log.note(&captured);
    if !captured.violations.is_empty() {
        let text = captured.violations.join("; ");
        return respond(
            StatusCode::BAD_REQUEST,
            "application/json",
            error_body("invalid_request_error", &text),
        );
    }
    if let Some(Err(wait)) = state.script.limit.as_ref().map(super::limit::RateLimit::take) {
        state.log.note_refused();
        // Whole seconds, as providers say it.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        return send(state, &captured, &Reply::status(429, Some(&seconds.to_string()))).await;
    }
    let Some(reply) = state.script.reply(&captured) else {
        let text =
            format!("request {}: no rule of the script fits: {:.200}", captured.number, captured.last_text());
        state.log.note_violation(text.clone());
        return respond(
            StatusCode::BAD_REQUEST,
            "application/json",
            error_body("invalid_request_error", &text),
        );
    };
    let delay = reply.delay.unwrap_or(state.script.delay);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    send(state, &captured, &reply).await
}

fn capture(log: &Log, route: &Route, headers: &HeaderMap, bytes: &Bytes) -> CapturedRequest {
    let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let mut seen = route.read(&body);
    let number = log.next_number();
    if body.is_null() {
        seen.violations.push("the body is no JSON".to_owned());
    } else {
        seen.violations.extend(request::check(&seen.messages, &seen.tools));
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let key = text("authorization")
        .and_then(|value| value.strip_prefix("Bearer "))
        .or_else(|| text("x-api-key"))
        .or_else(|| text("x-goog-api-key"))
        .map(str::to_owned);
    CapturedRequest {
        number,
        at: log.now(),
        protocol: route.protocol,
        model: seen.model,
        stream: seen.stream,
        key,
        messages: seen.messages,
        tools: seen.tools,
        body,
        violations: seen.violations,
    }
}

/// Sends a reply, whole, streamed or broken.
async fn send(state: Arc<State>, captured: &CapturedRequest, reply: &Reply) -> Response {
    let streamed = captured.stream && !matches!(reply.fault, Some(Fault::NotStreamed));
    let rendered = captured.protocol.render(reply, captured, streamed);
    match &reply.fault {
        None | Some(Fault::NotStreamed) => {
            state.log.note_completed(captured.number);
            respond(StatusCode::OK, rendered.content_type, rendered.parts.concat())
        }
        Some(Fault::Status { code, retry_after, body }) => {
            status(*code, retry_after.as_deref(), body.as_deref())
        }
        Some(Fault::Garbage) => {
            respond(StatusCode::OK, "application/json", vec![0x7b, 0xff, 0xfe, 0x00, 0x93, 0x21])
        }
        Some(Fault::Empty) => respond(StatusCode::OK, rendered.content_type, ""),
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::HalfBody) => half(&rendered, true),
        Some(Fault::Stall) => half(&rendered, false),
        Some(Fault::Slow(wait)) => slow(state, captured.number, rendered, *wait),
        Some(Fault::ErrorEvent { kind }) => {
            let event = captured.protocol.error_event(kind);
            respond(StatusCode::OK, rendered.content_type, event)
        }
        Some(Fault::NoEndMark) => {
            let kept = rendered.parts.len().saturating_sub(captured.protocol.end_marks());
            respond(StatusCode::OK, rendered.content_type, rendered.parts[..kept].concat())
        }
        Some(Fault::HalfThenEnd) => respond(StatusCode::OK, rendered.content_type, first_half(&rendered)),
        Some(Fault::HalfThenMark) => {
            let marks = rendered.parts.len().saturating_sub(captured.protocol.end_marks());
            let body = first_half(&rendered) + &rendered.parts[marks..].concat();
            respond(StatusCode::OK, rendered.content_type, body)
        }
    }
}

/// The first half: whole events of a stream, half the text of a whole answer.
fn first_half(rendered: &Rendered) -> String {
    match rendered.parts.as_slice() {
        [whole] => whole.chars().take(whole.chars().count() / 2).collect(),
        parts => parts[..parts.len() / 2].concat(),
    }
}

fn status(code: u16, retry_after: Option<&str>, body: Option<&str>) -> Response {
    let kind = match code {
        401 | 403 => "authentication_error",
        429 => "rate_limit_exceeded",
        500..=599 => "server_error",
        _ => "invalid_request_error",
    };
    let body = body.map_or_else(|| error_body(kind, "scripted failure"), str::to_owned);
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = respond(code, "application/json", body);
    if let Some(value) = retry_after.and_then(|value| HeaderValue::from_str(value).ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

/// The first half of the body, then a cut connection or silence.
fn half(rendered: &Rendered, cut: bool) -> Response {
    let whole = rendered.parts.concat();
    let first = Bytes::copy_from_slice(&whole.as_bytes()[..whole.len() / 2]);
    let parts = stream::unfold(Some(first), move |first| async move {
        match first {
            Some(bytes) => Some((Ok(bytes), None)),
            None if cut => Some((Err(std::io::Error::other("cut")), None)),
            None => std::future::pending().await,
        }
    });
    streaming(rendered.content_type, Body::from_stream(parts))
}

fn slow(state: Arc<State>, number: usize, rendered: Rendered, wait: Duration) -> Response {
    let parts = stream::unfold(rendered.parts.into_iter(), move |mut parts| {
        let state = Arc::clone(&state);
        async move {
            let Some(part) = parts.next() else {
                state.log.note_completed(number);
                return None;
            };
            tokio::time::sleep(wait).await;
            Some((Ok::<_, Infallible>(Bytes::from(part)), parts))
        }
    });
    streaming(rendered.content_type, Body::from_stream(parts))
}

fn respond(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = streaming(content_type, body.into());
    *response.status_mut() = status;
    response
}

fn streaming(content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn error_body(kind: &str, message: &str) -> String {
    json!({"error": {"type": kind, "code": kind, "message": message}}).to_string()
}

impl Protocol {
    /// An error as it comes within a stream.
    fn error_event(self, kind: &str) -> String {
        let body = error_body(kind, "scripted failure");
        match self {
            Self::OpenAi | Self::Gemini => format!("data: {body}\n\n"),
            Self::Anthropic => format!("event: error\ndata: {body}\n\n"),
            Self::Ollama => format!("{body}\n"),
        }
    }
}
