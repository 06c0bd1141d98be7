//! Listens on this machine, and serves the page and what it asks for.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::DefaultBodyLimit;
use axum::{Router, middleware};
use muster_bus::credentials::DashboardRole;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::state::Ui;
use super::{api, assets, door};
use crate::app::App;
use crate::exit::Failure;
use crate::http::{self, Limits};

/// Most connections at once; more wait. A browser opens six at most.
const MAX_CONNECTIONS: usize = 128;

/// How long a client may take to send its headers, and to send the next request on a connection that is kept.
const HEADERS: Duration = Duration::from_secs(15);
/// Largest headers, in bytes.
const MOST_HEADERS: usize = 32 * 1024;
/// How long a fleet that is up is waited for before the first page is served.
const FIRST: Duration = Duration::from_secs(2);

/// A dashboard that listens.
pub(crate) struct Listening {
    ui: Arc<Ui>,
    listener: TcpListener,
}

/// Begins to listen on the port; where that is taken and `or_any`, on another one.
///
/// # Errors
/// When it cannot be listened there.
pub(crate) async fn listen(app: &App, port: u16, or_any: bool) -> Result<Listening, Failure> {
    let bind = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let listener = match bind(port).await {
        Err(error) if or_any && error.kind() == std::io::ErrorKind::AddrInUse => bind(0).await,
        bound => bound,
    };
    let cannot = |error: std::io::Error| {
        Failure::failed(format!("cannot listen on 127.0.0.1:{port}: {error}"))
            .help("give another port with --port; 0 takes any that is free")
    };
    let listener = listener.map_err(cannot)?;
    let port = listener.local_addr().map_err(cannot)?.port();
    assets::prepare();
    Ok(Listening { ui: Arc::new(Ui::new(app, port)), listener })
}

impl Listening {
    /// Where.
    pub(crate) fn port(&self) -> u16 {
        self.ui.port
    }

    /// Makes sure whether there is a fleet, as far as that is soon known, and tells in whose name its owner speaks.
    pub(crate) async fn role(&self) -> DashboardRole {
        self.ui.hub.settled(FIRST).await;
        let signatures = self.ui.bus().ok().map(|bus| bus.signatures().clone());
        match signatures {
            // Who may give no orders may look.
            Some(signatures) if signatures.demanded() && !signatures.gives_orders() => DashboardRole::Auditor,
            _ => DashboardRole::Admin,
        }
    }

    /// Makes addresses that log somebody in once, each with its token, while this serves.
    pub(crate) fn addresses(&self) -> impl Fn(DashboardRole) -> (String, String) + Send + 'static {
        let ui = Arc::clone(&self.ui);
        move |role| {
            let token = ui.sessions.link(role, Instant::now());
            (format!("http://127.0.0.1:{}/#token={token}", ui.port), token)
        }
    }

    /// Serves until told to stop.
    pub(crate) async fn serve(self, stop: CancellationToken) {
        let Self { ui, listener } = self;
        let limits = Limits {
            connections: MAX_CONNECTIONS,
            head: MOST_HEADERS,
            patience: HEADERS,
            // Whoever looks on is told of events for as long as he does; other answers have a limit of their own.
            whole: None,
            keeps: true,
        };
        http::serve(listener, router(&ui), limits, stop).await;
    }
}

fn router(ui: &Arc<Ui>) -> Router {
    let limit = crate::settings::MAX_REQUEST as usize;
    api::router()
        .layer(DefaultBodyLimit::max(limit))
        .layer(middleware::from_fn_with_state(Arc::clone(ui), door::guard))
        .with_state(Arc::clone(ui))
}
