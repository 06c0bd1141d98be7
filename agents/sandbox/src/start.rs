//! Stages from outside: how they are started, and whether they are what they should be.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::stage::HIDDEN_ARGUMENT;
use crate::wire::{self, Failure, Mode, Word};

/// How long a stage may take until it waits for its job. A loaded machine is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A stage that waits for its job, or works on it. Dropped, it ends, and all that it started with it.
pub(crate) struct Stage {
    pub(crate) mode: Mode,
    pub(crate) control: UnixStream,
    pub(crate) output: ChildStdout,
    pub(crate) errors: ChildStderr,
    pub(crate) child: Child,
}

impl Stage {
    /// Starts one and waits until it is ready.
    pub(crate) async fn start(program: &Path, mode: Mode) -> Result<Self, Failure> {
        let failed = Failure::at("starting the sandbox");
        let (own, other) = StdUnixStream::pair().map_err(&failed)?;
        own.set_nonblocking(true).map_err(&failed)?;
        let control = UnixStream::from_std(own).map_err(&failed)?;
        let mut child = Command::from(command(program, mode, other))
            // Namespaces end with it. Without them it must live to end what it started, when it hears that we are gone.
            .kill_on_drop(mode == Mode::Namespaces)
            .spawn()
            .map_err(&failed)?;
        let pipes = (child.stdout.take(), child.stderr.take());
        let (Some(output), Some(errors)) = pipes else {
            return Err(failed(io::Error::other("there is no output")));
        };
        let mut stage = Self { mode, control, output, errors, child };
        match tokio::time::timeout(PATIENCE, wire::receive_from(&mut stage.control)).await {
            Err(_late) => Err(failed(io::ErrorKind::TimedOut.into())),
            Ok(Err(_)) => Err(Failure::Broken(not_a_stage(program))),
            Ok(Ok(word)) => ready(word).map(|()| stage),
        }
    }
}

/// What starts a stage. Nothing of our environment goes with it.
pub(crate) fn command(program: &Path, mode: Mode, control: StdUnixStream) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command
        .args([HIDDEN_ARGUMENT, "outer", mode.as_str()])
        .env_clear()
        .current_dir("/")
        .stdin(OwnedFd::from(control))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Whether the first word of a stage is that it is ready.
pub(crate) fn ready(word: Word) -> Result<(), Failure> {
    match word {
        Word::Ready => Ok(()),
        Word::Failed(failure) => Err(failure),
        _ => Err(Failure::Broken("the sandbox spoke out of turn".to_owned())),
    }
}

pub(crate) fn not_a_stage(program: &Path) -> String {
    format!(
        "{} does not answer as a sandbox: it has to call muster_sandbox::child_main first",
        program.display()
    )
}

/// This program as it runs, also after its file was replaced: both sides speak the protocol of one version.
pub(crate) fn own_program() -> PathBuf {
    let itself = PathBuf::from(crate::stage::OWN_PROGRAM);
    if itself.exists() { itself } else { std::env::current_exe().unwrap_or(itself) }
}
