//! A scripted server by HTTP on loopback, with an authorization server beside it.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{self, call, context, said, tool};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_mcp::{
    Authorization, Callbacks, HttpEndpoint, McpError, McpServer, Reached, ServerConfig, authorization,
    authorize,
};
use muster_shared::flow::{Grantor, Rights, TaskRights};
use muster_tools::settings::McpSettings;
use muster_tools::{Permission, ToolFailure};
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What the servers know and count.
#[derive(Default)]
struct Known {
    base: String,
    /// Tokens that count now; any request does when there are none.
    tokens: Vec<String>,
    /// Seconds for which a token is given.
    expires_in: u64,
    /// Code challenges by code.
    challenges: HashMap<String, String>,
    session: u32,
    handshakes: u32,
    calls: u32,
    refreshed: u32,
    headers: Vec<HeaderMap>,
    denies: bool,
}

type Shared = Arc<Mutex<Known>>;

async fn serve(known: Known) -> Shared {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let shared = Arc::new(Mutex::new(Known { base, ..known }));
    let app = Router::new().fallback(answer).with_state(shared.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    shared
}

async fn answer(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut known = shared.lock().unwrap();
    let base = known.base.clone();
    match (method.as_str(), uri.path()) {
        ("POST", "/mcp") => mcp(&mut known, headers, &body),
        ("GET", "/mcp") => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        ("DELETE", "/mcp") => StatusCode::OK.into_response(),
        ("GET", "/.well-known/oauth-protected-resource" | "/.well-known/oauth-protected-resource/mcp") => {
            axum::Json(json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
                .into_response()
        }
        ("GET", "/.well-known/oauth-authorization-server") => axum::Json(json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }))
        .into_response(),
        ("POST", "/register") => {
            let asked: Value = serde_json::from_slice(&body).unwrap();
            let registered = json!({"client_id": "muster-1", "redirect_uris": asked["redirect_uris"]});
            (StatusCode::CREATED, axum::Json(registered)).into_response()
        }
        ("GET", "/authorize") => authorized(&mut known, &uri),
        ("POST", "/token") => token(&mut known, &body),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn pairs(query: &str) -> HashMap<String, String> {
    let url = Url::parse(&format!("http://x/?{query}")).unwrap();
    url.query_pairs().map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
}

fn authorized(known: &mut Known, uri: &Uri) -> Response {
    let asked = pairs(uri.query().unwrap());
    assert_eq!((asked["response_type"].as_str(), asked["code_challenge_method"].as_str()), ("code", "S256"));
    assert_eq!(asked["resource"], format!("{}/mcp", known.base));
    let back = if known.denies {
        format!("{}?error=access_denied&state={}", asked["redirect_uri"], asked["state"])
    } else {
        known.challenges.insert("code-1".to_owned(), asked["code_challenge"].clone());
        format!("{}?code=code-1&state={}", asked["redirect_uri"], asked["state"])
    };
    (StatusCode::FOUND, [("location", back)]).into_response()
}

fn token(known: &mut Known, body: &[u8]) -> Response {
    let asked = pairs(std::str::from_utf8(body).unwrap());
    let token = match asked["grant_type"].as_str() {
        "authorization_code" => {
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(asked["code_verifier"].as_bytes()));
            if known.challenges.remove(&asked["code"]) != Some(challenge) {
                return (StatusCode::BAD_REQUEST, axum::Json(json!({"error": "invalid_grant"})))
                    .into_response();
            }
            "first"
        }
        "refresh_token" if asked["refresh_token"] == "again" => {
            known.refreshed += 1;
            "second"
        }
        _ => return (StatusCode::BAD_REQUEST, axum::Json(json!({"error": "invalid_grant"}))).into_response(),
    };
    let expires_in = if token == "first" { known.expires_in } else { 3_600 };
    let given = json!({"access_token": token, "token_type": "Bearer", "expires_in": expires_in, "refresh_token": "again"});
    axum::Json(given).into_response()
}

fn mcp(known: &mut Known, headers: HeaderMap, body: &[u8]) -> Response {
    let shown =
        headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let session = headers.get("mcp-session-id").map(|value| value.to_str().unwrap().to_owned());
    known.headers.push(headers);
    if !known.tokens.is_empty() && !known.tokens.iter().any(|token| shown == format!("Bearer {token}")) {
        let where_to =
            format!("Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"", known.base);
        return (StatusCode::UNAUTHORIZED, [("www-authenticate", where_to)]).into_response();
    }
    let message: Value = serde_json::from_slice(body).unwrap();
    let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
    if method == "initialize" {
        known.session += 1;
        known.handshakes += 1;
        let result = json!({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}}});
        return ([("mcp-session-id", known.session.to_string())], axum::Json(result)).into_response();
    }
    if method == "server/discover" {
        let refusal =
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}});
        return axum::Json(refusal).into_response();
    }
    if session != Some(known.session.to_string()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let result = match method {
        "tools/list" => json!({"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            known.calls += 1;
            json!({"content": [{"type": "text", "text": format!("call {}", known.calls)}]})
        }
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

fn config(shared: &Shared, headers: &[(&str, &str)]) -> ServerConfig {
    let url = format!("{}/mcp", shared.lock().unwrap().base).parse().unwrap();
    let headers: BTreeMap<_, _> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    let reached = Reached::Http(HttpEndpoint { url, headers });
    ServerConfig { name: "remote".to_owned(), namespace: "remote".to_owned(), reached }
}

async fn start(config: ServerConfig, callbacks: &Callbacks) -> Result<McpServer, McpError> {
    let settings = McpSettings { restart_pause: Duration::from_millis(20), ..McpSettings::default() };
    McpServer::start(config, &settings, callbacks).await
}

#[tokio::test]
async fn headers_of_the_file_go_with_every_request_and_a_lost_session_is_made_anew() {
    let shared = serve(Known::default()).await;
    let server = start(config(&shared, &[("x-key", "s3cret")]), &Callbacks::default()).await.unwrap();
    let spec = tool(&server, "count").spec();
    assert!(spec.grants.contains(&Permission::Network) && !spec.grants.contains(&Permission::Execute));
    assert_eq!(said(&server, "count", json!({})).await, "call 1");
    shared.lock().unwrap().session += 1;
    assert_eq!(said(&server, "count", json!({})).await, "call 2");
    let known = shared.lock().unwrap();
    assert_eq!(known.handshakes, 2);
    assert!(known.headers.iter().all(|headers| headers["x-key"] == "s3cret"));
}

#[tokio::test]
async fn a_task_that_may_not_reach_the_host_does_not() {
    let shared = serve(Known::default()).await;
    let server = start(config(&shared, &[]), &Callbacks::default()).await.unwrap();
    let narrow: Rights = serde_json::from_value(json!({"hosts": ["example.org"]})).unwrap();
    let ctx = context().within(Arc::new(TaskRights::default().narrowed_by(Grantor::Goal, &narrow)));
    let refused = tool(&server, "count").call(&ctx, json!({})).await.unwrap_err();
    assert!(matches!(refused, ToolFailure::NoRight(_)), "{refused:?}");
    assert_eq!(shared.lock().unwrap().calls, 0);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_as_such() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let shared = Arc::new(Mutex::new(Known { base: format!("http://{free}"), ..Known::default() }));
    let error = start(config(&shared, &[]), &Callbacks::default()).await.err().expect("no server");
    assert!(matches!(error, McpError::NoConnection { .. }), "{error}");
}

/// Does what a person's browser does.
fn browser(url: &str) {
    let url = url.to_owned();
    tokio::spawn(async move {
        let client =
            reqwest::Client::builder().redirect(reqwest::redirect::Policy::limited(3)).build().unwrap();
        let page = client.get(url).send().await.unwrap();
        assert!(page.status().is_success());
    });
}

fn elsewhere() -> HttpEndpoint {
    HttpEndpoint { url: "http://127.0.0.1:9/mcp".parse().unwrap(), headers: BTreeMap::new() }
}

#[tokio::test]
async fn a_person_authorizes_once_and_the_token_is_refreshed_without_one() {
    let known = Known { tokens: vec!["first".to_owned()], expires_in: 3_600, ..Known::default() };
    let shared = serve(known).await;
    let config = config(&shared, &[]);
    let folder = tempfile::tempdir().unwrap();
    let callbacks = Callbacks { tokens: Some(folder.path().to_owned()), ..Callbacks::default() };
    let error = start(config.clone(), &callbacks).await.err().expect("nobody authorized it");
    assert_eq!(error, McpError::NeedsAuthorization { server: "remote".to_owned() });

    authorize(&config, folder.path(), common::PATIENCE, browser).await.unwrap();
    let file = std::fs::read_dir(folder.path()).unwrap().flatten().next().expect("the token is kept").path();
    assert_eq!(authorization(&config, folder.path()).await, Ok(Authorization::Kept { renews: true }));
    let moved = ServerConfig { reached: Reached::Http(elsewhere()), ..config.clone() };
    assert_eq!(
        authorization(&moved, folder.path()).await,
        Ok(Authorization::None),
        "another address is shown nothing"
    );
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let server = start(config.clone(), &callbacks).await.unwrap();
    assert_eq!(said(&server, "count", json!({})).await, "call 1");
    assert_eq!(shared.lock().unwrap().refreshed, 0);
    server.stop().await;

    // The token is old, and the server takes only the next one.
    let mut stored: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    stored["token_received_at"] = json!(1_000);
    std::fs::write(&file, stored.to_string()).unwrap();
    shared.lock().unwrap().tokens = vec!["second".to_owned()];
    let server = start(config, &callbacks).await.unwrap();
    assert_eq!(said(&server, "count", json!({})).await, "call 2");
    assert_eq!(shared.lock().unwrap().refreshed, 1);
    assert!(std::fs::read_to_string(&file).unwrap().contains("second"), "the new token is kept");
}

#[tokio::test]
async fn an_authorization_that_is_revoked_is_told_in_a_call() {
    let shared =
        serve(Known { tokens: vec!["first".to_owned()], expires_in: 3_600, ..Known::default() }).await;
    let config = config(&shared, &[]);
    let folder = tempfile::tempdir().unwrap();
    let callbacks = Callbacks { tokens: Some(folder.path().to_owned()), ..Callbacks::default() };
    authorize(&config, folder.path(), common::PATIENCE, browser).await.unwrap();
    let server = start(config, &callbacks).await.unwrap();
    shared.lock().unwrap().tokens = vec!["another".to_owned()];
    let refused = call(&server, "count", json!({})).await.unwrap_err();
    assert!(
        matches!(&refused, ToolFailure::Unavailable(why) if why.contains("authorization")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_authorization_that_is_turned_down_or_never_comes_is_told() {
    let shared = serve(Known { tokens: vec!["first".to_owned()], denies: true, ..Known::default() }).await;
    let folder = tempfile::tempdir().unwrap();
    let config = config(&shared, &[]);
    let denied = authorize(&config, folder.path(), common::PATIENCE, browser).await.unwrap_err();
    assert!(denied.to_string().contains("access_denied"), "{denied}");
    let late = authorize(&config, folder.path(), Duration::from_millis(300), |_| {}).await.unwrap_err();
    assert!(late.to_string().contains("nobody came back"), "{late}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is kept");
    let child = common::child("local", "true", Vec::new());
    assert!(authorize(&child, folder.path(), common::PATIENCE, |_| {}).await.is_err());
}

#[tokio::test]
async fn whoever_else_knocks_at_the_callback_is_sent_away() {
    let shared =
        serve(Known { tokens: vec!["first".to_owned()], expires_in: 3_600, ..Known::default() }).await;
    let folder = tempfile::tempdir().unwrap();
    let open = |url: &str| {
        let url = Url::parse(url).unwrap();
        let back = url.query_pairs().find(|(key, _)| key == "redirect_uri").unwrap().1.into_owned();
        tokio::spawn(async move {
            let stray = back.replace("/callback", "/favicon.ico");
            assert_eq!(reqwest::get(stray).await.unwrap().status(), 404);
            browser(url.as_str());
        });
    };
    authorize(&config(&shared, &[]), folder.path(), common::PATIENCE, open).await.unwrap();
    let forged = |url: &str| {
        let url = Url::parse(url).unwrap();
        let back = url.query_pairs().find(|(key, _)| key == "redirect_uri").unwrap().1.into_owned();
        tokio::spawn(async move { reqwest::get(format!("{back}?code=code-1&state=forged")).await });
    };
    let error = authorize(&config(&shared, &[]), folder.path(), common::PATIENCE, forged).await;
    assert!(error.is_err(), "a code without our state is not taken");
}
