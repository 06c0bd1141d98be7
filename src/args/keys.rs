//! What `muster keys` takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use muster_bus::credentials::DashboardRole;

use super::read::parse_span;

/// Make and hand out the keys by which processes and people are let in to a fleet.
///
/// A local fleet makes its keys at its first start, in .muster/nats/keys (mode 0700), and gives each of its processes
/// credentials of its own: nobody connects without. Whoever reads this folder is the fleet's owner. Credentials are
/// `.creds` files (NATS JWT and NKey) that `nats` and every NATS client read; docs/rights.md says what each kind may do.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster keys issue word_counter --out word_counter.creds\n  muster keys issue worker --expires 30d > worker.creds\n  muster keys issue observer --name dashboard --out dashboard.creds\n  muster keys person ann --out ann.creds\n  muster keys token ann --role operator\n  muster keys context && nats --context muster sub 'run.>'\n  muster keys rotate --grace 10m\n  muster keys export > accounts.conf\n  muster keys certificate nats-0.example.org 10.0.0.5 --out nats-0\n\nExit codes:\n  0  done\n  1  the file cannot be written\n  2  invalid arguments, or there are no keys, or others can read them"
)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
    /// Folder of the keys; default: that of the fleet of this folder.
    #[arg(long, global = true, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) keys: Option<PathBuf>,
}

/// What is done with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make the keys of a fleet where there are none, and say where they are.
    Init,
    /// Make credentials for one process or person.
    Issue(IssueArgs),
    /// Make credentials for a person, as `issue person:NAME` does.
    Person(PersonArgs),
    /// Make a token by which a person logs in to the dashboard.
    Token(TokenArgs),
    /// List what was issued and counts.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let somebody in no more, and cut off who is connected.
    Revoke {
        /// What the process or person is called, by `muster keys list` or `muster ps`.
        name: String,
    },
    /// Put new signing keys, credentials and certificates in the place of those that are there, while runs go on.
    Rotate(RotateArgs),
    /// Print the part of a NATS server's configuration that lets the fleet in.
    Export,
    /// Make a certificate for a NATS server of your own, by the fleet's authority.
    Certificate(CertificateArgs),
    /// Print the fleet's public keys, by which others verify what `muster audit --export` writes, and their fingerprint.
    Public,
    /// Give the `nats` command a context with which it watches this fleet and changes nothing.
    Context(ContextArgs),
}

/// Credentials that are asked for.
#[derive(Debug, Args)]
pub(crate) struct IssueArgs {
    /// For whom: operator, person:NAME, observer, orchestrator, guard:NAME, tools:NAME, a built-in role (worker), the role of a
    /// program (word_counter), or agent:ROLE for an agent of a definition file.
    pub(crate) holder: String,
    /// What the process is called on the bus; default: the role and some digits. Two processes never share a name.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// For how long they count, such as 12h or 30d; default: until they are revoked.
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub(crate) expires: Option<Duration>,
    /// File to write, for its owner alone; default: standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

/// The person that credentials are for.
#[derive(Debug, Clone, Args)]
pub(crate) struct PersonArgs {
    /// What the person is called.
    name: String,
    /// For how long they count, such as 12h or 30d; default: until they are revoked.
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    expires: Option<Duration>,
    /// File to write, for its owner alone; default: standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
}

impl From<PersonArgs> for IssueArgs {
    fn from(PersonArgs { name, expires, out }: PersonArgs) -> Self {
        Self { holder: format!("person:{name}"), name: None, expires, out }
    }
}

/// The token that is asked for.
///
/// It is credentials on one line: whoever has it is who it names. `muster keys list` lists it, `muster keys revoke NAME` makes it
/// count no more. The text of a .creds file of a person does as well: as an operator.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// What the person is called: what he does is recorded in this name.
    pub(crate) name: String,
    /// Role in the dashboard: viewer, auditor, operator or admin. docs/dashboard.md says what each may do.
    #[arg(long, default_value = "viewer")]
    pub(crate) role: DashboardRole,
    /// For how long it counts, such as 12h or 30d.
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "720h")]
    pub(crate) expires: Duration,
    /// File to write, for its owner alone; default: standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

/// What is rotated.
///
/// New keys vouch from now on. Credentials of the fleet's processes and of its owner are made anew in their files, which
/// connections read whenever they are made; who runs is not disturbed. Credentials that were handed out elsewhere count until
/// the time is over: make new ones with `muster keys issue`. Certificates are made anew by the same authority.
#[derive(Debug, Args)]
pub(crate) struct RotateArgs {
    /// For how long credentials of before count still.
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "1h")]
    pub(crate) grace: Duration,
    /// Let nobody in any more by keys of before, and cut off whoever came in by them; make no new keys.
    #[arg(long)]
    pub(crate) finish: bool,
    /// Make the certificates anew alone.
    #[arg(long, conflicts_with = "finish")]
    pub(crate) certificates: bool,
}

/// The certificate that is asked for.
///
/// Writes server.pem, server.key and ca.pem, to be copied to the server. It holds for 397 days, for clients and for the other
/// servers of a cluster. Made again, it has a new key; the authority stays. A fleet of `muster up --tls` makes its own.
#[derive(Debug, Args)]
pub(crate) struct CertificateArgs {
    /// Names and addresses by which the server is reached.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Folder to write to; made where there is none.
    #[arg(long, value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
}

/// The context that is asked for.
#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    /// What it is called.
    #[arg(long, default_value = "muster")]
    pub(crate) name: String,
}
