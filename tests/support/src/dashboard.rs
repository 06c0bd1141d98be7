//! A dashboard that runs beside a fleet.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};

use serde_json::Value;

use crate::fleet::Folder;

/// A process of `muster ui`, which ends with this.
#[derive(Debug)]
pub struct Dashboard {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    base: String,
    port: u64,
    token: String,
}

impl Dashboard {
    /// Starts it on any port, with more words of the command line.
    ///
    /// # Errors
    /// When it cannot be started, or does not say where it is.
    pub fn start(folder: &Folder, more: &[&str]) -> io::Result<Self> {
        Self::start_on(folder, 0, more)
    }

    fn start_on(folder: &Folder, port: u64, more: &[&str]) -> io::Result<Self> {
        let port = port.to_string();
        let words = [&["ui", "--json", "--port", &port], more].concat();
        let mut child = folder.command(&words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let piped = || io::Error::other("the dashboard has no pipes");
        let input = child.stdin.take().ok_or_else(piped)?;
        let output = BufReader::new(child.stdout.take().ok_or_else(piped)?);
        let mut this = Self { child, input, output, base: String::new(), port: 0, token: String::new() };
        let said = this.said()?;
        let text = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        text("address").trim_end_matches('/').clone_into(&mut this.base);
        (this.port, this.token) = (said["port"].as_u64().unwrap_or_default(), text("token"));
        if this.token.is_empty() || !text("url").ends_with(&format!("/#token={}", this.token)) {
            return Err(io::Error::other(format!("the dashboard said {said}")));
        }
        Ok(this)
    }

    fn said(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(|error| io::Error::other(format!("{error}: {line:?}")))
    }

    /// Where it is, such as `http://127.0.0.1:8080`.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u64 {
        self.port
    }

    /// What logs somebody in, once.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended by itself.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Ends it, as whoever presses Ctrl-C does.
    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it once more where it was.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_again(&mut self, folder: &Folder) -> io::Result<()> {
        self.stop();
        *self = Self::start_on(folder, self.port, &[])?;
        Ok(())
    }

    /// Another token, as pressing Enter gives one.
    ///
    /// # Errors
    /// When it does not give one.
    pub fn another(&mut self) -> io::Result<String> {
        self.input.write_all(b"\n")?;
        let said = self.said()?;
        said["token"].as_str().map(str::to_owned).ok_or_else(|| io::Error::other(said.to_string()))
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.stop();
    }
}
