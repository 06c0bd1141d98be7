//! Arguments of `muster dead`.

use clap::{Args, Subcommand};

/// Manage dead letters: unreadable messages and quarantined tasks.
///
/// A dead letter keeps the original message and the reason for 30 days.
#[derive(Debug, Args)]
pub(crate) struct DeadArgs {
    #[command(subcommand)]
    pub(crate) action: DeadAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadAction {
    /// List the newest dead letters, oldest first.
    List(DeadListArgs),
    /// Show a dead letter.
    Show(DeadLetterArgs),
    /// Show a dead letter, then resend its command or offer its task again.
    Retry(DeadRetryArgs),
    /// Delete a dead letter.
    Drop(DeadLetterArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DeadListArgs {
    /// Maximum number of letters.
    #[arg(long, short = 'n', default_value_t = 50)]
    pub(crate) limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeadLetterArgs {
    /// Number of the letter, as `muster dead list` shows it.
    #[arg(value_name = "SEQ")]
    pub(crate) seq: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show a dead letter, then resend its command in the name of its author, or offer its task again.
///
/// Only a letter that an orchestrator wrote is retried, and a command only if its author signed it. At a terminal it asks
/// first. Elsewhere nothing is sent without --yes: the letter is shown, and the exit code is 2.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  muster dead retry 3\n  muster dead retry 3 --yes --json")]
pub(crate) struct DeadRetryArgs {
    #[command(flatten)]
    pub(crate) letter: DeadLetterArgs,
    /// Send it without asking.
    #[arg(long)]
    pub(crate) yes: bool,
}
