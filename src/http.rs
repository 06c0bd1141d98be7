//! How this binary serves HTTP: connections within limits, whose requests a router answers.
//!
//! Whoever may connect can send what he likes, as slowly and as often as he likes. How many are heard at once, how long each may
//! take and how much he may say before he is understood is bounded here, before a router sees anything of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service as _;

/// Pause when no connection can be taken for want of files.
const SHORT_OF: Duration = Duration::from_millis(50);

/// How long it is waited for connections to be closed when it ends.
const CLOSING: Duration = Duration::from_secs(2);

/// Room for headers with less than which hyper does not begin, in bytes.
const LEAST_HEAD: usize = 8 * 1024;

/// What whoever connects may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Most connections at once. Whoever comes when there are as many waits to be taken.
    pub(crate) connections: usize,
    /// Largest headers, in bytes; 8 KiB at least.
    pub(crate) head: usize,
    /// How long a client may take to send its headers, and to send the next request on a connection that is kept.
    pub(crate) patience: Duration,
    /// How long a connection may last; nothing where an answer may go on for as long as somebody looks on.
    pub(crate) whole: Option<Duration>,
    /// Whether connections are kept for further requests.
    pub(crate) keeps: bool,
}

/// Who has connected: every request brings it as an extension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// A connection, with its place among those that are served at once.
struct Taken {
    stream: TcpStream,
    peer: Peer,
    place: OwnedSemaphorePermit,
}

/// Has a router answer what is asked at an address, until told to stop. What is being answered then is broken off.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let connections = TaskTracker::new();
    while let Some(taken) = stop.run_until_cancelled(next(&listener, &places)).await.flatten() {
        let Taken { stream, peer, place } = taken;
        let (router, stop) = (router.clone(), stop.clone());
        connections.spawn(async move {
            let _stopped = stop.run_until_cancelled(talk(stream, peer, router, limits)).await;
            drop(place);
        });
    }
    connections.close();
    let _ = timeout(CLOSING, connections.wait()).await;
}

/// Whoever connects next, once there is a place for him; nothing where there are no more places, which nobody does away with.
async fn next(listener: &TcpListener, places: &Arc<Semaphore>) -> Option<Taken> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return Some(Taken { stream, peer: Peer(peer), place }),
            Err(error) => {
                // Too many open files: it passes.
                tracing::debug!(%error, "a connection cannot be taken");
                sleep(SHORT_OF).await;
            }
        }
    }
}

/// Serves one connection.
async fn talk(stream: TcpStream, peer: Peer, router: Router, limits: Limits) {
    // Small pieces, such as events, are not held back until more comes.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        router.clone().call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.patience)
        .max_buf_size(limits.head.max(LEAST_HEAD))
        .keep_alive(limits.keeps)
        .serve_connection(TokioIo::new(stream), service);
    let ended = match limits.whole {
        Some(whole) => timeout(whole, connection).await,
        None => Ok(connection.await),
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection ended"),
        Err(_) => tracing::debug!("a connection took too long"),
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
