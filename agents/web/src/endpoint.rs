//! Calls of endpoints that somebody wrote down in a file of his own. Which host is called stands there and is chosen by nobody
//! else; the guard sees to it that it is where the file says: at a public address, unless the file or a setting names the
//! host as one that may be at another.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use muster_shared::flow::rights::HostPattern;
use muster_shared::text::quoted;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::client::Clients;
use crate::guard::resolver::Resolver;
use crate::guard::{Guard, Refused};
use crate::transfer::{AnswerLimits, Beyond, Bodies, NoAnswer, Question, exchange};
use muster_tools::settings::WebSettings;

/// How long an endpoint may be silent: as long as any call may take. Its file says how long its own may.
const LONGEST_IDLE: Duration = Duration::from_secs(600);

/// What is asked of an endpoint.
#[derive(Debug, Clone)]
pub struct EndpointCall<'a> {
    /// The method, by its name.
    pub method: &'a str,
    /// The whole address.
    pub url: &'a str,
    /// Headers, in order.
    pub headers: &'a [(String, String)],
    /// The body, where there is one.
    pub body: Option<Bytes>,
    /// Hosts that the file says may be at private addresses.
    pub private: &'a [HostPattern],
    /// The most of the answer that is kept, in bytes.
    pub most: u64,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointAnswer {
    /// The status.
    pub status: u16,
    /// What it says of its content.
    pub content_type: String,
    /// The body, unpacked, as far as it is kept.
    pub body: Bytes,
    /// Whether there was more.
    pub cut: bool,
}

/// Why there is no answer. In words without what was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointFailure {
    /// It is not where an endpoint may be. Nothing was sent.
    #[error("{0}")]
    Refused(Refused),
    /// Nothing was sent.
    #[error("{0}")]
    NotSent(String),
    /// It was sent, and what came of it is not known.
    #[error("{0}")]
    Lost(String),
}

/// Calls endpoints. Nothing is made before the first call.
pub struct Endpoints {
    settings: Arc<WebSettings>,
    clients: Clients,
    guard: OnceLock<Result<Guard, String>>,
}

impl Endpoints {
    /// By the settings of the web: who may be at a private address, times, the proxy and the certificates.
    #[must_use]
    pub fn new(settings: WebSettings, resolver: Arc<dyn Resolver>) -> Self {
        let settings = Arc::new(WebSettings { idle: LONGEST_IDLE, ..settings });
        let clients = Clients::new(Arc::clone(&settings), resolver);
        Self { settings, clients, guard: OnceLock::new() }
    }

    /// Makes a call. Redirects are answers like others: they are not followed.
    ///
    /// # Errors
    /// When there is no answer. How long it may take in all is for the caller to say.
    pub async fn call(&self, asked: EndpointCall<'_>) -> Result<EndpointAnswer, EndpointFailure> {
        let guard = self.guard.get_or_init(|| Guard::new(&self.settings));
        let guard = guard.as_ref().map_err(|wrong| EndpointFailure::NotSent(wrong.clone()))?;
        let at = guard.of_file(asked.url, asked.private).map_err(EndpointFailure::Refused)?;
        let method = Method::from_bytes(asked.method.as_bytes());
        let method = method.map_err(|_| EndpointFailure::NotSent("there is no such method".to_owned()))?;
        let headers = headers(asked.headers)?;
        let client = self.clients.of(at.reach).map_err(EndpointFailure::NotSent)?;
        let question = Question { method, url: at.url, headers, body: asked.body };
        let limits = AnswerLimits { max_bytes: asked.most, bodies: Bodies::All, beyond: Beyond::LeftOut };
        let answer = exchange(client, question, limits).await.map_err(failure)?;
        let said = answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = said.unwrap_or_default().to_owned();
        Ok(EndpointAnswer { status: answer.status, content_type, body: answer.body, cut: answer.cut })
    }
}

/// The value of a header may be a secret: only its name is told.
fn headers(written: &[(String, String)]) -> Result<HeaderMap, EndpointFailure> {
    let mut headers = HeaderMap::new();
    for (name, value) in written {
        let wrong = |why: &str| EndpointFailure::NotSent(format!("the header {} {why}", quoted(name, 60)));
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("has no name of a header"))?;
        let value = HeaderValue::from_str(value).map_err(|_| wrong("has a value that no header can have"))?;
        headers.append(parsed, value);
    }
    Ok(headers)
}

fn failure(why: NoAnswer) -> EndpointFailure {
    let words = why.to_string();
    match why {
        NoAnswer::Refused(refused) => EndpointFailure::Refused(refused),
        NoAnswer::NotConnected(_) | NoAnswer::Certificate(_) => EndpointFailure::NotSent(words),
        NoAnswer::TooLarge { .. } | NoAnswer::Packed(_) | NoAnswer::Broken(_) | NoAnswer::TimedOut => {
            EndpointFailure::Lost(words)
        }
    }
}
