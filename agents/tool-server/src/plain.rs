//! Programs without anything around them: for tool files that the user has given his word for.

use std::process::Stdio;

use async_trait::async_trait;
use bytes::Bytes;
use muster_tools::{Program, ProgramEnd, ProgramRunner, ProgramStatus, ToolFailure};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Where programs are looked up.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Runs programs as processes of the user's, in a fresh folder and with a fresh environment. It keeps the time limit and the
/// limit of output, and ends all that a program started; what a program reads, reaches and uses besides is its own affair.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainRunner;

#[async_trait]
impl ProgramRunner for PlainRunner {
    async fn run(&self, program: Program, cancel: &CancellationToken) -> Result<ProgramEnd, ToolFailure> {
        if program.workspace.is_some() {
            let why = "a program that changes files of the run needs the sandbox".to_owned();
            return Err(ToolFailure::Refused(why));
        }
        let failed = |what: &str, error: std::io::Error| ToolFailure::Failed(format!("{what}: {error}"));
        let folder = tempfile::tempdir().map_err(|error| failed("no folder for the program", error))?;
        let mut group = Group(spawn(&program, folder.path())?);
        let child = &mut group.0;
        let (stdin, stdout, stderr) = (child.stdin().take(), child.stdout().take(), child.stderr().take());
        let most = program.limits.output;
        let feeding = async {
            if let Some(mut stdin) = stdin {
                // A program need not read what it is given.
                let _ = stdin.write_all(&program.input).await;
            }
        };
        let reading =
            async { tokio::join!(feeding, gather(stdout, most), gather(stderr, most), child.wait()) };
        let ended = tokio::select! {
            ended = timeout(program.limits.time, reading) => ended.ok(),
            () = cancel.cancelled() => {
                return Err(ToolFailure::Refused("the program was ended because nobody waits for it".to_owned()));
            }
        };
        let Some(((), output, errors, status)) = ended else {
            return Ok(end(ProgramStatus::TimedOut, (Bytes::new(), false), (Bytes::new(), false)));
        };
        let status = status.map_err(|error| failed("the program cannot be waited for", error))?;
        Ok(end(status_of(status), output, errors))
    }
}

/// A program with all that it started: they end together, however they are let go of.
struct Group(Box<dyn ChildWrapper>);

impl Drop for Group {
    fn drop(&mut self) {
        // What has ended by itself is not there to be ended.
        let _ = self.0.start_kill();
    }
}

fn spawn(program: &Program, folder: &std::path::Path) -> Result<Box<dyn ChildWrapper>, ToolFailure> {
    let [name, arguments @ ..] = program.command.as_slice() else {
        return Err(ToolFailure::NotFound("there is no program to run".to_owned()));
    };
    let mut command = CommandWrap::with_new(name, |command| {
        command.args(arguments).current_dir(folder).env_clear();
        command.env("PATH", PATH).env("LANG", "C.UTF-8").env("HOME", folder).env("TMPDIR", folder);
        command.envs(&program.environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    command.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
    command.spawn().map_err(|error| ToolFailure::NotFound(format!("{name} cannot be started: {error}")))
}

fn end(status: ProgramStatus, output: (Bytes, bool), errors: (Bytes, bool)) -> ProgramEnd {
    let cut = output.1 || errors.1;
    ProgramEnd { status, output: output.0, errors: errors.0, cut, written: Vec::new(), refused: Vec::new() }
}

fn status_of(status: std::process::ExitStatus) -> ProgramStatus {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => ProgramStatus::Exited(code),
        (None, signal) => ProgramStatus::Signalled(signal.unwrap_or_default()),
    }
}

/// What is read to the end, as far as it is kept, and whether there was more.
async fn gather(stream: Option<impl AsyncRead + Unpin>, most: usize) -> (Bytes, bool) {
    let Some(mut stream) = stream else { return (Bytes::new(), false) };
    let (mut kept, mut cut, mut piece) = (Vec::new(), false, vec![0; 8 * 1024]);
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        let room = most.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&piece[..room]);
        cut |= room < count;
    }
    (kept.into(), cut)
}
