//! What the commands about processes take: the fleet, and single agents.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use muster_bus::server::Listen;
use muster_shared::ids::Role;

use super::read::{parse_role, parse_scale, parse_span};

/// Start a local fleet and supervise it.
///
/// Starts a NATS server unless a URL is set (data in .muster/nats), an orchestrator, and a process for each role. Restarts
/// processes that die, with increasing delays; reports those that die too often and stops restarting them. Logs are in
/// .muster/log.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster up
  muster up --scale worker=4 --scale researcher=2
  muster up --scale fact_checker=2
  muster up --detach; muster run \"…\"; muster down
  muster up --listen 0.0.0.0:4222")]
pub(crate) struct UpArgs {
    /// Number of processes of a role or specialist, such as worker=4; 0 for none; repeatable.
    #[arg(long, value_name = "ROLE=N", value_parser = parse_scale)]
    pub(crate) scale: Vec<(String, u16)>,
    /// Encrypt connections (TLS), with a certificate authority of the fleet's own.
    #[arg(long)]
    pub(crate) tls: bool,
    /// Listen on this address for other machines, with TLS; 0.0.0.0 is every address of this one. Default port: any.
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = str::parse::<Listen>)]
    pub(crate) listen: Option<Listen>,
    /// Run in the background; returns once every process has joined and takes tasks.
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// Print status changes as JSON, one object per line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Set for the background process.
    #[arg(long, hide = true)]
    pub(crate) in_background: bool,
    /// Set for the fleet of a run: it stops when no run uses it any more.
    #[arg(long, hide = true)]
    pub(crate) while_used: bool,
}

/// Print or serve the figures of the fleet for Prometheus.
///
/// Figures of the fleet as a whole: processes, queues, dead letters, restarts. Those of a single process are at its own address,
/// where metrics.listen is set; --targets lists these.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster metrics
  muster metrics --targets > targets.json    # file_sd_configs of Prometheus
  muster metrics --listen 127.0.0.1:9464     # /metrics, and /targets for http_sd_configs")]
pub(crate) struct MetricsArgs {
    /// Print where the figures of each process are, as service discovery of Prometheus reads it.
    #[arg(long, conflicts_with_all = ["listen", "openmetrics"])]
    pub(crate) targets: bool,
    /// Serve the figures at this address until stopped.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "openmetrics")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Print OpenMetrics instead of the text form of Prometheus.
    #[arg(long)]
    pub(crate) openmetrics: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    /// Print the stopped processes as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run an agent.
///
/// Joins the fleet at the URL of the settings, or the local fleet of this folder, and takes tasks.
/// SIGTERM and Ctrl-C stop it gracefully: it hands over its tasks.
///
/// A file NAME.agent.md defines a specialist: a custom role with instructions, tools, limits and a contract.
/// Planners can use it as soon as it has joined.
///
/// `tools` serves the tools that files NAME.tool.toml of a folder define to all agents. `muster up` does it for the folder
/// tools. `mcp NAME` serves those of an MCP server that mcp.json names, and so does `muster up` for each.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  muster agent worker\n  muster --url nats://10.0.0.5:4222 agent researcher\n  muster agent deploy/examples/fact-checker.agent.md\n  muster agent --check mine.agent.md\n  muster agent tools --check\n  muster agent tools mine --name mine\n  muster agent mcp time"
)]
pub(crate) struct AgentArgs {
    /// Role (planner, researcher, worker, reflector, refiner or writer), specialist file, `tools`, or `mcp`.
    #[arg(value_name = "ROLE|FILE|tools|mcp", value_parser = parse_kind, value_hint = ValueHint::FilePath)]
    pub(crate) kind: AgentKind,
    /// With tools: the folder of the tool files; default: tools. With mcp: the server's name in mcp.json.
    #[arg(value_name = "FOLDER|NAME", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
    /// With tools: the name before those of the tools; default: own.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Only check the specialist file, or the tool files, and print what is defined.
    #[arg(long)]
    pub(crate) check: bool,
    /// With --check: print JSON.
    #[arg(long, requires = "check")]
    pub(crate) json: bool,
}

/// What kind of agent is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// One that comes with Muster.
    BuiltIn(Role),
    /// One that a file defines.
    File(PathBuf),
    /// None: it serves tools of files.
    Tools,
    /// None: it serves those of an MCP server.
    Mcp,
}

/// A file's name has a dot or a slash in it, a role's has neither.
fn parse_kind(text: &str) -> Result<AgentKind, String> {
    if text == "tools" {
        return Ok(AgentKind::Tools);
    }
    if text == "mcp" {
        return Ok(AgentKind::Mcp);
    }
    if text.contains(['/', '.']) {
        return Ok(AgentKind::File(PathBuf::from(text)));
    }
    let unknown = |wrong| format!("{wrong}; a specialist is named by its file, NAME.agent.md");
    parse_role(text).map(AgentKind::BuiltIn).map_err(unknown)
}

/// Test a program against the task gateway.
///
/// Starts a private fleet and the command, with credentials of the role in its environment. Gives the program four tasks: one
/// as usual, one during which it is killed and started again, one that is cancelled, and one that is suspended. docs/gateway.md
/// describes the requests.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  muster check-agent word_counter -- python3 deploy/examples/specialist.py\n\nA check with the verdict \"warn\" could not be made, or found a weakness. It does not fail the test.\n\nExit codes:\n  0  no check failed\n  1  a check failed: each has a line with the fix\n  2  invalid arguments, or the command cannot be started\n  3  the bus cannot be reached or used"
)]
pub(crate) struct CheckAgentArgs {
    /// Role of the program.
    pub(crate) role: Role,
    /// Time limit of each task.
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "30s")]
    pub(crate) timeout: Duration,
    /// Goal of the tasks.
    #[arg(long, value_name = "GOAL", default_value = "Count the words of this sentence.")]
    pub(crate) goal: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Command that starts the program.
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub(crate) command: Vec<String>,
}
