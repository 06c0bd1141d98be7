//! What stands before every answer: by which names the dashboard may be called, who calls, whether he may, and what is said to
//! browsers with each answer. The judgements are pure.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::IntoResponse;

use super::login;
use super::reply::{Answer, Problem};
use super::rights::{self, Asks, Deed};
use super::session::{Session, is_same};
use super::state::Ui;
use super::zip;
use crate::http::Peer;

/// The header that a request has to bring that does something.
pub(crate) const CSRF: &str = "x-muster-csrf";

/// What the page may do: load what is served here, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Judges a request, has it answered, and says to the browser what it may do with the answer.
pub(crate) async fn guard(State(ui): State<Arc<Ui>>, request: Request, next: Next) -> Answer {
    let takes_gzip = zip::is_taken(request.headers());
    let is_api = request.uri().path().starts_with("/api/");
    let answer = match judge(&ui, request).await {
        Ok((request, cookie, _place)) => {
            let limit = ui.limit_of(request.method(), request.uri().path());
            let mut answer = match tokio::time::timeout(limit, next.run(request)).await {
                Ok(answer) => answer,
                Err(_) => Problem::new(StatusCode::GATEWAY_TIMEOUT, "it took too long")
                    .help("try again")
                    .into_response(),
            };
            if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
                answer.headers_mut().append(header::SET_COOKIE, cookie);
            }
            answer
        }
        Err(problem) => problem.into_response(),
    };
    let mut answer = if is_api && takes_gzip { zip::zipped(answer).await } else { answer };
    say(answer.headers_mut(), is_api);
    answer
}

/// What is said to browsers with each answer.
fn say(headers: &mut HeaderMap, is_api: bool) {
    let always = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in always {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    if is_api {
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
}

/// Lets a request pass with its sender, the cookie to keep, and its place among the requests in progress.
async fn judge(
    ui: &Arc<Ui>,
    mut request: Request,
) -> Result<(Request, Option<String>, Option<Arc<()>>), Problem> {
    let headers = request.headers();
    called_by_a_known_name(headers, ui)?;
    let path = request.uri().path().to_owned();
    if !path.starts_with("/api/") {
        return match *request.method() {
            Method::GET | Method::HEAD => Ok((request, None, None)),
            _ => Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "the page is only read")),
        };
    }
    let asks = match *request.method() {
        Method::GET => Asks::ToRead,
        Method::POST => Asks::ToDo,
        _ => return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this takes GET and POST")),
    };
    if asks == Asks::ToDo {
        is_json(headers)?;
    }
    if (asks, path.as_str()) == (Asks::ToDo, "/api/login") {
        return Ok((request, None, None));
    }
    let peer = request.extensions().get::<Peer>().copied();
    let (session, cookie) = login::known(ui, headers, peer.map(|Peer(peer)| peer.ip())).await?;
    let deed = rights::deed(asks, &path)
        .ok_or_else(|| Problem::not_found(format!("there is no {path} to be done")))?;
    allows(&session, asks, deed, headers)?;
    let place = ui.requests.take(&session.person)?;
    request.extensions_mut().insert(session);
    Ok((request, cookie, Some(place)))
}

/// Whether somebody may do this, and it is his page that asks.
fn allows(session: &Session, asks: Asks, deed: Deed, headers: &HeaderMap) -> Result<(), Problem> {
    if asks == Asks::ToDo {
        let given = text(headers, CSRF).unwrap_or_default();
        if !is_same(given, &session.csrf) {
            return Err(Problem::forbidden("the request does not bring what this session was given")
                .help("load the page again"));
        }
    }
    let role = session.person.role;
    if rights::may(role, deed) {
        return Ok(());
    }
    Err(Problem::forbidden(format!("a person in the role {role} may not {}", deed.in_words()))
        .help("log in with a token for another role: `muster keys token NAME --role ROLE` makes one"))
}

/// Refuses what a page of somebody else's could send: a form cannot be of this type.
fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = text(headers, "content-type").unwrap_or_default();
    match kind.split(';').next().map(str::trim) {
        Some("application/json") => Ok(()),
        _ => Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a request to do something is JSON")
            .help("send Content-Type: application/json")),
    }
}

/// Refuses a request that came by a name that is not ours: a page of somebody else's may have the browser take our address for
/// that of a name of its own.
fn called_by_a_known_name(headers: &HeaderMap, ui: &Ui) -> Result<(), Problem> {
    let host = text(headers, "host").ok_or_else(|| Problem::bad("the request names no host"))?;
    let names = Names { port: ui.port, more: &ui.settings.hosts };
    if !names.has(host) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "the dashboard is not called by this name",
        )
        .help(
            "open it by the address that `muster ui` prints; ui.hosts names others, such as that of a proxy",
        ));
    }
    let from_elsewhere = || Problem::forbidden("the request comes from a page of somebody else's");
    if let Some(origin) = text(headers, "origin") {
        let of_origin = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !of_origin.is_some_and(|origin| names.has(origin)) {
            return Err(from_elsewhere());
        }
    }
    match text(headers, "sec-fetch-site") {
        Some("cross-site") if text(headers, "sec-fetch-mode") != Some("navigate") => Err(from_elsewhere()),
        _ => Ok(()),
    }
}

/// By which names the dashboard may be called.
struct Names<'a> {
    port: u16,
    more: &'a [String],
}

impl Names<'_> {
    /// Whether a host, with its port where it has one, is one of them. Our own names go with our port; what a proxy is called
    /// goes with any, unless one is named.
    fn has(&self, host: &str) -> bool {
        let (name, port) = split(host);
        let is_own = ["127.0.0.1", "localhost", "[::1]"].iter().any(|own| own.eq_ignore_ascii_case(name));
        if is_own && port == Some(self.port) {
            return true;
        }
        self.more.iter().any(|known| match split(known) {
            (known, None) => known.eq_ignore_ascii_case(name),
            (known, wanted) => known.eq_ignore_ascii_case(name) && port == wanted,
        })
    }
}

/// A host and its port. What has a port that is none keeps it in its name, which then is nobody's.
fn split(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            match port.parse() {
                Ok(port) => (name, Some(port)),
                Err(_) => (host, None),
            }
        }
        _ => (host, None),
    }
}

/// A header as text.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether an address is one of those listed. What is no address is nobody's.
pub(crate) fn is_listed(peer: IpAddr, listed: &[String]) -> bool {
    let peer = peer.to_canonical();
    listed.iter().any(|one| one.trim().parse::<IpAddr>().is_ok_and(|one| one.to_canonical() == peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_names_count_and_ours_with_our_port() {
        let more = ["Muster.example.org".to_owned(), "other.example:8443".to_owned()];
        let names = Names { port: 7177, more: &more };
        for host in [
            "127.0.0.1:7177",
            "localhost:7177",
            "LocalHost:7177",
            "[::1]:7177",
            "muster.example.org",
            "muster.example.org:443",
            "other.example:8443",
        ] {
            assert!(names.has(host), "{host}");
        }
        for host in [
            "",
            "127.0.0.1",
            "127.0.0.1:7178",
            "localhost",
            "localhost:07177x",
            "localhost:99999",
            "localhost.attacker.example:7177",
            "attacker.example:7177",
            "127.0.0.1:7177@attacker.example",
            "[::1]",
            "::1:7177",
            "other.example",
            "other.example:80",
            "evil-muster.example.org",
            "muster.example.org.",
            "127.0.0.2:7177",
            "0.0.0.0:7177",
        ] {
            assert!(!names.has(host), "{host}");
        }
    }

    #[test]
    fn addresses_are_compared_as_addresses() {
        let listed = ["127.0.0.1".to_owned(), " ::1".to_owned(), "nonsense".to_owned()];
        let peer = |text: &str| text.parse::<IpAddr>().unwrap();
        for (address, is) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("127.0.0.2", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(is_listed(peer(address), &listed), is, "{address}");
        }
        assert!(!is_listed(peer("127.0.0.1"), &[]));
    }

    #[test]
    fn what_a_form_can_send_is_refused() {
        let with = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("content-type", HeaderValue::from_static(kind));
            is_json(&headers).is_ok()
        };
        assert!(with("application/json") && with("application/json; charset=utf-8"));
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "",
            "text/plain;application/json",
        ] {
            assert!(!with(kind), "{kind}");
        }
        assert!(is_json(&HeaderMap::new()).is_err());
    }
}
