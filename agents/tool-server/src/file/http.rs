//! A tool that calls an HTTP endpoint. Where it goes stands in the file: a call fills in parts of the path, the query and the
//! body, and never names a host.

mod places;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use muster_shared::flow::Use;
use muster_shared::flow::rights::HostPattern;
use muster_shared::secret::Redactor;
use muster_shared::text::{quoted, within_bytes};
use muster_tools::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use super::Own;
pub(super) use places::Places;

/// What stands in a path or a query as it is; everything else is encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The most of a refusal that a model is told, in bytes.
const MOST_REFUSAL: usize = 4 * 1024;

/// A method of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// It changes nothing.
    Get,
    /// It changes nothing, and gives nothing but headers.
    Head,
    /// It makes something.
    Post,
    /// It puts something in its place.
    Put,
    /// It changes something.
    Patch,
    /// It takes something away.
    Delete,
}

impl Method {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether what is not in path or query goes into a body.
    const fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// A request that is to be made.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The whole address.
    pub url: String,
    /// Headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body, where there is one.
    pub body: Option<Bytes>,
    /// The most of the answer that is kept, in bytes.
    pub most: usize,
    /// Hosts that the file says may be at private addresses.
    pub private: Vec<HostPattern>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// What it says of its content.
    pub content_type: String,
    /// The body, as far as it is kept.
    pub body: Bytes,
    /// Whether there was more.
    pub cut: bool,
}

/// Why there is no answer. It must not hold secrets of the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpFailure {
    /// Nothing was sent.
    #[error("nothing was sent: {0}")]
    NotSent(String),
    /// It was sent, and whether it took effect is not known.
    #[error("no answer came: {0}")]
    Lost(String),
    /// It may not be sent.
    #[error("it was not let through: {0}")]
    Refused(String),
}

/// Makes requests.
#[async_trait]
pub trait HttpCaller: Send + Sync + 'static {
    /// Makes a request. Redirects are not followed.
    ///
    /// # Errors
    /// When there is no answer.
    async fn call(&self, request: HttpRequest) -> Result<HttpAnswer, HttpFailure>;
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct Http {
    /// The address, with `{NAME}` where an argument goes into its path or query.
    url: String,
    host: String,
    method: Method,
    headers: BTreeMap<String, String>,
    /// The arguments that go into the query; of a method without a body, all that are not in the path.
    query: Vec<String>,
    /// Hosts that may be at private addresses.
    private: Vec<HostPattern>,
    /// Where each argument goes, where a document says it; else it follows from the method.
    places: Option<Places>,
}

impl Http {
    /// An endpoint at this address.
    ///
    /// # Errors
    /// Says what is wrong with the address.
    pub(super) fn new(
        url: &str,
        method: Method,
        headers: BTreeMap<String, String>,
        query: Vec<String>,
    ) -> Result<Self, String> {
        let parsed = Url::parse(url).map_err(|error| format!("{url:?} is no address: {error}"))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(format!("{url:?} is no address of HTTP"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err("a secret must not stand in the address; name its file in [secrets]".to_owned());
        }
        let host = parsed.host_str().unwrap_or_default();
        let origin_end = url.find("://").map_or(0, |at| at + 3);
        let origin = url[origin_end..].split(['/', '?', '#']).next().unwrap_or_default();
        if host.is_empty() || origin.contains(['{', '}']) {
            return Err("the host must stand in the address as it is: no argument may choose it".to_owned());
        }
        let host = format!("{host}:{}", parsed.port_or_known_default().unwrap_or(443));
        Ok(Self { url: url.to_owned(), host, method, headers, query, private: Vec::new(), places: None })
    }

    /// The same where these hosts may be at private addresses.
    ///
    /// # Errors
    /// When one of them is no host.
    pub(super) fn touching(mut self, hosts: &[String]) -> Result<Self, String> {
        let read = |host: &String| {
            HostPattern::read(host).map_err(|why| format!("[touches] names {}: {why}", quoted(host, 100)))
        };
        self.private = hosts.iter().map(read).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The host with its port.
    pub(super) fn host(&self) -> String {
        self.host.clone()
    }

    /// The method and the address, as the file has them.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{} {}", self.method.as_str(), self.url)
    }

    /// The address and the body with these arguments.
    fn filled(&self, args: &Map<String, Value>) -> Result<(String, Option<Bytes>), ToolFailure> {
        let (mut url, mut left) = (String::new(), args.clone());
        let mut rest = self.url.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) = after.split_once('}').unwrap_or((after, ""));
            let value = left.remove(name).ok_or_else(|| {
                ToolFailure::InvalidArguments(format!(
                    "the argument `{name}` is missing, which stands in the address"
                ))
            })?;
            url.push_str(before);
            url.push_str(&encoded(&value));
            rest = behind;
        }
        url.push_str(rest);
        let in_query: Vec<(String, Value)> = match (&self.places, self.method.has_body()) {
            (Some(Places { query, .. }), _) => {
                query.iter().filter_map(|name| left.remove_entry(name)).collect()
            }
            (None, true) => self.query.iter().filter_map(|name| left.remove_entry(name)).collect(),
            (None, false) => std::mem::take(&mut left).into_iter().collect(),
        };
        for (name, value) in in_query.iter().filter(|(_, value)| !value.is_null()) {
            for value in each(value) {
                url.push(if url.contains('?') { '&' } else { '?' });
                url.push_str(&format!("{}={}", utf8_percent_encode(name, ENCODED), encoded(value)));
            }
        }
        // They would lead elsewhere.
        if path_of(&url).split('/').any(|segment| segment == "." || segment == "..") {
            return Err(ToolFailure::InvalidArguments("an argument leads out of the path".to_owned()));
        }
        let body = match &self.places {
            Some(places) => places.body.as_ref().and_then(|name| left.remove(name)),
            None => self.method.has_body().then_some(Value::Object(left)),
        };
        Ok((url, body.map(|body| Bytes::from(body.to_string()))))
    }

    fn headers(&self, secrets: &BTreeMap<String, String>) -> Vec<(String, String)> {
        let filled = |value: &String| {
            secrets
                .iter()
                .fold(value.clone(), |text, (name, secret)| text.replace(&format!("{{{{{name}}}}}"), secret))
        };
        let own = self.headers.iter().map(|(name, value)| (name.clone(), filled(value)));
        let is_named = |wanted: &str| self.headers.keys().any(|name| name.eq_ignore_ascii_case(wanted));
        let body = (self.sends_a_body() && !is_named("content-type"))
            .then(|| ("content-type".to_owned(), "application/json".to_owned()));
        own.chain(body).collect()
    }
}

fn path_of(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = after.find(['/', '?', '#']).map_or("", |at| &after[at..]);
    path.split(['?', '#']).next().unwrap_or_default()
}

/// The values of an argument: of a list, each.
fn each(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(all) => all.iter().collect(),
        _ => vec![value],
    }
}

fn encoded(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        _ => value.to_string(),
    };
    utf8_percent_encode(&text, ENCODED).to_string()
}

/// A tool that calls an endpoint.
pub(super) struct HttpTool {
    pub(super) own: Own,
    pub(super) http: Http,
    pub(super) caller: Arc<dyn HttpCaller>,
}

#[async_trait]
impl Tool for HttpTool {
    fn spec(&self) -> ToolSpec {
        self.own.spec()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let host = self.http.host();
        ctx.rights.allows(&Use::Host(&host))?;
        let secrets = self.own.secrets()?;
        let redactor = Redactor::new(secrets.values().cloned().map(SecretString::from));
        let none = Map::new();
        let args = args.as_object().unwrap_or(&none);
        let (url, body) = self.http.filled(args)?;
        let mut headers = self.http.headers(&secrets);
        headers.extend(self.http.given_headers(args)?);
        let request = HttpRequest {
            method: self.http.method,
            url,
            headers,
            body,
            most: self.own.file.limits.output,
            private: self.http.private.clone(),
        };
        let answered = self.caller.call(request).await;
        read(answered, self.own.file.pure, &redactor)
    }
}

/// What an answer is for a model, without the secrets.
fn read(
    answered: Result<HttpAnswer, HttpFailure>,
    pure: bool,
    redactor: &Redactor,
) -> Result<ToolOutput, ToolFailure> {
    let HttpAnswer { status, content_type, body, cut } = answered.map_err(|failure| {
        let words = redactor.redact(&failure.to_string()).into_owned();
        match failure {
            HttpFailure::NotSent(_) => ToolFailure::Unavailable(words),
            HttpFailure::Lost(_) if pure => ToolFailure::Unavailable(words),
            HttpFailure::Lost(_) => ToolFailure::Failed(format!(
                "{words}. Whether it took effect is not known: look before you do it again."
            )),
            HttpFailure::Refused(_) => ToolFailure::Refused(words),
        }
    })?;
    let mut text = redactor.redact(&String::from_utf8_lossy(&body)).into_owned();
    match status {
        200..=299 => {
            let is_json = content_type.split(';').next().is_some_and(|kind| kind.trim().ends_with("json"));
            let data = is_json.then(|| serde_json::from_str(&text).ok()).flatten();
            if cut {
                text.push_str("\n[cut: the answer is longer than is kept]");
            }
            Ok(ToolOutput { data, ..ToolOutput::text(text) })
        }
        _ => {
            let words =
                format!("the endpoint answered {status}: {}", within_bytes(text.trim(), MOST_REFUSAL));
            // One that has its hands full has done nothing, where it changes nothing.
            let passes = matches!(status, 429 | 500 | 502 | 503 | 504);
            Err(if pure && passes { ToolFailure::Unavailable(words) } else { ToolFailure::Failed(words) })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn http(url: &str, method: Method, query: &[&str]) -> Result<Http, String> {
        Http::new(url, method, BTreeMap::new(), query.iter().map(|&name| name.to_owned()).collect())
    }

    fn filled(http: &Http, args: &Value) -> Result<(String, Option<String>), ToolFailure> {
        let (url, body) = http.filled(args.as_object().unwrap())?;
        Ok((url, body.map(|body| String::from_utf8(body.to_vec()).unwrap())))
    }

    #[test]
    fn arguments_go_into_path_query_and_body_and_never_elsewhere() {
        let get = http("https://example.org/items/{id}?v=1", Method::Get, &[]).unwrap();
        let (url, body) = filled(&get, &json!({ "id": "a/b?c", "tag": ["x", "y z"], "none": null })).unwrap();
        assert_eq!(url, "https://example.org/items/a%2Fb%3Fc?v=1&tag=x&tag=y%20z");
        assert_eq!(body, None);
        let post = http("http://example.org:8080/items", Method::Post, &["dry"]).unwrap();
        let (url, body) = filled(&post, &json!({ "dry": true, "name": "n" })).unwrap();
        assert_eq!(
            (url.as_str(), body.as_deref()),
            ("http://example.org:8080/items?dry=true", Some(r#"{"name":"n"}"#))
        );
        assert_eq!((get.host(), post.host()), ("example.org:443".to_owned(), "example.org:8080".to_owned()));
        for id in ["..", ".", "%2e%2e"] {
            let (out, inside) = (filled(&get, &json!({ "id": id })), id.starts_with('%'));
            assert_eq!(out.is_ok(), inside, "{id}: {out:?}");
        }
        assert!(filled(&get, &json!({})).is_err());
    }

    #[test]
    fn addresses_that_let_an_argument_choose_the_host_or_hold_a_secret_are_refused() {
        for url in [
            "https://{host}/x",
            "https://example.org:{port}/x",
            "https://user:secret@example.org/",
            "ftp://example.org/",
            "example.org/x",
            "file:///etc/passwd",
        ] {
            assert!(http(url, Method::Get, &[]).is_err(), "{url}");
        }
    }

    #[test]
    fn answers_are_read_without_secrets_and_what_passes_is_told_apart() {
        let redactor = Redactor::new([SecretString::from("s3cret-value-1234")]);
        let answer = |status: u16, body: &str| {
            Ok(HttpAnswer {
                status,
                content_type: "application/json; charset=utf-8".to_owned(),
                body: Bytes::from(body.to_owned()),
                cut: false,
            })
        };
        let good = read(answer(200, r#"{"n": 1, "echo": "s3cret-value-1234"}"#), true, &redactor).unwrap();
        assert!(!good.content.contains("s3cret") && good.data.unwrap()["n"] == 1);
        let failed = |status, pure| read(answer(status, "no"), pure, &redactor).unwrap_err();
        assert!(matches!(failed(503, true), ToolFailure::Unavailable(_)));
        assert!(matches!(failed(503, false), ToolFailure::Failed(_)));
        assert!(matches!(failed(404, true), ToolFailure::Failed(_)));
        assert!(matches!(failed(302, true), ToolFailure::Failed(_)), "redirects are not followed");
        let lost = |pure| read(Err(HttpFailure::Lost("reset".to_owned())), pure, &redactor).unwrap_err();
        assert!(matches!(lost(true), ToolFailure::Unavailable(_)));
        assert!(lost(false).to_string().contains("not known"));
    }
}
