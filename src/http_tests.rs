//! What may come over connections: too much, too slowly, too many at once; and what is asked in good order.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(100);
const LIMITS: Limits =
    Limits { connections: 2, head: LEAST_HEAD, patience: LIMIT, whole: None, keeps: false };

struct Serving {
    at: SocketAddr,
    stop: CancellationToken,
    ends: JoinHandle<()>,
}

async fn serving(router: Router, limits: Limits) -> Serving {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (at, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    Serving { at, stop: stop.clone(), ends: tokio::spawn(serve(listener, router, limits, stop)) }
}

/// Begins to ask.
async fn asking(at: SocketAddr, said: &str) -> TcpStream {
    let mut stream = TcpStream::connect(at).await.unwrap();
    // Whoever says too much is not heard to the end.
    let _ = stream.write_all(said.as_bytes()).await;
    stream
}

/// What is answered until the connection is closed, in good order or not.
async fn heard(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let closed = timeout(LIMIT, stream.read_to_end(&mut answer)).await;
    assert!(closed.is_ok(), "the connection stays open");
    String::from_utf8_lossy(&answer).into_owned()
}

fn tells_peer() -> Router {
    let tell = |request: Request<Body>| async move {
        request.extensions().get::<Peer>().map(|Peer(at)| at.ip().to_string()).unwrap_or_default()
    };
    Router::new().route("/", get(tell))
}

#[tokio::test]
async fn both_versions_are_answered_and_the_connection_is_closed() {
    let serving = serving(tells_peer(), LIMITS).await;
    for (method, version, body) in
        [("GET", "1.0", "127.0.0.1"), ("GET", "1.1", "127.0.0.1"), ("HEAD", "1.1", "")]
    {
        let said = format!("{method} / HTTP/{version}\r\nHost: a\r\nConnection: close\r\n\r\n");
        let answer = heard(asking(serving.at, &said).await).await;
        assert!(answer.starts_with(&format!("HTTP/{version} 200 ")), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
    }
    // Nobody has to ask for it.
    let answer = heard(asking(serving.at, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await).await;
    assert!(answer.to_lowercase().contains("\r\nconnection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn what_is_too_much_or_no_request_is_not_answered() {
    let serving = serving(tells_peer(), LIMITS).await;
    let much = "a".repeat(64 * 1024);
    for said in [
        format!("GET / HTTP/1.1\r\nHost: a\r\nX-Much: {much}\r\n\r\n"),
        format!("GET /{much} HTTP/1.1\r\nHost: a\r\n\r\n"),
        much.clone(),
        "hello\r\n\r\n".to_owned(),
    ] {
        let answer = heard(asking(serving.at, &said).await).await;
        assert!(!answer.contains(" 200 "), "{answer}");
    }
}

#[tokio::test]
async fn whoever_is_slow_is_sent_away() {
    let serving_head = serving(tells_peer(), Limits { patience: SOON, ..LIMITS }).await;
    for said in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n"] {
        let answer = heard(asking(serving_head.at, said).await).await;
        assert!(!answer.contains(" 200 "), "{answer}");
    }
    let never = Router::new().route("/", get(std::future::pending::<String>));
    let serving_whole = serving(never, Limits { whole: Some(SOON), ..LIMITS }).await;
    assert_eq!(heard(asking(serving_whole.at, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await).await, "");
}

#[tokio::test]
async fn no_more_are_served_at_once_than_may_be() {
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (gate, (came, mut comes)) = (Arc::new(Semaphore::new(0)), mpsc::unbounded_channel());
    let waits = {
        let (gate, most) = (Arc::clone(&gate), Arc::clone(&most));
        move || async move {
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            came.send(()).unwrap();
            gate.acquire().await.unwrap().forget();
            inside.fetch_sub(1, Ordering::SeqCst);
            "done"
        }
    };
    let serving = serving(Router::new().route("/", get(waits)), LIMITS).await;
    let mut asked = Vec::new();
    for _ in 0..5 {
        asked.push(asking(serving.at, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await);
    }
    for _ in 0..LIMITS.connections {
        timeout(LIMIT, comes.recv()).await.unwrap().unwrap();
    }
    gate.add_permits(asked.len());
    for stream in asked {
        assert!(heard(stream).await.ends_with("done"));
    }
    assert_eq!(most.load(Ordering::SeqCst), LIMITS.connections);
}

/// Requests that are not complete, and connections that wait for the next request, leave room for a new one.
#[tokio::test]
async fn a_full_table_closes_the_oldest_idle_connection() {
    let here = Router::new().route("/", get(|| async { "here" }).post(|_: String| async { "here" }));
    let serving = serving(here, Limits { patience: LIMIT * 3, keeps: true, ..LIMITS }).await;
    let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let (start, rest) = last.split_at(9);
    let post = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\nab";
    let kept = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for (first, then) in [("", last), (start, rest), (post, "cd"), (kept, last)] {
        let oldest = asking(serving.at, first).await;
        let mut newer = asking(serving.at, first).await;
        assert!(heard(asking(serving.at, last).await).await.ends_with("here"), "{first}");
        heard(oldest).await;
        newer.write_all(then.as_bytes()).await.unwrap();
        assert!(heard(newer).await.ends_with("here"), "{first}");
    }
}

#[tokio::test]
async fn the_address_with_most_connections_makes_room_first() {
    let serving = serving(tells_peer(), Limits { connections: 3, ..LIMITS }).await;
    let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(serving.at).await.unwrap();
    let _greedy = [asking(serving.at, "").await, asking(serving.at, "").await];
    assert!(heard(asking(serving.at, last).await).await.ends_with("127.0.0.1"));
    other.write_all(last.as_bytes()).await.unwrap();
    assert!(heard(other).await.ends_with("127.0.0.2"));
}

#[tokio::test]
async fn an_answer_that_goes_on_is_not_closed_for_others() {
    let gate = Arc::new(Semaphore::new(0));
    let goes_on = {
        let gate = Arc::clone(&gate);
        move || async move {
            let end = async move { gate.acquire().await.map(|_| "end").map_err(std::io::Error::other) };
            Body::from_stream(stream::once(end))
        }
    };
    let serving = serving(Router::new().route("/", get("here")).route("/on", get(goes_on)), LIMITS).await;
    let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut streamed = asking(serving.at, &ask("/on")).await;
    timeout(LIMIT, streamed.read_exact(&mut [0; 12])).await.unwrap().unwrap();
    let silent = asking(serving.at, "").await;
    assert!(heard(asking(serving.at, &ask("/")).await).await.contains("here"));
    heard(silent).await;
    gate.add_permits(1);
    assert!(heard(streamed).await.contains("end"));
}

#[tokio::test]
async fn it_ends_when_it_is_told_to_whoever_is_still_there() {
    let serving = serving(tells_peer(), Limits { keeps: true, ..LIMITS }).await;
    let mut kept = asking(serving.at, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut first = [0; 12];
    timeout(LIMIT, kept.read_exact(&mut first)).await.unwrap().unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    serving.stop.cancel();
    timeout(LIMIT, serving.ends).await.unwrap().unwrap();
    heard(kept).await;
}
