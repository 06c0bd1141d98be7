//! What the dashboard takes, and how a fleet that is up is scaled.

use clap::Args;
use muster_bus::credentials::DashboardRole;

use super::read::parse_scale;

/// Show the fleet and its runs in a browser.
///
/// Serves the dashboard on 127.0.0.1 and prints an address that logs you in, once; press Enter for another one. Others log in
/// with a token (`muster keys token`), or by a proxy (docs/dashboard.md). Goes on while the fleet is away. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster ui --open
  muster ui --port 8080 --role viewer
  muster ui --json | jq -r .url")]
pub(crate) struct UiArgs {
    /// Port; 0 for any that is free. Default: ui.port, or any if that is taken.
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Open a browser.
    #[arg(long)]
    pub(crate) open: bool,
    /// Role of whoever opens the printed address: viewer, auditor, operator or admin. Default: what your credentials allow.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<DashboardRole>,
    /// Print each address as JSON, one object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Change the number of processes of a running fleet.
///
/// The supervisor of this folder's fleet starts more, or stops the newest ones, which hand over their tasks. Waits until it is
/// done. The next `muster up` starts as many as its settings say.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  muster scale worker=4 researcher=2")]
pub(crate) struct ScaleArgs {
    /// Number of processes of a role or specialist, such as worker=4; 0 for none.
    #[arg(value_name = "ROLE=N", value_parser = parse_scale, required = true)]
    pub(crate) scale: Vec<(String, u16)>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
