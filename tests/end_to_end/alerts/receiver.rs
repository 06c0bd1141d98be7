//! A receiver of webhooks, which can fail and redirect.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::Value;

/// What it does with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Takes them.
    Takes,
    /// Answers with this status.
    Says(u16),
    /// Sends them elsewhere.
    Redirects,
}

/// A request that came.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) mode: Mode,
    pub(super) body: String,
}

impl Request {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

struct Inner {
    mode: Mode,
    requests: Vec<Request>,
}

/// The receiver.
#[derive(Clone)]
pub(super) struct Receiver {
    port: u16,
    inner: Arc<Mutex<Inner>>,
}

impl Receiver {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let inner = Arc::new(Mutex::new(Inner { mode: Mode::Takes, requests: Vec::new() }));
        let receiver = Self { port, inner };
        let served = receiver.clone();
        let answer = move |uri: Uri, body: String| async move { served.answer(uri.path(), body) };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, Router::new().fallback(answer)).await.unwrap();
            });
        });
        receiver
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub(super) fn set(&self, mode: Mode) {
        self.inner.lock().unwrap().mode = mode;
    }

    /// All that came, in whichever mode.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.inner.lock().unwrap().requests.clone()
    }

    /// What was taken.
    pub(super) fn taken(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.mode == Mode::Takes).collect()
    }

    fn answer(&self, path: &str, body: String) -> Response {
        let mut inner = self.inner.lock().unwrap();
        let mode = inner.mode;
        inner.requests.push(Request { path: path.to_owned(), mode, body });
        match mode {
            Mode::Takes => StatusCode::NO_CONTENT.into_response(),
            Mode::Says(status) => StatusCode::from_u16(status).unwrap().into_response(),
            Mode::Redirects => {
                Redirect::temporary(&format!("http://127.0.0.1:{}/elsewhere", self.port)).into_response()
            }
        }
    }
}
