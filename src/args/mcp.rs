//! What `muster mcp` takes.

use clap::{Args, Subcommand};

use super::about::JsonArgs;
use super::read::parse_span;

/// List the MCP servers of mcp.json, and authorize Muster at those that ask for it.
///
/// Authorizing shows an address that you open in a browser on this machine. The token that comes of it lies in a file that
/// only you can read, and is renewed without you.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster mcp list
  muster mcp login tickets
  muster mcp logout tickets")]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) action: McpAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpAction {
    /// List the servers of the file, how each is reached, and whether it is authorized.
    List(JsonArgs),
    /// Authorize Muster at a server, in a browser.
    Login(McpLoginArgs),
    /// Forget the token of a server.
    Logout(McpServerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct McpLoginArgs {
    /// Server, as mcp.json names it.
    #[arg(value_name = "NAME")]
    pub(crate) server: String,
    /// How long the browser is waited for.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_span)]
    pub(crate) limit: std::time::Duration,
}

#[derive(Debug, Args)]
pub(crate) struct McpServerArgs {
    /// Server, as mcp.json names it.
    #[arg(value_name = "NAME")]
    pub(crate) server: String,
}
