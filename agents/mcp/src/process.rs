//! Programs of servers: started with little around them, and ended with all that they started.

use std::collections::VecDeque;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use secrecy::ExposeSecret;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use uuid::Uuid;

use crate::config::ChildCommand;
use crate::plain::visible;
use muster_shared::sync::lock;

/// How much of a server's standard error is kept, in bytes.
const LAST_WORDS: usize = 4 * 1024;
/// Most that a server may write to its standard output within [`WINDOW`], in bytes: each costs time. 256 MiB: 32 of the largest
/// messages.
const MAX_OUTPUT: usize = 256 * 1024 * 1024;
/// Bytes that a line counts in addition: each message costs memory.
const LINE: usize = 4 * 1024;
/// The window of [`MAX_OUTPUT`].
const WINDOW: Duration = Duration::from_secs(60);
/// Why a server is ended that writes more.
const FLOOD: &str = "; it floods its output";
/// How often those that were killed are looked for.
const LOOK: Duration = Duration::from_millis(5);
/// The variable by which a server's descendants are known, also those that left its process group.
const MARK: &str = "MUSTER_MCP_SERVER";
/// What of our environment a server gets: what programs need to be found and to find their files. No secrets stand there.
const PASSED_ON: [&str; 5] = ["PATH", "HOME", "LANG", "TMPDIR", "TZ"];

/// A server's program, just started.
pub(crate) struct Started {
    pub(crate) child: ServerChild,
    pub(crate) input: ChildStdin,
    pub(crate) output: BoundedOutput,
}

/// Standard output of a server. It fails when the server writes more than [`MAX_OUTPUT`].
pub(crate) struct BoundedOutput {
    inner: ChildStdout,
    words: LastWords,
    read: usize,
    since: Instant,
}

impl AsyncRead for BoundedOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        if self.since.elapsed() > WINDOW {
            (self.since, self.read) = (Instant::now(), 0);
        }
        let new = buffer.filled().get(before..).unwrap_or_default();
        self.read += new.len() + LINE * String::from_utf8_lossy(new).matches('\n').count();
        if self.read > MAX_OUTPUT {
            return Poll::Ready(Err(std::io::Error::other(*self.words.fault.get_or_init(|| FLOOD))));
        }
        Poll::Ready(Ok(()))
    }
}

/// The process of a server. When it is dropped, it and all its descendants are killed.
pub(crate) struct ServerChild {
    child: Child,
    kin: Kin,
}

/// Starts a program as the leader of a process group of its own. What it writes to its standard error goes to these words.
pub(crate) fn start(command: &ChildCommand, words: &LastWords) -> std::io::Result<Started> {
    let mark = Uuid::new_v4().simple().to_string();
    let mut process = Command::new(&command.command);
    process
        .args(&command.args)
        .env_clear()
        .envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .envs(command.env.iter().map(|(name, value)| (name, value.expose_secret())))
        .env(MARK, &mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(folder) = &command.cwd {
        process.current_dir(folder);
    }
    let mut child = process.spawn()?;
    let gone = || std::io::Error::other("it ended at once");
    let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw).ok_or_else(gone)?;
    // From here on, whatever fails kills what was started.
    let kin = Kin { group, mark };
    let input = child.stdin.take().ok_or_else(gone)?;
    let output = child.stdout.take().ok_or_else(gone)?;
    if let Some(errors) = child.stderr.take() {
        tokio::spawn(words.clone().hear(errors));
    }
    let output = BoundedOutput { inner: output, words: words.clone(), read: 0, since: Instant::now() };
    Ok(Started { child: ServerChild { child, kin }, input, output })
}

impl ServerChild {
    /// Its process.
    pub(crate) const fn id(&self) -> u32 {
        self.kin.group.as_raw().unsigned_abs()
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ended(&mut self) {
        let _status = self.child.wait().await;
    }

    /// Ends it, whose input is closed by now: it may end by itself, is asked to, and is killed, each after this long.
    pub(crate) async fn end(mut self, limit: Duration) {
        if tokio::time::timeout(limit, self.child.wait()).await.is_err() {
            let _gone = killpg(self.kin.group, Signal::SIGTERM);
            let _late = tokio::time::timeout(limit, self.child.wait()).await;
        }
        // Whatever was begun while the others were being found is found the next time.
        let gone = async {
            while self.kin.kill() > 0 {
                tokio::time::sleep(LOOK).await;
            }
            let _reaped = self.child.wait().await;
        };
        let _late = tokio::time::timeout(limit, gone).await;
    }
}

/// A process group, and what came of it.
struct Kin {
    group: Pid,
    mark: String,
}

impl Kin {
    /// Kills them; gives how many were still there.
    fn kill(&self) -> usize {
        let _gone = killpg(self.group, Signal::SIGKILL);
        let descendants = marked(&self.mark);
        for descendant in &descendants {
            let _gone = kill(*descendant, Signal::SIGKILL);
        }
        descendants.len()
    }
}

impl Drop for Kin {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The processes whose environment has this mark. Where there is no `/proc`, only the group is known.
fn marked(mark: &str) -> Vec<Pid> {
    let wanted = format!("{MARK}={mark}");
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_marked = |id: &i32| {
        std::fs::read(format!("/proc/{id}/environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()))
    };
    ids.filter(is_marked).map(Pid::from_raw).collect()
}

/// The end of what a server wrote to its standard error, and why it was ended, if its output was at fault.
#[derive(Clone)]
pub(crate) struct LastWords {
    server: Arc<str>,
    fault: Arc<OnceLock<&'static str>>,
    kept: Arc<Mutex<VecDeque<u8>>>,
}

impl LastWords {
    pub(crate) fn of(server: &str) -> Self {
        Self { server: Arc::from(server), fault: Arc::default(), kept: Arc::default() }
    }

    /// The fault and the last lines, for the end of a message; empty when there are none.
    pub(crate) fn told(&self) -> String {
        let kept: Vec<u8> = lock(&self.kept).iter().copied().collect();
        let text = String::from_utf8_lossy(&kept);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.iter().rev().take(5).rev().copied().collect::<Vec<_>>().join("\n");
        let fault = self.fault.get().copied().unwrap_or_default();
        if last.is_empty() {
            fault.to_owned()
        } else {
            format!("{fault}; it said at last: {}", visible(&last))
        }
    }

    async fn hear(self, mut errors: ChildStderr) {
        let mut buffer = [0_u8; 1024];
        while let Ok(read @ 1..) = errors.read(&mut buffer).await {
            let heard = buffer.get(..read).unwrap_or_default();
            let text = String::from_utf8_lossy(heard);
            tracing::debug!(server = %self.server, "an MCP server says: {}", visible(text.trim_end()));
            let mut kept = lock(&self.kept);
            kept.extend(heard);
            let over = kept.len().saturating_sub(LAST_WORDS);
            kept.drain(..over);
        }
    }
}
