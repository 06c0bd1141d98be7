//! What the commands that show runs take.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use muster_shared::ids::{TaskId, TaskIndex};

use crate::place::Place;

#[derive(Debug, Clone, Args)]
pub(crate) struct RunsArgs {
    /// How many at most.
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
    pub(crate) limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Draw the plan of a run as a graph, coloured by state.
///
/// Arrows lead from what a task needs to the task. Tasks that others are part of are boxes around them.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster graph last                                  # Mermaid, for Markdown
  muster graph last/1-2                              # the run that task 1-2 has of its own
  muster graph last --format dot | dot -Tsvg > plan.svg
  muster graph 0193c2 -o plan.mmd")]
pub(crate) struct GraphArgs {
    /// The run: its id, the end of it that is shown, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Which language.
    #[arg(long, value_enum, default_value_t = GraphForm::Mermaid)]
    pub(crate) format: GraphForm,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// List the files that a run's tasks made, or copy them here.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster artifacts last
  muster artifacts last --get                # all of them, into the current folder
  muster artifacts last notes/draft.md --get -o drafts")]
pub(crate) struct ArtifactsArgs {
    /// The run: its id, the end of it that is shown, or `last`; `last/1-2` is the run within its task 1-2.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Only these, by their paths in the run's workspace.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Copy them.
    #[arg(long)]
    pub(crate) get: bool,
    /// With --get: the folder to copy them into, made if it is not there.
    #[arg(short, long, value_name = "FOLDER", default_value = ".", requires = "get", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    /// With --get: replace files that are there already.
    #[arg(long, requires = "get")]
    pub(crate) force: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// In which language a graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphForm {
    /// Mermaid, which Markdown viewers draw.
    Mermaid,
    /// DOT, which Graphviz draws.
    Dot,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster show last
  muster show last 1-2
  muster show last 1-2 --reflection
  muster show last --refinements")]
pub(crate) struct ShowArgs {
    /// The run: its id, the end of it that is shown, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Only this task, by its index, such as 1-2; 1-2/1-1 is in the run that 1-2 has of its own.
    pub(crate) task: Option<Place<TaskIndex>>,
    /// Only what was learnt, from the whole run or from that task.
    #[arg(long, conflicts_with = "refinements")]
    pub(crate) reflection: bool,
    /// Only the changes of plan, with what was refused and why.
    #[arg(long, conflicts_with = "task")]
    pub(crate) refinements: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// With --json: everything that is known, with the last steps and what models were sent for them.
    #[arg(long, requires = "json", conflicts_with_all = ["reflection", "refinements"])]
    pub(crate) full: bool,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  muster trace last\n  muster trace 0193c2 1-2\n  muster trace last plan --json\n  muster trace last 1-2/1-1"
)]
pub(crate) struct TraceArgs {
    /// The run: its id, the end of it that is shown, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Only this task: an index such as 1-2, or plan, reflect-1-2, refine-1, write; 1-2/1-1 or 1-2/plan in the run that
    /// 1-2 has of its own.
    pub(crate) task: Option<Place<TaskId>>,
    /// Show thoughts, arguments and observations in full.
    #[arg(long)]
    pub(crate) full: bool,
    /// Go on until the run ends; goes on by itself after the bus was away.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make every decision of a run again from its record, and compare.
///
/// Recorded inputs, times, and model and tool answers are fed back: no model is asked and no tool runs. The first
/// difference is named, with what the record holds and what came now; the exit code is then 1.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplayArgs {
    /// The run: its id, the end of it that is shown, or `last`.
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Render every prompt anew as well, by the templates at hand, and compare it with what was sent.
    #[arg(long)]
    pub(crate) rerender: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct TapArgs {
    /// Only the traffic of this run.
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Print whole messages as JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,
}
