//! What the commands about other machines take.

use std::time::Duration;

use clap::Args;
use muster_shared::ids::{AgentId, Role};

use super::read::{parse_role, parse_scale, parse_span};

/// Invite another machine to join the fleet.
///
/// Prints one line for `muster join` on the other machine. It says where the fleet is, by what its server is known, and holds
/// a secret: whoever has the line may join as often as it says, until it expires. The fleet must be up, and listen on the
/// network (`muster up --listen`).
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster invite\n  muster invite --role worker --role researcher --uses 3 --expires 10m\n  muster invite | ssh mill 'cd fleet && muster join -'\n  muster invite --list\n  muster invite --withdraw guest-5f3a9c21\n\nExit codes:\n  0  done\n  2  invalid arguments, or the fleet cannot be reached from elsewhere"
)]
pub(crate) struct InviteArgs {
    /// Role of which the machine may start agents (worker, researcher, …); repeatable.
    #[arg(long = "role", value_name = "ROLE", value_parser = parse_role, default_value = "worker")]
    pub(crate) roles: Vec<Role>,
    /// How many machines may join by it (1 to 1000).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) uses: u16,
    /// For how long it counts, such as 10m or 2h; 30 days at most.
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "1h")]
    pub(crate) expires: Duration,
    /// Where the other machine reaches the fleet; repeatable; default: where it listens.
    #[arg(long = "address", value_name = "HOST:PORT")]
    pub(crate) addresses: Vec<String>,
    /// List the invitations that count, and the machines that joined.
    #[arg(long, conflicts_with_all = ["roles", "uses", "expires", "addresses", "withdraw"])]
    pub(crate) list: bool,
    /// Withdraw an invitation; machines that joined by it stay.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["roles", "uses", "expires", "addresses"])]
    pub(crate) withdraw: Option<AgentId>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Join a fleet from another machine, and start agents for it here.
///
/// The line is what `muster invite` printed. The machine gets credentials of its own, kept in .muster/joined of this folder;
/// the line is not needed again: `muster join` alone goes on. Agents are supervised as those of `muster up` are, and
/// `muster down` stops them. Keys of models are this machine's own (`muster doctor` checks them).
///
/// Arguments can be read by everybody on this machine: use - or MUSTER_INVITATION where others work on it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster join muster1.eyJ…\n  muster join - --scale worker=4 < invitation\n  MUSTER_INVITATION=muster1.eyJ… muster join --detach\n  muster join\n\nExit codes:\n  0  stopped\n  1  the agents died too often\n  2  the line is no invitation, or counts no more\n  3  the fleet cannot be reached, or let this machine in no more"
)]
pub(crate) struct JoinArgs {
    /// The invitation, or - for standard input; default: MUSTER_INVITATION, else go on where this folder joined.
    #[arg(value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) line: Option<String>,
    /// Number of agents of a role, such as worker=4; repeatable; default: as many as suit the machine.
    #[arg(long, value_name = "ROLE=N", value_parser = parse_scale)]
    pub(crate) scale: Vec<(String, u16)>,
    /// Run in the background; returns once the agents are started.
    #[arg(short, long, visible_alias = "in-background")]
    pub(crate) detach: bool,
    /// Print status changes as JSON, one object per line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Set for the background process.
    #[arg(long, hide = true)]
    pub(crate) as_supervisor: bool,
}
