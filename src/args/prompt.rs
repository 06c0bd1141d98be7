//! Arguments of `muster prompt`.

use clap::Args;
use muster_shared::ids::TaskId;

use crate::place::Place;

/// Show the exact prompt of a step.
///
/// Reads it from the log of the run, without an agent and without rendering it again, and verifies it against the recorded
/// hash.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster prompt last 1-2          # the last step
  muster prompt last 1-2 3        # step 3
  muster prompt last 1-2 3 --diff # changes since step 2
  muster prompt last plan --json")]
pub(crate) struct PromptArgs {
    /// Run id, the last digits of it, or `last`.
    pub(crate) run: String,
    /// Task: an index such as 1-2, or plan, reflect-1-2, refine-1, write; 1-2/1-1 is in the child run of 1-2.
    pub(crate) task: Place<TaskId>,
    /// Step number; default: the last step.
    #[arg(value_name = "STEP")]
    pub(crate) step: Option<u32>,
    /// Number of the model call within the step; default: the last call.
    #[arg(long, value_name = "N")]
    pub(crate) call: Option<usize>,
    /// Generation of the task; default: the newest.
    #[arg(long, value_name = "N")]
    pub(crate) generation: Option<u32>,
    /// Show only changes since the previous step.
    #[arg(long)]
    pub(crate) diff: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
