//! Messages to and from the browser: JSON with a zero byte behind each.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Most things that pages said which are remembered.
const MOST_SAID: usize = 10_000;

/// What is asked and not answered yet.
type Waiting = HashMap<u64, Sender<Result<Value, String>>>;

/// Both directions.
pub(super) struct Pipe {
    to: Mutex<ChildStdin>,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
    said: Mutex<Vec<Value>>,
}

impl Pipe {
    /// Begins to listen.
    pub(super) fn begin(to: ChildStdin, from: ChildStdout) -> io::Result<Arc<Self>> {
        let pipe = Arc::new(Self {
            to: Mutex::new(to),
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            said: Mutex::default(),
        });
        let listening = Arc::clone(&pipe);
        std::thread::Builder::new().name("browser".to_owned()).spawn(move || listening.listen(from))?;
        Ok(pipe)
    }

    /// Asks something, of a page where one is named, and waits for the answer.
    pub(super) fn ask(&self, session: Option<&str>, method: &str, params: &Value) -> io::Result<Value> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let (tell, told) = channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, tell);
        {
            let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
            to.write_all(format!("{message}\0").as_bytes())?;
            to.flush()?;
        }
        let answer = told.recv_timeout(LIMIT);
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        match answer {
            Ok(answer) => answer.map_err(|why| io::Error::other(format!("{method}: {why}"))),
            Err(_) => Err(io::Error::other(format!("{method}: the browser gave no answer"))),
        }
    }

    /// What a page said since it was asked last.
    pub(super) fn said(&self, session: &str) -> Vec<Value> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let (of_page, rest) = said.drain(..).partition(|one| one["sessionId"] == session);
        *said = rest;
        of_page
    }

    fn listen(&self, from: ChildStdout) {
        let (mut from, mut bytes) = (BufReader::new(from), Vec::new());
        while from.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
            bytes.pop();
            if let Ok(message) = serde_json::from_slice(&bytes) {
                self.take(message);
            }
            bytes.clear();
        }
        // Whoever waits is told that there is nobody any more.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn take(&self, message: Value) {
        if let Some(id) = message["id"].as_u64() {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            let answer = match message.get("error") {
                Some(error) => Err(error.to_string()),
                None => Ok(message["result"].clone()),
            };
            if let Some(waiting) = waiting {
                let _ = waiting.send(answer);
            }
            return;
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < MOST_SAID {
            said.push(message);
        }
    }
}
