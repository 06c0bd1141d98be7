//! Arguments of `muster prompt`.

use clap::Args;
use muster_shared::ids::TaskId;

use crate::place::Place;

/// Show exactly what a model was sent for a step.
///
/// It is put together from the record, so nobody has to be alive and nothing is rendered anew; what is shown is
/// checked against the hash that was recorded with it.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster prompt last 1-2          # of the last step
  muster prompt last 1-2 3        # of the third
  muster prompt last 1-2 3 --diff # what is new since the step before
  muster prompt last plan --json")]
pub(crate) struct PromptArgs {
    /// The run: its id, the end of it that is shown, or `last`.
    pub(crate) run: String,
    /// The task: an index such as 1-2, or plan, reflect-1-2, refine-1, write; 1-2/1-1 in the run of 1-2.
    pub(crate) task: Place<TaskId>,
    /// The step, from 1; the last one when absent.
    #[arg(value_name = "STEP")]
    pub(crate) step: Option<u32>,
    /// Which call of the step, from 1, where the model was asked more than once; the last one when absent.
    #[arg(long, value_name = "N")]
    pub(crate) call: Option<usize>,
    /// Which generation of the task; the newest one when absent.
    #[arg(long, value_name = "N")]
    pub(crate) generation: Option<u32>,
    /// Only what changed since the step before.
    #[arg(long)]
    pub(crate) diff: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
