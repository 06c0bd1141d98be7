//! Arguments of `muster dead`.

use clap::{Args, Subcommand};

/// Look after what could not be processed: messages nobody understood, tasks that agents kept dying of.
///
/// What cannot be processed is kept as it came, with the reason, for `bus.dead_age`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeadArgs {
    #[command(subcommand)]
    pub(crate) action: DeadAction,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum DeadAction {
    /// List the newest dead letters, oldest first.
    List(DeadListArgs),
    /// Show one with all that is known of it.
    Show(DeadLetterArgs),
    /// Try it once more where it came from: a command is sent again, a task is offered anew.
    Retry(DeadLetterArgs),
    /// Throw it away.
    Drop(DeadLetterArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DeadListArgs {
    /// How many.
    #[arg(long, short = 'n', default_value_t = 50)]
    pub(crate) limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DeadLetterArgs {
    /// The letter's number, as `muster dead list` shows it.
    #[arg(value_name = "SEQ")]
    pub(crate) seq: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
