//! A receiver of webhooks, which can be down, hang, fail and redirect.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

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
    /// Nobody listens.
    Down,
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
        let port = listener.local_addr().unwrap().port();
        let inner = Arc::new(Mutex::new(Inner { mode: Mode::Takes, requests: Vec::new() }));
        let receiver = Self { port, inner };
        let served = receiver.clone();
        thread::spawn(move || served.serve(Some(listener)));
        receiver
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub(super) fn set(&self, mode: Mode) {
        self.inner.lock().unwrap().mode = mode;
    }

    fn mode(&self) -> Mode {
        self.inner.lock().unwrap().mode
    }

    /// All that came, in whichever mode.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.inner.lock().unwrap().requests.clone()
    }

    /// What was taken.
    pub(super) fn taken(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.mode == Mode::Takes).collect()
    }

    fn serve(&self, mut listener: Option<TcpListener>) {
        loop {
            if self.mode() == Mode::Down {
                listener = None;
            } else if listener.is_none() {
                listener = TcpListener::bind(("127.0.0.1", self.port)).ok();
            }
            if let Some(open) = &listener {
                open.set_nonblocking(true).unwrap();
                if let Ok((stream, _)) = open.accept() {
                    stream.set_nonblocking(false).unwrap();
                    let served = self.clone();
                    thread::spawn(move || served.answer(stream));
                    continue;
                }
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let request = read(&mut stream, self.mode())?;
        let mode = request.mode;
        self.inner.lock().unwrap().requests.push(request);
        let (status, location) = match mode {
            Mode::Takes => ("204 No Content".to_owned(), String::new()),
            Mode::Says(status) => (format!("{status} So"), String::new()),
            Mode::Redirects => (
                "307 Elsewhere".to_owned(),
                format!("Location: http://127.0.0.1:{}/elsewhere\r\n", self.port),
            ),
            Mode::Down => return None,
        };
        let answer = format!("HTTP/1.1 {status}\r\n{location}Content-Length: 0\r\nConnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).ok()
    }
}

fn read(stream: &mut TcpStream, mode: Mode) -> Option<Request> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    let mut more = |bytes: &mut Vec<u8>, stream: &mut TcpStream| {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        Some(())
    };
    let end = loop {
        match bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            Some(end) => break end,
            None => more(&mut bytes, stream)?,
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: Vec<(String, String)> = lines.filter_map(header).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, n)| n.parse().ok());
    let length: usize = length.unwrap_or(0);
    while bytes.len() < end + 4 + length {
        more(&mut bytes, stream)?;
    }
    let body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
    Some(Request { path, mode, body })
}
