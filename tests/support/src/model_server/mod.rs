//! A scripted model server: answers as told, misbehaves as told, and keeps what it was asked.
//!
//! It speaks OpenAI's chat completions (`/v1/chat/completions`), Anthropic's messages (`/v1/messages`), Gemini's
//! `generateContent` and Ollama's `/api/chat`, streamed or whole, on a random port of 127.0.0.1. It runs on a thread
//! and runtime of its own, so that tests of any kind and benchmarks can use it, and ends when dropped.

mod limit;
mod log;
mod protocol;
mod reply;
mod request;
mod script;
mod serve;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use log::LogEntry;
pub use protocol::Protocol;
pub use reply::{Fault, Reply, ScriptedCall};
pub use request::{CapturedRequest, SeenCall, SeenMessage};
pub use script::Script;

/// A running server.
pub struct ModelServer {
    address: SocketAddr,
    state: Arc<serve::State>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server that answers by `script`.
    ///
    /// # Errors
    /// When no port can be bound or the thread cannot be started.
    pub fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = Arc::new(serve::State::new(script));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("model-server".into()).spawn({
            let state = Arc::clone(&state);
            move || {
                runtime.block_on(serve::run(listener, state, stopped));
                // Replies that hang on purpose end here.
                runtime.shutdown_background();
            }
        })?;
        Ok(Self { address, state, stop: Some(stop), thread: Some(thread) })
    }

    /// The address to set as `OPENAI_BASE_URL`, without a trailing slash.
    #[must_use]
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The address to set as `ANTHROPIC_BASE_URL`, `OLLAMA_HOST` or (with `/v1beta`) for Gemini.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in order of arrival (the latest ones, when the script limits the log).
    #[must_use]
    pub fn log(&self) -> Vec<LogEntry> {
        self.state.log.entries()
    }

    /// How many requests have arrived, kept in the log or not.
    #[must_use]
    pub fn arrived(&self) -> usize {
        self.state.log.arrived()
    }

    /// How many replies were sent to their end.
    #[must_use]
    pub fn completed(&self) -> usize {
        self.state.log.completed()
    }

    /// How many requests were refused because there were too many.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.state.log.refused()
    }

    /// What was wrong with requests: broken rules of the protocol, or requests that no rule of the script fits.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.state.log.violations()
    }

    /// Time since the server started; the times in the log count from then.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.state.log.now()
    }

    /// Waits until `condition` holds for this server.
    ///
    /// # Errors
    /// A text with what had arrived, after `limit`.
    pub fn wait_until(&self, limit: Duration, condition: impl Fn(&Self) -> bool) -> Result<(), String> {
        let begun = Instant::now();
        while !condition(self) {
            if begun.elapsed() > limit {
                return Err(format!(
                    "not within {limit:?}: {} requests arrived, {} completed, violations: {:?}",
                    self.arrived(),
                    self.completed(),
                    self.violations()
                ));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
