//! `muster edit`: changes the goal of a run or of a task.

use std::path::{Path, PathBuf};

use muster_shared::ids::TaskIndex;
use muster_shared::run::RunState;
use muster_shared::wire::Command;
use uuid::Uuid;

use super::order::Target;
use crate::app::App;
use crate::args::EditArgs;
use crate::exit::{Exit, Failure};

/// Changes a goal.
pub(super) async fn edit(app: &App, args: &EditArgs) -> Result<Exit, Failure> {
    let run = args.task.as_ref().map_or_else(|| args.order.run.clone(), |task| task.run(&args.order.run));
    let task = args.task.as_ref().map(|task| &task.at);
    let target = Target::find(app, &run).await?;
    if let Some(task) = task {
        target.check(task)?;
    }
    let before = goal_of(&target.state, task);
    let goal = match &args.goal {
        Some(goal) => goal.clone(),
        None => by_editor(before.clone(), "md").await?,
    };
    if goal.trim() == before.trim() {
        return Err(Failure::usage("the goal is the same as before: nothing was changed"));
    }
    let goal = app.redactor.redact(goal.trim()).into_owned();
    let (task, reason) = (task.cloned(), args.order.reason.clone());
    let command = Command::Edit { run: target.run, task, goal, reason, id: None };
    target.order(&args.order, command).await
}

/// The goal as it stands; empty when there is none yet.
fn goal_of(state: &RunState, task: Option<&TaskIndex>) -> String {
    let Some(task) = task else { return state.goal.text.clone() };
    let planned = state.plan.as_ref().and_then(|plan| plan.tasks.get(task));
    planned.map(|task| task.goal.clone()).unwrap_or_default()
}

/// Largest text that comes back from an editor, in bytes.
const MAX_DRAFT: u64 = 1024 * 1024;

/// Has the person change a text in their editor.
pub(super) async fn by_editor(text: String, ending: &str) -> Result<String, Failure> {
    let editor = std::env::var("VISUAL").or_else(|_| std::env::var("EDITOR")).map_err(|_| {
        Failure::usage("no editor is set").help("set EDITOR, or give it on the command line: see --help")
    })?;
    let file = std::env::temp_dir().join(format!("muster-{}.{ending}", Uuid::new_v4()));
    let edited = tokio::task::spawn_blocking(move || change(&editor, &Draft::write(file, &text)?));
    edited.await.map_err(|error| Failure::failed(format!("the editor could not be waited for: {error}")))?
}

/// A file that is removed when it is no longer needed.
struct Draft(PathBuf);

impl Draft {
    fn write(file: PathBuf, text: &str) -> Result<Self, Failure> {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
        let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
        written.map_err(|error| cannot("write", &file, &error))?;
        Ok(Self(file))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Left behind, it does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn change(editor: &str, draft: &Draft) -> Result<String, Failure> {
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let status = std::process::Command::new(program).args(words).arg(&draft.0).status();
    let status = status.map_err(|error| {
        Failure::usage(format!("cannot start the editor {program}: {error}"))
            .help("set EDITOR to one that is installed, or give it on the command line: see --help")
    })?;
    if !status.success() {
        return Err(Failure::usage(format!("the editor ended with {status}: nothing was changed")));
    }
    muster_agents::input::text(&draft.0, MAX_DRAFT)
        .map_err(|why| cannot("read", &draft.0, &std::io::Error::other(why)))
}

fn cannot(what: &str, file: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot {what} {}: {error}", file.display()))
        .help("give it on the command line instead: see --help")
}
