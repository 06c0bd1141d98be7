//! What `muster tools` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::about::JsonArgs;

/// List tools, call one by hand, and see how their calls went.
///
/// Calls by hand go through the same engine as those of agents, with the same limits and permissions, in this process: they
/// need no fleet, and stand in no record.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster tools list
  muster tools show corpus.search
  muster tools call calculator --args '{\"expression\": \"17.5 / 100 * 2480\"}'
  muster tools call corpus.search --docs docs --args '{\"query\": \"delegation\"}'
  muster tools stats --run last
  muster tools leases")]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) action: ToolsAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsAction {
    /// List tools: what they touch, whether they change anything, whether they are on.
    List(JsonArgs),
    /// Show a tool: its arguments, its limits, and who may use it.
    Show(ToolsNameArgs),
    /// Call a tool.
    Call(ToolsCallArgs),
    /// Check tools: their schemas, and a harmless call of each that has one.
    Test(ToolsTestArgs),
    /// Show the change of a tool that is held back, and accept it.
    Accept(ToolsAcceptArgs),
    /// Show how the calls of tools went in the newest runs, from their records.
    Stats(ToolsStatsArgs),
    /// List the tools that agents have lent to others, as the lenders say.
    Leases(JsonArgs),
    /// End leases of tools at once, with the calls under them.
    Revoke(ToolsRevokeArgs),
}

/// End leases of tools at once, with the calls under them.
///
/// What is revoked is not lent again: of a lease, to its task; of a tool or an agent, at all, until the lender is started anew.
/// Exits with code 1 if a lender does not answer, 2 if there is no such lease.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster tools revoke researcher-5f3a9c21.3
  muster tools revoke --tool sql
  muster tools revoke --tool sql --agent worker-0c41d2aa")]
pub(crate) struct ToolsRevokeArgs {
    /// Lease, as `muster tools leases` shows it.
    #[arg(required_unless_present_any = ["tool", "agent"])]
    pub(crate) lease: Option<String>,
    /// All leases of this tool.
    #[arg(long, value_name = "NAME", conflicts_with = "lease")]
    pub(crate) tool: Option<String>,
    /// All leases that this agent has borrowed.
    #[arg(long, value_name = "ID", conflicts_with = "lease")]
    pub(crate) agent: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the change of a tool of an MCP server that is held back, then accept it.
///
/// A tool is held back if its description differs from the one that was accepted: models do what descriptions say. At a terminal
/// you are asked. Elsewhere the change is shown, nothing is accepted, and the exit code is 2; the next call with --yes then accepts
/// exactly what was shown.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster tools accept time get_current_time
  muster tools accept time get_current_time --yes

Exit codes:
  0  accepted
  2  not accepted: it was not confirmed, this change was not shown before, or nothing is held back")]
pub(crate) struct ToolsAcceptArgs {
    /// Server, as in mcp.json.
    pub(crate) server: String,
    /// Tool, by its name at the server.
    pub(crate) tool: String,
    /// Accept the change that an earlier call showed.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsNameArgs {
    /// Tool.
    pub(crate) name: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Call a tool.
///
/// Exits with code 0 if the tool did what it was asked, 1 if it failed or took too long, 2 if the call was refused: no such
/// tool, wrong arguments, or not allowed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster tools call calculator --args '{\"expression\": \"2 + 3\"}'
  echo '{\"path\": \"a.md\", \"content\": \"hello\"}' | muster tools call workspace.write --args - --workspace here
  muster tools call fetch --args @request.json --set 'tool.allow=[\"fetch\"]'")]
pub(crate) struct ToolsCallArgs {
    /// Tool.
    pub(crate) name: String,
    /// Arguments, as a JSON object, @FILE, or - for standard input.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) args: String,
    /// Folder (or file) of documents for the tool; repeatable.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::AnyPath)]
    pub(crate) docs: Vec<PathBuf>,
    /// Folder whose files the tool sees and changes; default: a new one, which is named.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check tools: their schemas, and a harmless call of each that has one.
///
/// Exits with code 1 if one of them does not work. What is off is not called.
#[derive(Debug, Args)]
pub(crate) struct ToolsTestArgs {
    /// Tool; default: all.
    pub(crate) name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsStatsArgs {
    /// Only this run: its id, the last digits of it, or `last`.
    #[arg(long, value_name = "RUN", conflicts_with = "limit")]
    pub(crate) run: Option<String>,
    /// Number of newest runs.
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
    pub(crate) limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
