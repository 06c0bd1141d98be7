//! How this binary serves HTTP: connections within limits, whose requests a router answers.
//!
//! Whoever may connect can send what he likes, as slowly and as often as he likes. How many are heard at once, how long each may
//! take and how much he may say before he is understood is bounded here, before a router sees anything of it.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::http::Request;
use futures::{StreamExt, stream};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use muster_shared::sync::lock;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service as _;

/// Pause when no connection can be accepted for want of files or of room. A connection that waits for less is not closed for another one.
const SHORT_OF: Duration = Duration::from_millis(50);

/// How long it is waited for connections to be closed when it ends.
const CLOSING: Duration = Duration::from_secs(2);

/// Room for headers with less than which hyper does not begin, in bytes.
const LEAST_HEAD: usize = 8 * 1024;

/// What whoever connects may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Most connections at once. A further one replaces the oldest one without a request in progress of the address that has
    /// most connections, or waits.
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

/// A connection in the table.
struct OpenConnection {
    /// True after the first answer, with the start of the wait for the next request; absent while a complete request is in
    /// progress. Connections are closed for others in this order.
    idle: Mutex<Option<(bool, Instant)>>,
    address: IpAddr,
    close: CancellationToken,
}

/// Has a router answer what is asked at an address, until told to stop. What is being answered then is broken off.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: CancellationToken) {
    let mut table = Vec::new();
    let connections = TaskTracker::new();
    while let Some((stream, peer)) = stop.run_until_cancelled(next(&listener, &mut table, limits)).await {
        let idle = Mutex::new(Some((false, Instant::now())));
        let connection = Arc::new(OpenConnection { idle, address: peer.ip(), close: stop.child_token() });
        table.push(Arc::clone(&connection));
        let router = router.clone();
        connections.spawn(async move {
            let talk = talk(stream, Peer(peer), router, limits, &connection);
            let _stopped = connection.close.run_until_cancelled(talk).await;
        });
    }
    connections.close();
    let _ = timeout(CLOSING, connections.wait()).await;
}

/// The next connection, as soon as the table has room for it.
async fn next(
    listener: &TcpListener,
    table: &mut Vec<Arc<OpenConnection>>,
    limits: Limits,
) -> (TcpStream, SocketAddr) {
    let accepted = loop {
        match listener.accept().await {
            Ok(accepted) => break accepted,
            Err(error) => {
                // Too many open files: it passes.
                tracing::debug!(%error, "a connection cannot be taken");
                sleep(SHORT_OF).await;
            }
        }
    };
    loop {
        // The task of a connection that ended holds it no longer.
        table.retain(|one| Arc::strong_count(one) > 1);
        if table.len() < limits.connections {
            return accepted;
        }
        let of = |address: IpAddr| table.iter().filter(|one| one.address == address).count();
        let idle = table.iter().enumerate().filter_map(|(at, one)| Some(((*lock(&one.idle))?, at)));
        let idle = idle.filter(|((_, since), _)| since.elapsed() >= SHORT_OF);
        match idle.min_by_key(|&(idle, at)| (Reverse(of(table[at].address)), idle)) {
            Some((_, at)) => table.remove(at).close.cancel(),
            None => sleep(SHORT_OF).await,
        }
    }
}

/// Serves one connection.
async fn talk(
    stream: TcpStream,
    peer: Peer,
    router: Router,
    limits: Limits,
    connection: &Arc<OpenConnection>,
) {
    // Small pieces, such as events, are not held back until more comes.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| {
        let mut request = request.map(|body| {
            if body.is_end_stream() {
                *lock(&connection.idle) = None;
                return Body::new(body);
            }
            let connection = Arc::clone(connection);
            // A request whose body does not end is not complete.
            let end = stream::poll_fn(move |_| {
                *lock(&connection.idle) = None;
                Poll::Ready(None)
            });
            Body::from_stream(Body::new(body).into_data_stream().chain(end))
        });
        request.extensions_mut().insert(peer);
        let mut router = router.clone();
        async move {
            let answer = router.call(request).await?;
            // A stream stays in progress until the next request.
            if answer.body().size_hint().exact().is_some() {
                *lock(&connection.idle) = Some((true, Instant::now()));
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.patience)
        .max_buf_size(limits.head.max(LEAST_HEAD))
        .keep_alive(limits.keeps)
        .serve_connection(TokioIo::new(stream), service);
    let ended = match limits.whole {
        Some(whole) => timeout(whole, serving).await,
        None => Ok(serving.await),
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
