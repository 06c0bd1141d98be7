//! What the commands that steer a run take.

use std::time::Duration;

use clap::Args;
use muster_shared::ids::TaskIndex;

use super::read::parse_span;
use crate::place::Place;

/// What is asked of a run, and how long its record is watched for the answer.
#[derive(Debug, Clone, Args)]
pub(crate) struct OrderArgs {
    /// The run: its id, the end of it that is shown, or `last`; `last/1-2` is the run that task 1-2 has of its own.
    pub(crate) run: String,
    /// Why. It is recorded, and whoever works on it is told.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
    /// How long to wait until it is on record; after that it is kept all the same.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_span)]
    pub(crate) wait: Duration,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let a run that is paused go on.
///
/// What was in hand goes on after its last step, with new time. The deadline of the run went on during the pause;
/// --deadline sets a later one.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  muster resume last --deadline 30m")]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Time for the run from now on, such as 90s, 10m or 1h30m.
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub(crate) deadline: Option<Duration>,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  muster skip last 1-2 --reason \"not needed\"\n  muster redo 0193c2 2 --reason \"the source is out of date\"\n  muster skip last 1-2/1-1"
)]
pub(crate) struct TaskArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// The task, such as 1-2; `muster show` lists them. 1-2/1-1 is the task 1-1 of the run that 1-2 has of its own.
    pub(crate) task: Place<TaskIndex>,
}

/// Change the goal of a run or of a task.
///
/// A task that was begun is done again, with whatever used its result. For a new goal of the run, its plan is refined.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  muster edit last 1-2 --goal \"Look at 2024 only\"\n  muster edit last --editor"
)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// The task whose goal it is; without one, the goal of the run. 1-2/1-1 is in the run that 1-2 has of its own.
    pub(crate) task: Option<Place<TaskIndex>>,
    /// The goal as it is to be.
    #[arg(long, value_name = "TEXT", required_unless_present = "editor", conflicts_with = "editor")]
    pub(crate) goal: Option<String>,
    /// Change the goal in $VISUAL or $EDITOR.
    #[arg(long)]
    pub(crate) editor: bool,
}
