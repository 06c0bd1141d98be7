//! What the commands that steer a run take.

use std::time::Duration;

use clap::{Args, Subcommand};
use muster_shared::ids::TaskIndex;

use super::people::{AnswerArgs, ApproveArgs, RejectArgs};
use super::read::parse_span;
use crate::app::user;
use crate::place::Place;

/// The commands that steer a run.
#[derive(Debug, Subcommand)]
pub(crate) enum SteerCommand {
    /// Cancel a run.
    Cancel(OrderArgs),
    /// Pause a run.
    Pause(OrderArgs),
    /// Resume a paused run.
    Resume(ResumeArgs),
    /// Skip a task and its subtasks; dependent tasks run without its result.
    #[command(
        after_help = "Examples:\n  muster skip last 1-2 --reason \"not needed\"\n  muster skip last 1-2/1-1"
    )]
    Skip(TaskArgs),
    /// Run a task again, with all tasks that used its result.
    #[command(
        after_help = "Examples:\n  muster redo 0193c2 2 --reason \"the source is out of date\"\n  muster redo last 1-2/1-1"
    )]
    Redo(TaskArgs),
    /// Edit the goal of a run or of a task.
    Edit(EditArgs),
    /// Answer a question of a run.
    Answer(AnswerArgs),
    /// Approve the plan of a run, that it continues, or a call of a tool.
    Approve(ApproveArgs),
    /// Reject the plan of a run, or a call of a tool, and say why.
    Reject(RejectArgs),
}

impl SteerCommand {
    /// The run, the reason, and how the answer is waited for and printed.
    pub(crate) const fn order(&self) -> &OrderArgs {
        match self {
            Self::Cancel(order) | Self::Pause(order) => order,
            Self::Resume(args) => &args.order,
            Self::Skip(args) | Self::Redo(args) => &args.order,
            Self::Edit(args) => &args.order,
            Self::Answer(args) => &args.order,
            Self::Approve(args) => &args.order,
            Self::Reject(args) => &args.order,
        }
    }
}

/// What is asked of a run, and how long its record is watched for the answer.
#[derive(Debug, Clone, Args)]
pub(crate) struct OrderArgs {
    /// Run id, the last digits of it, or `last`; `last/1-2` is the child run of task 1-2.
    pub(crate) run: String,
    /// Reason; kept in the log and passed on to the agents concerned.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
    /// Author; signed credentials of a person take precedence.
    #[arg(skip = user())]
    pub(crate) by: String,
    /// Time to wait until the request is in the log of the run. It stays queued after that.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_span)]
    pub(crate) wait: Duration,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Resume a paused run.
///
/// Tasks continue after their last step, with a new time limit. The deadline of the run is not extended by the pause;
/// --deadline sets a new one.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  muster resume last --deadline 30m")]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// New deadline of the run, counted from now, such as 90s, 10m or 1h30m.
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub(crate) deadline: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Task, such as 1-2; `muster show` lists them. 1-2/1-1 is task 1-1 in the child run of 1-2.
    pub(crate) task: Place<TaskIndex>,
}

/// Edit the goal of a run or of a task.
///
/// A task that has started is run again, with all tasks that used its result. A new goal of the run refines its plan.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster edit last 1-2 --goal \"Look at 2024 only\"\n  muster edit last --editor"
)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Task whose goal to edit; default: the run. 1-2/1-1 is task 1-1 in the child run of 1-2.
    pub(crate) task: Option<Place<TaskIndex>>,
    /// New goal.
    #[arg(long, value_name = "TEXT", required_unless_present = "editor", conflicts_with = "editor")]
    pub(crate) goal: Option<String>,
    /// Edit the goal in $VISUAL or $EDITOR.
    #[arg(long)]
    pub(crate) editor: bool,
}
