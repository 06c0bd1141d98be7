//! One process of the local fleet: started, kept running, ended.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::log_file::LogFile;
use super::pass::Pass;
use super::policy::{Deaths, RestartDecision, RestartPolicy};
use super::process::ProcessRef;
use crate::app::now;
use crate::redaction::redacted;
use crate::render::safe;

/// What a process of the fleet is and how it is started.
#[derive(Debug, Clone)]
pub(crate) struct MemberSpec {
    /// Its name in the fleet, such as `worker-2`.
    pub(crate) name: String,
    /// The program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// The folder it runs in; ours when absent.
    pub(crate) folder: Option<PathBuf>,
    /// What is added to its environment.
    pub(crate) variables: Vec<(String, String)>,
    /// By what it is let in to the bus; nothing where settings say that, or nobody asks.
    pub(crate) pass: Option<Pass>,
    /// What it does not inherit of our environment.
    pub(crate) hidden: Vec<String>,
    /// Where what it writes goes.
    pub(crate) log: PathBuf,
    /// Largest log file, in bytes.
    pub(crate) max_log_bytes: u64,
    /// When it is started again.
    pub(crate) policy: RestartPolicy,
    /// Time to end in good order.
    pub(crate) stop_limit: Duration,
    /// Whether it is a program of the user's.
    pub(crate) is_foreign: bool,
}

/// What became of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MemberChange {
    /// It runs.
    Started(ProcessRef),
    /// It could not be started, or ended though nobody asked it to; it is started again after a while.
    Died {
        /// How.
        how: String,
        /// When it is started again.
        again_after: Duration,
    },
    /// It died too often.
    GivenUp {
        /// How it died last.
        how: String,
    },
    /// It ended because the fleet does, or because its file is gone or changed.
    Stopped,
    /// Its file defines no specialist.
    Refused {
        /// What is wrong, and where.
        reason: String,
    },
}

/// A change, and of which process.
pub(crate) type Changed = (String, MemberChange);

/// Keeps a process running until told to stop or it died too often.
pub(crate) async fn keep(spec: MemberSpec, changes: mpsc::Sender<Changed>, stop: CancellationToken) {
    let mut deaths = Deaths::default();
    let tell = async |change: MemberChange| {
        let _ = changes.send((spec.name.clone(), change)).await;
    };
    loop {
        let started = tokio::select! {
            started = start(&spec) => started,
            () = stop.cancelled() => {
                tell(MemberChange::Stopped).await;
                return;
            }
        };
        let how = match started {
            Ok((mut child, process)) => {
                tell(MemberChange::Started(process.clone())).await;
                tokio::select! {
                    status = child.wait() => ended(status),
                    () = stop.cancelled() => {
                        end(&mut child, &process, spec.stop_limit).await;
                        tell(MemberChange::Stopped).await;
                        return;
                    }
                }
            }
            Err(reason) => reason,
        };
        match deaths.died(now(), &spec.policy) {
            RestartDecision::GiveUp => {
                tell(MemberChange::GivenUp { how }).await;
                return;
            }
            RestartDecision::Restart { after } => {
                tell(MemberChange::Died { how, again_after: after }).await;
                tokio::select! {
                    () = tokio::time::sleep(after) => {}
                    () = stop.cancelled() => {
                        tell(MemberChange::Stopped).await;
                        return;
                    }
                }
            }
        }
    }
}

/// Must be called on a worker of the runtime: the child's parent-death signal follows the thread.
async fn start(spec: &MemberSpec) -> Result<(Child, ProcessRef), String> {
    let told = match &spec.pass {
        Some(pass) => pass.issue(spec.is_foreign).await?,
        None => Vec::new(),
    };
    let log = LogFile::open(&spec.log, spec.max_log_bytes)
        .map_err(|e| format!("cannot write its log {}: {e}", spec.log.display()))?;
    let log = Arc::new(Mutex::new(log));
    let mut command = Command::new(&spec.program);
    for name in &spec.hidden {
        command.env_remove(name);
    }
    command.args(&spec.arguments).envs(spec.variables.iter().map(|(k, v)| (k, v)));
    command.envs(told);
    if let Some(folder) = &spec.folder {
        command.current_dir(folder);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // Its own group: Ctrl-C in the terminal is the supervisor's to handle, not each child's.
    command.process_group(0);
    muster_bus::server::die_with_parent(&mut command);
    let mut child = command.spawn().map_err(|e| format!("cannot start {}: {e}", spec.program.display()))?;
    if let Some(out) = child.stdout.take() {
        tokio::spawn(pump(out, Arc::clone(&log)));
    }
    if let Some(err) = child.stderr.take() {
        tokio::spawn(pump(err, log));
    }
    let process = ProcessRef::of(child.id().ok_or("it ended at once")?);
    Ok((child, process))
}

/// Copies what a process writes into its log, as long as it writes. Programs of others write what they like: what could
/// steer the terminal of whoever reads the log is shown as what it is.
async fn pump(mut from: impl AsyncRead + Unpin, log: Arc<Mutex<LogFile>>) {
    let (mut buffer, mut begun) = ([0; 8 * 1024], Vec::new());
    while let Ok(bytes @ 1..) = from.read(&mut buffer).await {
        begun.extend_from_slice(&buffer[..bytes]);
        let text = String::from_utf8_lossy(&begun[..whole(&begun)]).into_owned();
        begun.drain(..whole(&begun));
        let Ok(mut log) = log.lock() else { return };
        // A full disk must not stop the process: its words are lost, not its work.
        let _ = log.write(safe::text(&redacted(&text)).as_bytes());
    }
    if let Ok(mut log) = log.lock() {
        let _ = log.write(safe::text(&redacted(&String::from_utf8_lossy(&begun))).as_bytes());
    }
}

/// How many bytes can be told: without a letter, or the end of a line, of which more is to come.
fn whole(bytes: &[u8]) -> usize {
    let begins = |byte: u8| byte >= 0xc0 || byte == b'\r';
    let last = bytes.iter().rposition(|byte| *byte < 0x80 || *byte >= 0xc0).unwrap_or(0);
    match bytes.get(last) {
        Some(byte) if begins(*byte) && bytes.len() - last < length_of(*byte) => last,
        _ => bytes.len(),
    }
}

/// How many bytes belong together, by the first of them.
const fn length_of(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. | b'\r' => 2,
        _ => 1,
    }
}

async fn end(child: &mut Child, process: &ProcessRef, limit: Duration) {
    process.signal(Signal::SIGTERM);
    if tokio::time::timeout(limit, child.wait()).await.is_err() {
        tracing::warn!(pid = process.pid, "did not end in time and is killed");
        let _ = child.kill().await;
    }
}

fn ended(status: std::io::Result<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => {
                let name = Signal::try_from(signal).map_or_else(|_| signal.to_string(), |s| s.to_string());
                format!("was killed by {name}")
            }
            (None, None) => "ended".to_owned(),
        },
        Err(error) => format!("was lost: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(folder: &std::path::Path, script: &str) -> MemberSpec {
        MemberSpec {
            name: "one".into(),
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            folder: None,
            variables: Vec::new(),
            pass: None,
            hidden: Vec::new(),
            log: folder.join("one.log"),
            max_log_bytes: 1000,
            policy: RestartPolicy {
                max_restarts: 2,
                window: Duration::from_secs(60),
                first_wait: Duration::from_millis(1),
                longest_wait: Duration::from_millis(5),
            },
            stop_limit: Duration::from_millis(200),
            is_foreign: false,
        }
    }

    async fn next(changes: &mut mpsc::Receiver<Changed>) -> MemberChange {
        let limit = Duration::from_secs(10);
        tokio::time::timeout(limit, changes.recv()).await.unwrap().unwrap().1
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_dies_is_started_again_and_given_up_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let (sender, mut changes) = mpsc::channel(16);
        tokio::spawn(keep(spec(folder.path(), "echo words; exit 3"), sender, CancellationToken::new()));
        for _ in 0..2 {
            assert!(matches!(next(&mut changes).await, MemberChange::Started(_)));
            let MemberChange::Died { how, .. } = next(&mut changes).await else { unreachable!() };
            assert_eq!(how, "ended with exit code 3");
        }
        assert!(matches!(next(&mut changes).await, MemberChange::Started(_)));
        assert!(matches!(next(&mut changes).await, MemberChange::GivenUp { .. }));
        assert!(changes.recv().await.is_none());
        let log = std::fs::read_to_string(folder.path().join("one.log")).unwrap();
        assert!(log.starts_with("words\n"), "{log}");
    }

    #[tokio::test]
    async fn what_is_logged_steers_no_terminal_however_it_comes_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let log = Arc::new(Mutex::new(LogFile::open(&path, 10_000).unwrap()));
        let written = "ä€😀\r\nred \u{1b}[31m\u{9b}2J\u{202e}\n\r".as_bytes();
        let (reader, mut writer) = tokio::io::simplex(64);
        let pumping = tokio::spawn(pump(reader, log));
        for byte in written {
            tokio::io::AsyncWriteExt::write_all(&mut writer, std::slice::from_ref(byte)).await.unwrap();
            tokio::task::yield_now().await;
        }
        tokio::io::AsyncWriteExt::write_all(&mut writer, &[0xff, 0xe2, 0x82]).await.unwrap();
        tokio::io::AsyncWriteExt::shutdown(&mut writer).await.unwrap();
        pumping.await.unwrap();
        let kept = std::fs::read_to_string(&path).unwrap();
        assert_eq!(kept, "ä€😀\nred \\u{1b}[31m\\u{9b}2J\\u{202e}\n\\u{d}\u{fffd}\u{fffd}",);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_does_not_heed_the_request_to_end_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let (sender, mut changes) = mpsc::channel(16);
        let stop = CancellationToken::new();
        let stubborn = spec(folder.path(), "trap '' TERM; while :; do sleep 0.05; done");
        let keeper = tokio::spawn(keep(stubborn, sender, stop.clone()));
        let MemberChange::Started(process) = next(&mut changes).await else { unreachable!() };
        assert!(process.is_alive());
        stop.cancel();
        assert_eq!(next(&mut changes).await, MemberChange::Stopped);
        keeper.await.unwrap();
        assert!(process.gone_within(Duration::from_secs(2)).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_program_that_is_missing_is_given_up_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let (sender, mut changes) = mpsc::channel(16);
        let mut missing = spec(folder.path(), "");
        missing.program = "/nowhere/muster".into();
        missing.policy.max_restarts = 0;
        tokio::spawn(keep(missing, sender, CancellationToken::new()));
        let MemberChange::GivenUp { how } = next(&mut changes).await else { unreachable!() };
        assert!(how.contains("/nowhere/muster"), "{how}");
    }
}
