//! What `muster trust` takes.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Trust the project of this folder.
///
/// Files of a project take effect at once if they are harmless, or if they only reduce what your own settings allow.
/// These need your consent: settings that run programs, choose models, raise limits, change approvals, or set where keys
/// are sent and the address of the bus (`muster config --explain KEY` shows the class of each); mcp.json; tool files that reach
/// hosts, leave the sandbox or read files outside of the project; agent files with a model; files that belong to another
/// user or can be written by others; a nats-server in .muster/bin; and keys of a fleet that you did not make. Shows each of
/// them with its file and value, then asks. Values, these files and the programs of the project that they run are kept with
/// a fingerprint in ~/.local/state/muster (XDG_STATE_HOME): after a change, the difference is shown and you are asked again.
///
/// Not asked about: files named by a flag or variable, settings by flags and variables, and your own
/// ~/.config/muster/muster.toml (XDG_CONFIG_HOME). MUSTER_TRUST names folders, with `:` between them, that are trusted
/// with all that is in them.
#[derive(Debug, Args)]
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
