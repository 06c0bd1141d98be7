//! Arguments of `muster dead`.

use clap::{Args, Subcommand};

/// Manage dead letters: unreadable messages and quarantined tasks.
///
/// A dead letter keeps the original message and the reason for 30 days.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeadArgs {
    #[command(subcommand)]
    pub(crate) action: DeadAction,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum DeadAction {
    /// List the newest dead letters, oldest first.
    List(DeadListArgs),
    /// Show a dead letter.
    Show(DeadLetterArgs),
    /// Retry a dead letter: resend the command, or offer the task again.
    Retry(DeadLetterArgs),
    /// Delete a dead letter.
    Drop(DeadLetterArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DeadListArgs {
    /// Maximum number of letters.
    #[arg(long, short = 'n', default_value_t = 50)]
    pub(crate) limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DeadLetterArgs {
    /// Number of the letter, as `muster dead list` shows it.
    #[arg(value_name = "SEQ")]
    pub(crate) seq: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
