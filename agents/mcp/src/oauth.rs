//! Authorization by a person (OAuth 2.1, authorization code with PKCE), as the protocol asks for it of HTTP servers. Where
//! the authorization server is found, registration and refresh are rmcp's; the token lies in a file that only its owner reads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::AuthClient;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, CredentialStore, OAuthState, StoredCredentials,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::config::{HttpEndpoint, Reached, ServerConfig};
use crate::connect::{install_crypto, with_causes};
use crate::error::McpError;
use crate::plain::{cut, visible};

/// Largest file of a token, in bytes.
const MAX_TOKEN: u64 = 256 * 1024;
/// Largest head of the request by which a browser comes back, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// How long one such request may take to arrive.
const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// Most requests that are answered before the right one.
const MAX_VISITS: usize = 100;
/// Where the browser comes back to.
const CALLBACK: &str = "/callback";

/// Has a person authorize us at a server, and keeps the token in this folder. `open` is given the address that the person
/// opens in a browser; the browser comes back to a port on this machine. The token is refreshed later without a person.
///
/// # Errors
/// When the server is none that can be authorized, the person turns it down, or nobody comes back within the limit.
pub async fn authorize(
    config: &ServerConfig,
    tokens: &Path,
    limit: Duration,
    open: impl FnOnce(&str) + Send,
) -> Result<(), McpError> {
    let failed = |reason: String| McpError::NotAuthorized {
        server: config.name.clone(),
        reason: cut(&visible(&reason), 500),
    };
    let Reached::Http(endpoint) = &config.reached else {
        return Err(failed("it is a program on this machine, and needs none".to_owned()));
    };
    let whole = Box::pin(flow(config, endpoint, tokens, open));
    match tokio::time::timeout(limit, whole).await {
        Ok(done) => done.map_err(failed),
        Err(_) => Err(failed(format!("nobody came back within {} s", limit.as_secs_f32()))),
    }
}

async fn flow(
    config: &ServerConfig,
    endpoint: &HttpEndpoint,
    tokens: &Path,
    open: impl FnOnce(&str) + Send,
) -> Result<(), String> {
    install_crypto();
    let told = |error: AuthError| with_causes(&error);
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let redirect = format!("http://127.0.0.1:{port}{CALLBACK}");
    let mut manager = AuthorizationManager::new(endpoint.url.clone()).await.map_err(told)?;
    manager.set_credential_store(TokenFile::of(config, tokens));
    let mut state = OAuthState::Unauthorized(manager);
    let request = AuthorizationRequest::new(redirect).with_client_name("Muster");
    state.start_authorization(request).await.map_err(told)?;
    open(&state.get_authorization_url().await.map_err(told)?);
    let path = come_back(&listener).await?;
    state.handle_callback_url(&format!("http://127.0.0.1:{port}{path}")).await.map_err(told)
}

/// A client that shows the token of a server, and refreshes it; none where nobody has authorized us.
pub(crate) async fn authorized(
    config: &ServerConfig,
    endpoint: &HttpEndpoint,
    tokens: &Path,
    client: reqwest::Client,
) -> Result<Option<AuthClient<reqwest::Client>>, String> {
    let store = TokenFile::of(config, tokens);
    if !store.path.exists() {
        return Ok(None);
    }
    let told = |error: AuthError| with_causes(&error);
    let mut manager = AuthorizationManager::new(endpoint.url.clone()).await.map_err(told)?;
    manager.set_credential_store(store);
    let is_ready = manager.initialize_from_store().await.map_err(told)?;
    Ok(is_ready.then(|| AuthClient::new(client, manager)))
}

/// The token of one server.
struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    fn of(config: &ServerConfig, folder: &Path) -> Self {
        Self { path: folder.join(format!("{}.json", config.namespace)) }
    }

    fn failed(&self, error: impl std::fmt::Display) -> AuthError {
        AuthError::CredentialStoreError(format!("{}: {error}", self.path.display()))
    }
}

#[async_trait]
impl CredentialStore for TokenFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
            Ok(about) if about.len() > MAX_TOKEN => return Err(self.failed("it is no token: too large")),
            Ok(_) => {}
        }
        let text = std::fs::read(&self.path).map_err(|error| self.failed(error))?;
        serde_json::from_slice(&text).map(Some).map_err(|error| self.failed(error))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_vec(&credentials).map_err(|error| self.failed(error))?;
        crate::private::write(&self.path, &text).map_err(|error| self.failed(error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(self.failed(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Waits until the browser comes back, and gives the path with which it did. Others who knock are sent away.
async fn come_back(listener: &TcpListener) -> Result<String, String> {
    for _ in 0..MAX_VISITS {
        let (mut stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        let path = tokio::time::timeout(HEAD_LIMIT, path_of(&mut stream)).await.ok().flatten();
        let query = path.as_deref().and_then(|path| path.strip_prefix(CALLBACK)?.strip_prefix('?'));
        let Some(query) = query else {
            answer(&mut stream, "404 Not Found", "There is nothing here.").await;
            continue;
        };
        if let Some(why) = query.split('&').find_map(|pair| pair.strip_prefix("error=")) {
            answer(&mut stream, "200 OK", "It was turned down. You can close this page.").await;
            return Err(format!("the authorization server says: {why}"));
        }
        answer(&mut stream, "200 OK", "Muster is authorized. You can close this page.").await;
        return Ok(format!("{CALLBACK}?{query}"));
    }
    Err("too many requests that were none of ours".to_owned())
}

/// The path of a GET request, with its query.
async fn path_of(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut buffer = [0_u8; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await.ok()?;
        if read == 0 || head.len() + read > MAX_HEAD {
            return None;
        }
        head.extend_from_slice(buffer.get(..read)?);
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}

async fn answer(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    // Whoever does not stay for the answer need not have it.
    let _left = stream.write_all(page.as_bytes()).await;
    let _left = stream.shutdown().await;
}
