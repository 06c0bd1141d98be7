//! What `muster guard` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Run a guard.
///
/// A guard is asked at hooks of a run whether it may go on so, and says allow, change or refuse. Which guards are asked, and
/// when, stands in the settings ([guards.NAME]); `muster up` starts those of them that come with Muster.
/// docs/guards.md describes hooks, settings and the protocol for guards of your own.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster guard secrets
  muster guard allow-list tools.toml
  muster --url nats://10.0.0.5:4222 guard allow-list tools.toml --name tools")]
pub(crate) struct GuardArgs {
    #[command(subcommand)]
    pub(crate) kind: GuardChoice,
}

/// Which guard.
#[derive(Debug, Subcommand)]
pub(crate) enum GuardChoice {
    /// Find keys, tokens and personal data, and take them out.
    Secrets {
        /// Name of the guard in the settings.
        #[arg(long, value_name = "NAME", default_value = "secrets")]
        name: String,
    },
    /// Hold tool calls against a file: tools by name, arguments by pattern.
    AllowList {
        /// The list (TOML).
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Name of the guard in the settings.
        #[arg(long, value_name = "NAME", default_value = "allow-list")]
        name: String,
        /// Only check the file.
        #[arg(long)]
        check: bool,
    },
}
