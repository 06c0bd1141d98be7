//! What is left of a run for the one who asked: the report, the figures, the exit code.

use std::path::{Path, PathBuf};

use muster_shared::flow::Report;
use muster_shared::run::{RunState, RunStatus, StopReason, count, is_completed_in_part, shortfalls};
use serde_json::json;

use super::files::Files;
use super::screen::Screen;
use super::watch::{EndedRun, Watched};
use crate::app::{App, now};
use crate::exit::{Exit, Failure, failed, usage};
use crate::output;
use crate::render::{figures, markdown, progress, runs, safe};

/// In what form the end of a run is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// A file for the report, instead of standard output.
    pub(crate) output: Option<PathBuf>,
    /// A folder for the files of the run, instead of the report's.
    pub(crate) out: Option<PathBuf>,
    /// Whether they may replace others.
    pub(crate) force: bool,
    /// One JSON object instead of text.
    pub(crate) json: bool,
    /// No progress.
    pub(crate) quiet: bool,
}

/// Checks that the report can be written before work is done for it.
pub(in crate::commands) fn check(file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    if file.is_dir() {
        return Err(usage!("{} is a folder", file.display()).help("name a file, such as report.md"));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        return Ok(());
    }
    Err(usage!("there is no folder {}", folder.display()).help("create it first, or name another file"))
}

/// Writes the report where it is wanted as a file.
pub(super) fn write_report(wanted: &Wanted, state: &RunState, files: &Files) -> Result<(), Failure> {
    let (Some(file), Some(report)) = (&wanted.output, &state.report) else { return Ok(()) };
    write(file, &files.relink(&safe::report(&report.body), file), "the report")
        .map_err(|failure| failure.help("the report is kept: `muster show last` prints it"))
}

/// Delivers what else there is.
pub(super) fn deliver(
    app: &App,
    wanted: &Wanted,
    screen: &Screen,
    watched: &Watched,
    files: &Files,
) -> Result<Exit, Failure> {
    let ended = match watched {
        Watched::Ended(ended) => ended,
        Watched::Left { run, goes_on } => {
            let short = run.short();
            output::note(&if *goes_on {
                format!("left run {short}; `muster show {short}` shows its progress")
            } else {
                format!("left run {short}; its fleet ends now, and the next `muster up` goes on with it")
            });
            if wanted.json {
                output::json(&json!({ "run": run, "status": "left" }))?;
            }
            return Ok(Exit::Stopped);
        }
        Watched::Moved(url) => {
            return Err(
                Failure::bus(format!("the fleet is at {url} now")).help("`muster runs` lists its runs")
            );
        }
    };
    if wanted.json {
        output::json(&summary(ended, wanted, files))?;
    } else {
        files.warn(ended.state.id);
        tell(app, wanted, screen, ended)?;
        if !wanted.quiet || files.is_kept() {
            files.tell(ended.state.id);
        }
    }
    Ok(match exit(ended) {
        Exit::Completed if files.is_kept() => Exit::Unmet,
        exit => exit,
    })
}

fn exit(EndedRun { state, unguarded }: &EndedRun) -> Exit {
    match state.status {
        // What was refused because a guard is gone may have made another answer of it.
        RunStatus::Completed if is_completed_in_part(state) || !unguarded.is_empty() => Exit::InPart,
        RunStatus::Completed => Exit::Completed,
        RunStatus::Aborted(StopReason::Refused) => Exit::Refused,
        RunStatus::Aborted(_) => Exit::Stopped,
        // A run that has not ended is not delivered; counted as failed rather than as done.
        RunStatus::Failed | RunStatus::Created | RunStatus::Processing => Exit::Failed,
    }
}

fn tell(
    app: &App,
    wanted: &Wanted,
    screen: &Screen,
    EndedRun { state, unguarded }: &EndedRun,
) -> Result<(), Failure> {
    if let Some(reason) = &state.reason {
        output::note!("run {} {}: {}", state.id.short(), runs::word(state), figures::one_line(reason, 600));
    } else if !wanted.quiet && !screen.is_live() {
        // The tree on a terminal ends with this line already.
        output::note(&progress::summary(state, now()));
    }
    if let Some(estimate) = screen.estimated() {
        output::note!("used: {}; estimated: {estimate}", figures::usage(&state.used()));
    }
    if is_completed_in_part(state) {
        let counted = count(state).map(|count| count.in_words()).unwrap_or_default();
        output::note!(
            "not the whole answer: {counted}; what is missing stands at the end of the report, and in `muster show {}`",
            state.id.short()
        );
    }
    for line in unguarded.in_words() {
        output::note!("not all was done: {line}");
    }
    match (&wanted.output, &state.report) {
        (Some(file), Some(report)) => {
            if !wanted.quiet {
                let kind = if report.partial { "partial report" } else { "report" };
                output::note!("{kind}: {}", file.display());
            }
            Ok(())
        }
        (None, Some(report))
            if output::is_terminal() && app.paint() != crate::render::paint::Paint::PLAIN =>
        {
            let text = markdown::styled(&safe::report(&report.body), output::columns());
            output::text(&format!("\n{text}"))
        }
        (None, Some(report)) => output::text(&safe::report(&report.body)),
        (_, None) => Ok(()),
    }
}

/// Writes a file in one move, so that an interrupted write leaves no half report.
pub(in crate::commands) fn write(file: &Path, text: &str, what: &str) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| failed!("cannot write {what} to {}: {error}", file.display());
    let mut next = file.as_os_str().to_owned();
    next.push(".new");
    std::fs::write(&next, text).map_err(cannot)?;
    std::fs::rename(&next, file).map_err(cannot)
}

fn summary(EndedRun { state, unguarded }: &EndedRun, wanted: &Wanted, files: &Files) -> serde_json::Value {
    let mut summary = json!({
        "run": state.id,
        "status": state.status,
        "complete": super::super::runs::is_complete(state) && unguarded.is_empty(),
        "refused_without_verdict": unguarded,
        "count": count(state),
        "missing": shortfalls(state),
        "goal": state.goal.text,
        "reason": state.reason,
        "report": state.report.as_ref().map(|report| Report { body: safe::report(&report.body), ..report.clone() }),
        "usage": state.used(),
        "created_at": state.created_at,
        "ended_at": state.ended_at,
    });
    if wanted.out.is_some() || wanted.output.is_some() {
        summary["files"] = files.json();
    }
    summary
}
