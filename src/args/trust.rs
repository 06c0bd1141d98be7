//! What `muster trust` takes.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Trust the project of this folder.
///
/// Settings in a project's muster.toml that run a program (server.binary), say where keys of models are sent
/// (agent.endpoint, agent.key_file), or point at a bus (bus.url, bus.user, bus.credentials, …) count only once you have
/// trusted the project; so do settings, team and agent files that belong to somebody else or can be written by others,
/// and a nats-server in the project's .muster/bin; so do the keys of a fleet in .muster/nats/keys that you did not make. Shows each of them with file, line and value, then asks. What is trusted is kept with a
/// fingerprint in ~/.local/state/muster (XDG_STATE_HOME); when it changes, it is not trusted any more, and the
/// difference is shown.
///
/// Not asked about: files named by a flag or variable, settings by flags and variables, and your own
/// ~/.config/muster/muster.toml (XDG_CONFIG_HOME). MUSTER_TRUST names folders, with `:` between them, that are trusted
/// with all that is in them.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  muster trust\n  muster trust --yes ~/work/desk\n  muster trust --list\n  muster trust --revoke\n\nExit codes:\n  0  trusted, or there is nothing that needs it\n  2  not trusted: nobody said yes, or what is trusted cannot be kept"
)]
pub(crate) struct TrustArgs {
    /// Folder of the project, or a file in it that is to be trusted too; default: the current folder. The settings file
    /// is the nearest muster.toml, upward.
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) path: Option<PathBuf>,
    /// Do not ask.
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    pub(crate) yes: bool,
    /// List the projects that are trusted.
    #[arg(long, conflicts_with_all = ["revoke", "path"])]
    pub(crate) list: bool,
    /// Trust the project no more.
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
