//! Authorization by a person (OAuth 2.1, authorization code with PKCE), as the protocol asks for it of HTTP servers. Where
//! the authorization server is found, registration and refresh are rmcp's; the token lies in a file that only its owner reads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::AuthClient;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, CredentialStore, OAuthState, StoredCredentials,
};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::config::{HttpEndpoint, Reached, ServerConfig};
use crate::connect::{install_crypto, with_causes};
use crate::error::McpError;
use crate::names::hex_of;
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
    manager.set_credential_store(TokenFile::of(config, endpoint, tokens));
    let mut state = OAuthState::Unauthorized(manager);
    let request = AuthorizationRequest::new(redirect).with_client_name("Muster");
    state.start_authorization(request).await.map_err(told)?;
    open(&state.get_authorization_url().await.map_err(told)?);
    let path = come_back(&listener).await?;
    state.handle_callback_url(&format!("http://127.0.0.1:{port}{path}")).await.map_err(told)
}

/// Whether we are authorized at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorization {
    /// It is a program on this machine: there is nothing to authorize.
    NotNeeded,
    /// No token is kept: it is asked without one.
    None,
    /// A token is kept.
    Kept {
        /// Whether it is renewed without a person.
        renews: bool,
    },
}

/// Whether a token of a server is kept in this folder.
///
/// # Errors
/// When what is kept cannot be read.
pub async fn authorization(config: &ServerConfig, tokens: &Path) -> Result<Authorization, McpError> {
    let Reached::Http(endpoint) = &config.reached else { return Ok(Authorization::NotNeeded) };
    let kept =
        TokenFile::of(config, endpoint, tokens).load().await.map_err(|error| unreadable(config, &error))?;
    let token = kept.and_then(|kept| serde_json::to_value(kept.token_response?).ok());
    Ok(token.map_or(Authorization::None, |token| Authorization::Kept {
        renews: token["refresh_token"].is_string(),
    }))
}

/// Forgets the token of a server. Whether there was one.
///
/// # Errors
/// When it cannot be removed.
pub fn forget(config: &ServerConfig, tokens: &Path) -> Result<bool, McpError> {
    let Reached::Http(endpoint) = &config.reached else { return Ok(false) };
    let path = TokenFile::of(config, endpoint, tokens).path;
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => {
            let reason = format!("{}: {error}", path.display());
            Err(McpError::NoToken { server: config.name.clone(), reason })
        }
    }
}

fn unreadable(config: &ServerConfig, error: &AuthError) -> McpError {
    McpError::NoToken { server: config.name.clone(), reason: cut(&visible(&with_causes(error)), 500) }
}

/// A client that shows the token of a server, and refreshes it; none where nobody has authorized us.
pub(crate) async fn authorized(
    config: &ServerConfig,
    endpoint: &HttpEndpoint,
    tokens: &Path,
    client: reqwest::Client,
) -> Result<Option<AuthClient<reqwest::Client>>, String> {
    let store = TokenFile::of(config, endpoint, tokens);
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
    /// By the address too: where the file names another one, that one is not shown the token of the first.
    fn of(config: &ServerConfig, endpoint: &HttpEndpoint, folder: &Path) -> Self {
        let mut address = hex_of(&Sha256::digest(endpoint.url.as_str()));
        address.truncate(16);
        Self { path: folder.join(format!("{}-{address}.json", config.namespace)) }
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
            _ => Ok(()),
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
