//! What the commands about processes take: the fleet, and single agents.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use muster_shared::ids::{AgentId, Role};

use super::read::{parse_role, parse_scale, parse_span};

/// Bring up a local fleet and watch over it.
///
/// Starts a NATS server when no URL is set (its store is kept under .muster/nats), an orchestrator, and a
/// process for each role. What dies is started again, later each time; what dies too often is given up, and
/// that is said. Logs of each process are in .muster/log.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  muster up
  muster up --scale worker=4 --scale researcher=2
  muster up --scale fact_checker=2
  muster up --detach; muster run \"…\"; muster down")]
pub(crate) struct UpArgs {
    /// Processes of a role or specialist (0 for none), such as worker=4. May be repeated.
    #[arg(long, value_name = "ROLE=N", value_parser = parse_scale)]
    pub(crate) scale: Vec<(String, u16)>,
    /// Go on in the background once the fleet is up, that is, once every process has joined and takes work.
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// Print changes only as JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Set for the process that goes on in the background.
    #[arg(long, hide = true)]
    pub(crate) in_background: bool,
    /// Set for the fleet of a run: it ends when no run uses it any more.
    #[arg(long, hide = true)]
    pub(crate) while_used: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DownArgs {
    /// Print what was stopped as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Be an agent of a role, until told to stop.
///
/// Joins the fleet of the settings' URL, or the local fleet of this folder, and takes tasks at once.
/// SIGTERM and Ctrl-C end it in good order: what it holds is handed over.
///
/// A file NAME.agent.md defines a specialist: a role of your own, with instructions, tools, limits and a contract.
/// Planners learn of it as soon as it has joined.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  muster agent worker\n  muster --url nats://10.0.0.5:4222 agent researcher\n  muster agent deploy/examples/fact-checker.agent.md\n  muster agent --check mine.agent.md"
)]
pub(crate) struct AgentArgs {
    /// planner, researcher, worker, reflector, refiner or writer; or a file that defines a specialist.
    #[arg(value_name = "ROLE|FILE", value_parser = parse_kind, value_hint = ValueHint::FilePath)]
    pub(crate) kind: AgentKind,
    /// Only check the file: say what it defines, or what is wrong and where.
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
}

/// A file's name has a dot or a slash in it, a role's has neither.
fn parse_kind(text: &str) -> Result<AgentKind, String> {
    if text.contains(['/', '.']) {
        return Ok(AgentKind::File(PathBuf::from(text)));
    }
    let unknown = |wrong| format!("{wrong}; a specialist is named by its file, NAME.agent.md");
    parse_role(text).map(AgentKind::BuiltIn).map_err(unknown)
}

/// Check an agent of any language against the protocol, and say what it does wrong.
///
/// The agent is given four tasks: one like any other, one that somebody else began, one that is closed already, and one
/// that is cancelled. What it writes is watched. With a command after `--`, a bus of its own is brought up and the command
/// started, with its address in NATS_URL; else the agent is looked for in the fleet, and the tasks stay in its record.
/// Takes as long as the tasks and one heartbeat do.
/// docs/agents.md has the protocol.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  muster conform -- python3 deploy/examples/specialist.py\n  muster conform --role word_counter\n  muster conform word_counter-5f3a9c21 --json\n\nExit codes:\n  0  it keeps the protocol, as far as was seen\n  1  it breaks the protocol, or is not there: each fault is named, with how to mend it\n  2  wrong usage, or the command cannot be started\n  3  the bus cannot be reached or used"
)]
pub(crate) struct ConformArgs {
    /// The agent, by its id; any that is there when left out.
    pub(crate) agent: Option<AgentId>,
    /// An agent of this role.
    #[arg(long, value_name = "ROLE", conflicts_with = "agent")]
    pub(crate) role: Option<String>,
    /// Time for each of the tasks.
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "30s")]
    pub(crate) limit: Duration,
    /// What the agent is asked to do.
    #[arg(long, value_name = "GOAL", conflicts_with = "task")]
    pub(crate) goal: Option<String>,
    /// The task it is given, as one of a plan file is written: name, goal, expected_output, needs (.json, .toml, .yaml).
    #[arg(long, value_name = "FILE")]
    pub(crate) task: Option<PathBuf>,
    /// Fail too when something was not seen.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The command that starts the agent.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
