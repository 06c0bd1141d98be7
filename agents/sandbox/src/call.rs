//! One program, from outside of its stage.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use muster_shared::sync::lock;
use muster_tools::workspace::WorkspacePath;
use muster_tools::{Program, ProgramEnd, ProgramStatus};
use tokio_util::sync::CancellationToken;

use crate::output::{self, Flood};
use crate::prepare::Prepared;
use crate::start::Stage;
use crate::talk::{self, Watched};
use crate::wire::{Ending, Failure, Mode};

/// How long a stage may take beyond the time of its program, to prepare, to end it and to give back.
const GRACE: Duration = Duration::from_secs(60);

/// How long a stage may take to end when it has said that it is done.
const FAREWELL: Duration = Duration::from_secs(5);

/// Has a stage run a program, and gives back what came of it.
pub(crate) async fn run(
    stage: Stage,
    prepared: Prepared,
    program: &Program,
    cancel: &CancellationToken,
) -> Result<ProgramEnd, Failure> {
    if prepared.rules.is_some() && stage.mode == Mode::Plain {
        let why = "hosts can be granted only where there are namespaces; go on without them";
        return Err(Failure::Refused(why.to_owned()));
    }
    let Stage { control, output, errors, mut child, mode: _ } = stage;
    let kept = program.limits.output;
    let flood = Flood::over(kept);
    let denied = Arc::new(Mutex::new(Vec::new()));
    let watched = Watched { flood: &flood, cancel, refused: &denied };
    let talking = async {
        let told = talk::talk(control, &program.input, &prepared, &watched).await;
        // Waited for, it is surely gone, and so is whoever could still print.
        let _late = tokio::time::timeout(FAREWELL, child.wait()).await;
        told
    };
    let all = async {
        tokio::join!(talking, output::read(output, kept, &flood), output::read(errors, kept, &flood))
    };
    let limit = program.limits.time.saturating_add(GRACE);
    let done = tokio::time::timeout(limit, all).await;
    let (told, printed, complained) =
        done.map_err(|_| Failure::Broken("it did not answer in time".to_owned()))?;
    let told = told?;
    let Some(status) = told.ending.and_then(status_of) else {
        return Err(Failure::Refused("the task was stopped".to_owned()));
    };
    let mut refused = prepared.refused;
    refused.extend(told.kept);
    let written = match (&status, &program.workspace) {
        (ProgramStatus::Exited(_), Some(_)) => {
            let changed =
                told.files.into_iter().filter(|(path, bytes)| prepared.files.get(path) != Some(bytes));
            write_back(program, changed.collect(), &mut refused).await
        }
        (ProgramStatus::Exited(_), None) => Vec::new(),
        (ProgramStatus::Signalled(_) | ProgramStatus::TimedOut | ProgramStatus::Exceeded(_), _) => {
            if !told.files.is_empty() {
                refused.push(format!(
                    "{} files were not kept: the program did not end by itself",
                    told.files.len()
                ));
            }
            Vec::new()
        }
    };
    refused.append(&mut lock(&denied));
    tracing::debug!(
        program = prepared.job.command.first(),
        ?status,
        written = written.len(),
        "a program has run"
    );
    let cut = printed.is_cut || complained.is_cut;
    Ok(ProgramEnd { status, output: printed.kept, errors: complained.kept, cut, written, refused })
}

/// Writes what a program made or changed into the workspace, which has rules of its own about that.
async fn write_back(
    program: &Program,
    changed: Vec<(String, Bytes)>,
    refused: &mut Vec<String>,
) -> Vec<String> {
    let mut written = Vec::new();
    let Some(workspace) = &program.workspace else { return written };
    for (path, bytes) in changed {
        let kept = match WorkspacePath::parse(&path) {
            Ok(path) => workspace.write_bytes(&path, bytes).await,
            Err(error) => Err(error),
        };
        match kept {
            Ok(()) => written.push(path),
            Err(error) => refused.push(format!("a file was not kept: {error}")),
        }
    }
    written.sort();
    written
}

/// Nothing where nobody waits for it any more.
const fn status_of(ending: Ending) -> Option<ProgramStatus> {
    match ending {
        Ending::Exited(code) => Some(ProgramStatus::Exited(code)),
        Ending::Signalled(signal) => Some(ProgramStatus::Signalled(signal)),
        Ending::TimedOut => Some(ProgramStatus::TimedOut),
        Ending::Exceeded(what) => Some(ProgramStatus::Exceeded(what.as_str())),
        Ending::Cancelled => None,
    }
}
