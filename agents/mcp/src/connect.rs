//! One connection to a server: made, watched, ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use rmcp::model::{ProtocolVersion, ServerPeerInfo};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RoleClient, RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::IntoTransport;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::ExposeSecret;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::callbacks::Callbacks;
use crate::config::{ChildCommand, HttpEndpoint, Reached, ServerConfig};
use crate::desk::Desk;
use crate::error::McpError;
use crate::oauth;
use crate::plain::{cut, visible};
use crate::process::{self, LastWords, ServerChild};
use muster_shared::sync::lock;
use muster_tools::settings::McpSettings;

/// Largest message of a server, in bytes. A larger one is thrown away, and what waited for it runs out of time. 8
/// MiB: the largest file of a result in base64 and more.
const MAX_MESSAGE: u64 = 8 * 1024 * 1024;

/// Longest reason in an error, in bytes.
const MAX_REASON: usize = 500;
/// How long the making of a TCP connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection to a server, whose process ends with it.
pub(crate) struct Connection {
    /// Asks the server.
    pub(crate) peer: Peer<RoleClient>,
    /// Answers what the server asks.
    pub(crate) desk: Arc<Desk>,
    /// What it said of itself.
    pub(crate) info: Arc<ServerPeerInfo>,
    /// Its process, where it has one.
    pub(crate) process: Option<u32>,
    words: LastWords,
    closed: CancellationToken,
    end: CancellationToken,
    watcher: Mutex<Option<JoinHandle<()>>>,
}

impl Connection {
    /// Raised when the server is gone.
    pub(crate) const fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// The last lines of its standard error, for the end of a message.
    pub(crate) fn last_words(&self) -> String {
        self.words.told()
    }

    /// Ends the server, with all its processes, and waits until it is gone.
    pub(crate) async fn end(&self) {
        self.end.cancel();
        let watcher = lock(&self.watcher).take();
        if let Some(watcher) = watcher {
            let _done = watcher.await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// What a connection is made with.
pub(crate) struct Connecting<'a> {
    pub(crate) config: &'a ServerConfig,
    pub(crate) settings: &'a McpSettings,
    pub(crate) callbacks: &'a Callbacks,
    pub(crate) desk: Arc<Desk>,
}

/// Why an attempt came to nothing.
enum Attempt {
    NotStarted(String),
    NeedsAuthorization,
    /// It went wrong while the server was asked what it speaks: it may be one that only knows the older way.
    Handshake(String),
}

impl Connecting<'_> {
    /// Makes a connection within the time to start. A server is asked for the newest protocol first; one that cannot bear
    /// the question is started again, and greeted in the older way.
    pub(crate) async fn connect(&self) -> Result<Arc<Connection>, McpError> {
        let server = self.config.name.clone();
        let words = LastWords::of(&server);
        let limit = self.settings.start_limit;
        let both = async {
            match self.attempt(newest_first(), &words).await {
                Err(Attempt::Handshake(reason)) => {
                    tracing::debug!(server, reason, "an MCP server is greeted in the older way");
                    self.attempt(ClientLifecycleMode::Initialize, &words).await
                }
                settled => settled,
            }
        };
        match tokio::time::timeout(limit, both).await {
            Ok(Ok(connection)) => Ok(Arc::new(connection)),
            Ok(Err(Attempt::NotStarted(reason))) => Err(McpError::NotStarted { server, reason }),
            Ok(Err(Attempt::NeedsAuthorization)) => Err(McpError::NeedsAuthorization { server }),
            Ok(Err(Attempt::Handshake(reason))) => {
                Err(McpError::NoConnection { server, reason, last_words: words.told() })
            }
            Err(_) => Err(McpError::NoAnswer { server, limit, last_words: words.told() }),
        }
    }

    async fn attempt(&self, mode: ClientLifecycleMode, words: &LastWords) -> Result<Connection, Attempt> {
        // Its program may have changed since the last attempt.
        self.callbacks
            .may_start
            .as_ref()
            .map_or(Ok(()), |may_start| may_start())
            .map_err(Attempt::NotStarted)?;
        match &self.config.reached {
            Reached::Child(command) => self.by_child(command, mode, words).await,
            Reached::Http(endpoint) => self.by_http(endpoint, mode, words).await,
        }
    }

    async fn by_child(
        &self,
        command: &ChildCommand,
        mode: ClientLifecycleMode,
        words: &LastWords,
    ) -> Result<Connection, Attempt> {
        let started =
            process::start(command, words).map_err(|error| Attempt::NotStarted(error.to_string()))?;
        let transport = AsyncRwTransport::new_client(started.output, started.input)
            .with_max_line_length(bytes(MAX_MESSAGE));
        self.greet(transport, mode, Some(started.child), words).await
    }

    async fn by_http(
        &self,
        endpoint: &HttpEndpoint,
        mode: ClientLifecycleMode,
        words: &LastWords,
    ) -> Result<Connection, Attempt> {
        let client = http_client().map_err(Attempt::NotStarted)?;
        let config = http_config(endpoint, self.settings).map_err(Attempt::NotStarted)?;
        let authorized = match &self.callbacks.tokens {
            Some(folder) => oauth::authorized(self.config, endpoint, folder, client.clone()).await,
            None => Ok(None),
        };
        match authorized.map_err(Attempt::Handshake)? {
            Some(client) => {
                let transport = StreamableHttpClientTransport::with_client(client, config);
                self.greet(transport, mode, None, words).await
            }
            None => {
                let transport = StreamableHttpClientTransport::with_client(client, config);
                self.greet(transport, mode, None, words).await
            }
        }
    }

    async fn greet<T, E, A>(
        &self,
        transport: T,
        mode: ClientLifecycleMode,
        child: Option<ServerChild>,
        words: &LastWords,
    ) -> Result<Connection, Attempt>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let served = serve_client_with_lifecycle(Arc::clone(&self.desk), transport, mode);
        let running = Box::pin(served).await.map_err(|error| told(&error))?;
        let peer = running.peer().clone();
        let nothing = || Attempt::Handshake("it said nothing of itself".to_owned());
        let info = peer.peer_info().ok_or_else(nothing)?;
        let (closed, end) = (CancellationToken::new(), CancellationToken::new());
        let process = child.as_ref().map(ServerChild::id);
        let watch = Watch { closed: closed.clone(), end: end.clone(), child, limit: self.settings.end_limit };
        let watcher = Mutex::new(Some(tokio::spawn(watch.run(running))));
        let desk = Arc::clone(&self.desk);
        Ok(Connection { peer, desk, info, process, words: words.clone(), closed, end, watcher })
    }
}

/// Ends a connection when it is to end, or when either side of it has.
struct Watch {
    closed: CancellationToken,
    end: CancellationToken,
    child: Option<ServerChild>,
    limit: Duration,
}

impl Watch {
    async fn run(mut self, running: RunningService<RoleClient, Arc<Desk>>) {
        let stop = running.cancellation_token();
        let mut service = std::pin::pin!(running.waiting());
        let is_over = tokio::select! {
            _ = &mut service => true,
            // A descendant may hold the output open: that the server is gone is not always seen there.
            () = ended(&mut self.child) => false,
            () = self.end.cancelled() => false,
        };
        self.closed.cancel();
        // Closes its input, or its session.
        stop.cancel();
        if !is_over {
            let _late = tokio::time::timeout(self.limit.saturating_mul(2), service).await;
        }
        if let Some(child) = self.child {
            child.end(self.limit).await;
        }
    }
}

async fn ended(child: &mut Option<ServerChild>) {
    match child {
        Some(child) => child.ended().await,
        None => std::future::pending().await,
    }
}

fn newest_first() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn told(error: &ClientInitializeError) -> Attempt {
    if error.is_authorization_required() || error.auth_challenge().is_some() {
        return Attempt::NeedsAuthorization;
    }
    Attempt::Handshake(cut(&visible(&with_causes(error)), MAX_REASON))
}

/// An error with what lies beneath it.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut beneath = error.source();
    while let Some(cause) = beneath {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        beneath = cause.source();
    }
    text
}

/// A client that follows no redirect: one would take headers with secrets in them elsewhere.
fn http_client() -> Result<reqwest::Client, String> {
    install_crypto();
    reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| with_causes(&error))
}

pub(crate) fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only when another thread was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

fn http_config(
    endpoint: &HttpEndpoint,
    settings: &McpSettings,
) -> Result<StreamableHttpClientTransportConfig, String> {
    let mut headers = HashMap::new();
    for (name, value) in &endpoint.headers {
        let bad = |what: &str| format!("the header `{name}` has a {what} that HTTP does not allow");
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| bad("value"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    let most = bytes(MAX_MESSAGE);
    Ok(StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
        .custom_headers(headers)
        .max_sse_event_size(most)
        .max_json_response_size(most)
        .max_concurrent_requests(
            usize::try_from(settings.calls_at_once).unwrap_or(usize::MAX).saturating_add(2),
        )
        .reinit_on_expired_session(true))
}

/// A number of bytes as this machine counts them.
pub(crate) fn bytes(setting: u64) -> usize {
    usize::try_from(setting).unwrap_or(usize::MAX)
}
