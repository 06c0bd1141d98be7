//! A command: a program that the user's settings name, with the words that stand there, and the notice as JSON on standard
//! input. No shell, nothing of a notice among its words, and little of our environment: what models and documents say stands in
//! notices.

use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use futures::future::{Either, select};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::super::notice::Notice;
use super::MOST_SAID;
use crate::render::figures;

/// What of our environment a program gets: enough to find others and its own files.
const KEPT: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// Most bytes of what it says that are read.
const MOST_READ: u64 = 4096;

/// How long its last words are waited for once it has ended, where something else keeps its output open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A program that is started for each notice.
pub(crate) struct CommandReceiver {
    words: Vec<String>,
    timeout: Duration,
}

impl CommandReceiver {
    pub(super) fn new(words: &[String], timeout: Duration) -> Self {
        Self { words: words.to_vec(), timeout }
    }

    pub(super) async fn tell(&self, notice: &Notice) -> Result<String, String> {
        let (program, arguments) = self.words.split_first().ok_or("it names no program")?;
        let name =
            Path::new(program).file_name().map_or_else(|| program.clone(), |name| name.display().to_string());
        let kept = KEPT.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(kept)
            .env("MUSTER_ALERT_ID", &notice.id)
            .env("MUSTER_ALERT_RULE", &notice.rule)
            .env("MUSTER_ALERT_CHANGE", notice.change.as_str())
            .env("MUSTER_ALERT_SEVERITY", notice.severity.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let child = command.spawn().map_err(|error| format!("{name} cannot be started: {error}"))?;
        // All that it starts ends with it, also when nobody waits for it any more.
        let _kin = Kin::of(&child);
        match timeout(self.timeout, finish(child, notice.body().to_string())).await {
            Ok(ended) => ended
                .map_err(|why| format!("{name} {why}"))
                .map(|()| format!("{name} ended with exit code 0")),
            Err(_) => {
                Err(format!("{name} did not end within {} and was killed", figures::span(self.timeout)))
            }
        }
    }
}

async fn finish(mut child: Child, body: String) -> Result<(), String> {
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let give = async {
        if let Some(mut stdin) = stdin {
            // Whoever does not read it does without.
            let _ = stdin.write_all(body.as_bytes()).await;
        }
    };
    let mut said = Vec::new();
    let hear = async {
        if let Some(stderr) = stderr {
            let mut first = stderr.take(MOST_READ);
            let _ = first.read_to_end(&mut said).await;
            // The rest is read and dropped, so that it does not wait for us.
            let _ = tokio::io::copy(&mut first.into_inner(), &mut tokio::io::sink()).await;
        }
    };
    let end = async { tokio::join!(give, child.wait()).1 };
    let status = match select(pin!(end), pin!(hear)).await {
        // What it started may keep this open: that it ended itself is what counts, and what it said last is there by then.
        Either::Left((status, hear)) => {
            let _late = timeout(LAST_WORDS, hear).await;
            status
        }
        Either::Right(((), end)) => end.await,
    };
    let status = status.map_err(|error| format!("was lost: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let said = figures::one_line(&String::from_utf8_lossy(&said), MOST_SAID);
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    Err(format!("ended with {status}{said}"))
}

/// The processes that a program started, and itself.
struct Kin(Option<Pid>);

impl Kin {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw))
    }
}

impl Drop for Kin {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _gone = killpg(group, Signal::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use muster_shared::time::Millis;

    use super::*;

    fn told(script: &str, more: &[&str], timeout: u64) -> Result<String, String> {
        let words: Vec<String> =
            [&["/bin/sh", "-c", script, "sh"], more].concat().into_iter().map(str::to_owned).collect();
        let command = CommandReceiver::new(&words, Duration::from_millis(timeout));
        let mut notice = Notice::test("1-1".to_owned(), Millis(1000));
        notice.series[0].detail = "$(touch hurt); `touch hurt` \"'\n".to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(command.tell(&notice))
    }

    #[test]
    fn a_program_gets_the_notice_as_json_and_nothing_of_our_environment() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let script = "cat > \"$1\"; env >> \"$1.env\"; cd \"${1%/*}\"";
        told(script, &[out.to_str().unwrap()], 20_000).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
        assert_eq!(body["type"], "alert.test");
        assert!(body["data"]["series"][0]["detail"].as_str().unwrap().contains("$(touch hurt)"));
        let env = std::fs::read_to_string(format!("{}.env", out.display())).unwrap();
        assert!(env.contains("MUSTER_ALERT_RULE=test\n") && env.contains("MUSTER_ALERT_ID=1-1\n"), "{env}");
        assert!(!env.contains("CARGO") && !env.contains("touch"), "{env}");
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            2,
            "nothing was run that a notice says"
        );
    }

    #[test]
    fn a_program_that_fails_hangs_or_is_not_there_is_told_so() {
        let why = told("echo \"out of order\" >&2; exit 3", &[], 20_000).unwrap_err();
        assert!(why.contains("exit status: 3: out of order"), "{why}");
        let why = told("echo \"out of order\" >&2; sleep 60 & exit 3", &[], 20_000).unwrap_err();
        assert!(
            why.contains("exit status: 3: out of order"),
            "what it leaves behind is not waited for: {why}"
        );
        let why = told("sleep 60 & wait", &[], 100).unwrap_err();
        assert!(why.contains("did not end within"), "{why}");
        let long = "head -c 1000000 /dev/zero | tr '\\0' x >&2";
        assert!(told(long, &[], 20_000).is_ok(), "what it says does not hold it up");
        let missing = CommandReceiver::new(&["/nowhere/page".to_owned()], Duration::from_secs(1));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let why = runtime.block_on(missing.tell(&Notice::test("1".into(), Millis(1)))).unwrap_err();
        assert!(why.contains("page cannot be started"), "{why}");
    }
}
