//! What the commands that show runs take.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use muster_shared::ids::{TaskId, TaskIndex};

use crate::place::Place;

/// Print the plan of a run as a graph, coloured by task state.
///
/// Arrows point from a task to the tasks that depend on it. Parent tasks are boxes around their subtasks.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster graph last                                  # Mermaid, for Markdown
  muster graph last/1-2                              # the child run of task 1-2
  muster graph last --format dot | dot -Tsvg > plan.svg
  muster graph 0193c2 -o plan.mmd")]
pub(crate) struct GraphArgs {
    /// Run id, the last digits of it, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Graph language.
    #[arg(long, value_enum, default_value_t = GraphForm::Mermaid)]
    pub(crate) format: GraphForm,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// List or copy the files that the tasks of a run wrote.
///
/// A file that Muster would read as configuration is copied with the ending .untrusted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster artifacts last
  muster artifacts last --get                # copy all into run-ID.files
  muster artifacts last notes/draft.md --get -o drafts")]
pub(crate) struct ArtifactsArgs {
    /// Run id, the last digits of it, or `last`; `last/1-2` is the child run of task 1-2.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Only these files, by path in the workspace of the run.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Copy the files.
    #[arg(long)]
    pub(crate) get: bool,
    /// With --get: folder to copy to, created if missing; default: run-ID.files.
    #[arg(short, long, value_name = "FOLDER", requires = "get", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// With --get: overwrite existing files.
    #[arg(long, requires = "get")]
    pub(crate) force: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// In which language a graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphForm {
    /// Mermaid, for Markdown.
    Mermaid,
    /// DOT, for Graphviz.
    Dot,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster show last
  muster show last 1-2
  muster show last 1-2 --reflection
  muster show last --refinements")]
pub(crate) struct ShowArgs {
    /// Run id, the last digits of it, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Only this task, such as 1-2; 1-2/1-1 is task 1-1 in the child run of 1-2.
    pub(crate) task: Option<Place<TaskIndex>>,
    /// Only the reflections, of the run or of that task.
    #[arg(long, conflicts_with = "refinements")]
    pub(crate) reflection: bool,
    /// Only the plan refinements, with refused ones and the reasons.
    #[arg(long, conflicts_with = "task")]
    pub(crate) refinements: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// With --json: the complete state, with the last steps and their prompts.
    #[arg(long, requires = "json", conflicts_with_all = ["reflection", "refinements"])]
    pub(crate) full: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster trace last\n  muster trace 0193c2 1-2\n  muster trace last plan --json\n  muster trace last 1-2/1-1\n  muster trace last --otlp http://127.0.0.1:4318"
)]
pub(crate) struct TraceArgs {
    /// Run id, the last digits of it, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Only this task: an index such as 1-2, or plan, reflect-1-2, refine-1, write; 1-2/1-1 or 1-2/plan is in the child
    /// run of 1-2.
    pub(crate) task: Option<Place<TaskId>>,
    /// Show thoughts, arguments and observations in full.
    #[arg(long)]
    pub(crate) full: bool,
    /// Follow the run until it ends; reconnects when the bus is lost.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print JSON, one object per line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Send the run, and those within it, as spans of OpenTelemetry: to a receiver of OTLP over HTTP, or into a file (OTLP
    /// JSON, one object per line; `-` is standard output).
    #[arg(long, value_name = "URL|FILE", conflicts_with_all = ["task", "full", "follow", "json"])]
    pub(crate) otlp: Option<String>,
    /// With --otlp: send prompts, answers, arguments and results of tools too.
    #[arg(long, requires = "otlp")]
    pub(crate) content: bool,
}

/// Explain a run: result, evidence, failures, and cost.
///
/// All statements come from the event log. Sums are those of `muster show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster explain last         # result, evidence, failures, time and cost
  muster explain last 1-2     # one task
  muster explain last --full  # alternatives, turning points, commands, cost by task; with log entries
  muster explain last --json  # everything")]
pub(crate) struct ExplainArgs {
    /// Run id, the last digits of it, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Only this task: an index such as 1-2, or plan, reflect-1-2, refine-1, write; 1-2/1-1 or 1-2/plan is in the child
    /// run of 1-2.
    pub(crate) task: Option<Place<TaskId>>,
    /// Show all sections, with log entries.
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,
    /// Print everything as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Replay the decisions of a run from its log and compare them.
///
/// Uses the recorded inputs, times, and model and tool responses; calls no model and runs no tool. Reports the first
/// difference and exits with code 1 if there is one.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Run id, the last digits of it, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Verify that the record of a run is as it was written.
///
/// Computes the hash chain of the run again: a changed, missing, inserted or moved entry before the last decision is found
/// and named. Exits with code 7 if one is, or if the run has no chain.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster audit last
  muster audit 0193c2 --export run.audit.jsonl   # a file that others can verify
  muster audit --file run.audit.jsonl            # without a bus")]
pub(crate) struct AuditArgs {
    /// Run id, the last digits of it, or `last`; `last/1-2` is the child run of task 1-2.
    #[arg(default_value = "last", conflicts_with = "file")]
    pub(crate) run: String,
    /// Write the record to this file, with what others need to verify it.
    #[arg(long, value_name = "FILE", conflicts_with = "file", value_hint = ValueHint::FilePath)]
    pub(crate) export: Option<PathBuf>,
    /// Verify this exported file instead of a run on the bus.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// The fleet's public keys, by which signatures are judged: what `muster keys public` wrote, credentials of the fleet, or
    /// its folder of keys. Default: those known here, else those in the file, as claimed.
    #[arg(long, value_name = "FILE|FOLDER", value_hint = ValueHint::AnyPath)]
    pub(crate) keys: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TapArgs {
    /// Only messages of this run.
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Print whole messages as JSON, one object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Watch the fleet, its runs and what passes, in the terminal.
///
/// Views: fleet, runs, one run with what its tasks do, traffic, questions. ? shows the keys, q quits. For programs there are
/// the --json forms of ps, runs, show, questions and tap.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster top
  muster top last                # the newest run
  ssh -t mill muster top         # on another machine")]
pub(crate) struct TopArgs {
    /// Run to begin with: its id, the last digits of it, or `last`.
    pub(crate) run: Option<String>,
    /// Maximum number of runs to know.
    #[arg(short = 'n', long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
}
