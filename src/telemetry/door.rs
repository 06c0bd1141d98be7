//! The door at which figures are asked for: only read, each request on a connection of its own. Who may reach it is a matter of
//! its address.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::metrics::Form;
use crate::http::{self, Limits};

/// Time for a request to be read and for its answer to be written.
const PATIENCE: Duration = Duration::from_secs(10);

/// A scraper asks for one thing now and then: there is no need of room for many, nor to keep what is idle.
const LIMITS: Limits =
    Limits { connections: 8, head: 8 * 1024, patience: PATIENCE, whole: Some(PATIENCE), keeps: false };

/// Why a request is not answered: as what, and in words.
type Refusal = (StatusCode, &'static str);

/// What was asked for, as what it is.
pub(super) fn told(kind: &'static str, body: String) -> Response {
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

/// There is nothing of this name.
pub(super) fn unknown(known: &str) -> Response {
    refused(StatusCode::NOT_FOUND, &format!("there is {known} here"))
}

fn refused(status: StatusCode, words: &str) -> Response {
    (status, format!("{words}\n")).into_response()
}

/// The form of figures that whoever asks takes.
pub(super) fn accepted(headers: &HeaderMap) -> Form {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    Form::accepted(accept.unwrap_or_default())
}

/// Answers requests by their paths, until told to stop.
pub(crate) async fn serve(listener: TcpListener, paths: Router, stop: CancellationToken) {
    let is_local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    http::serve(listener, guarded(paths, is_local), LIMITS, stop).await;
}

fn guarded(paths: Router, is_local: bool) -> Router {
    paths.layer(middleware::from_fn_with_state(is_local, guard))
}

/// Judges a request, has it answered, and says what may be done with the answer.
async fn guard(State(is_local): State<bool>, request: Request, next: Next) -> Response {
    let mut answer = match judged(request.method(), request.uri(), request.headers(), is_local) {
        Ok(()) => next.run(request).await,
        Err((status, words)) => refused(status, words),
    };
    let headers = answer.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Whether a request is answered. Pure.
fn judged(method: &Method, uri: &Uri, headers: &HeaderMap, is_local: bool) -> Result<(), Refusal> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here"));
    }
    // A page of others in a browser here reaches a door on loopback by a name of its own, which is told.
    let hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let mut called = hosts.chain(uri.authority().map(|authority| authority.as_str()));
    if is_local && !called.all(is_loopback) {
        return Err((StatusCode::FORBIDDEN, "ask by the address: this door is for this machine"));
    }
    Ok(())
}

fn is_loopback(host: &str) -> bool {
    let named = host
        .rsplit_once(':')
        .map_or(host, |(name, port)| if port.bytes().all(|b| b.is_ascii_digit()) { name } else { host });
    let named = named.trim_start_matches('[').trim_end_matches(']');
    named.eq_ignore_ascii_case("localhost") || named.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Takes a place to listen at.
///
/// # Errors
/// Says why it cannot be had.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use axum::body::{Body, to_bytes};
    use axum::routing::get;
    use tower_service::Service as _;

    use super::*;

    fn paths() -> Router {
        let tell = |headers: HeaderMap| {
            let form = accepted(&headers);
            ready(told(form.name(), "a 1\n".to_owned()))
        };
        Router::new().route("/metrics", get(tell)).fallback(|| ready(unknown("/metrics")))
    }

    /// What is answered: the status, the kind of what is told, and what is told.
    async fn asked(method: &str, uri: &str, host: &str, is_local: bool) -> (u16, String, String) {
        let request = axum::http::Request::builder().method(method).uri(uri).header("host", host);
        let answer = guarded(paths(), is_local).call(request.body(Body::empty()).unwrap()).await.unwrap();
        let headers = answer.headers();
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["cache-control"], "no-store");
        let kind = headers["content-type"].to_str().unwrap().to_owned();
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), 1_000).await.unwrap();
        (status, kind, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn figures_are_read_and_all_else_is_refused_with_what_is_there() {
        let plain = "text/plain; charset=utf-8";
        for (method, uri, status, kind, body) in [
            ("GET", "/metrics?x=1", 200, Form::Plain.name(), "a 1\n"),
            ("HEAD", "/metrics", 200, Form::Plain.name(), ""),
            ("GET", "/", 404, plain, "there is /metrics here\n"),
            ("GET", "/metrics/", 404, plain, "there is /metrics here\n"),
            ("POST", "/metrics", 405, plain, "only GET is answered here\n"),
            ("DELETE", "/elsewhere", 405, plain, "only GET is answered here\n"),
            ("OPTIONS", "/metrics", 405, plain, "only GET is answered here\n"),
        ] {
            let wanted = (status, kind.to_owned(), body.to_owned());
            assert_eq!(asked(method, uri, "localhost:9464", true).await, wanted, "{method} {uri}");
        }
    }

    #[tokio::test]
    async fn on_loopback_no_other_name_is_answered() {
        for good in ["localhost", "LOCALHOST:1", "127.0.0.1:9464", "[::1]:9", "127.1.2.3"] {
            assert_eq!(asked("GET", "/metrics", good, true).await.0, 200, "{good}");
        }
        for wrong in ["evil.example", "evil.example:9464", "", "localhost.evil.example", "127.0.0.1@evil"] {
            assert_eq!(asked("GET", "/metrics", wrong, true).await.0, 403, "{wrong}");
        }
        assert_eq!(asked("GET", "http://evil.example/metrics", "localhost", true).await.0, 403);
        assert_eq!(asked("GET", "/metrics", "muster.example:9464", false).await.0, 200);
        // Those that speak an older protocol need not say by which name they come.
        let uri = Uri::from_static("/metrics");
        assert_eq!(judged(&Method::GET, &uri, &HeaderMap::new(), true), Ok(()));
        let mut two = HeaderMap::new();
        two.append("host", HeaderValue::from_static("localhost"));
        two.append("host", HeaderValue::from_static("evil.example"));
        assert_eq!(judged(&Method::GET, &uri, &two, true).map_err(|(status, _)| status.as_u16()), Err(403));
    }

    #[test]
    fn the_form_is_the_one_that_is_asked_for() {
        let of = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            accepted(&headers)
        };
        assert_eq!(of("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"), Form::Open);
        assert_eq!((of("text/plain"), accepted(&HeaderMap::new())), (Form::Plain, Form::Plain));
    }
}
