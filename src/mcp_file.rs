//! The file that names MCP servers (`mcp.json`), as the command line reads it: whose it is counts, since it runs programs.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[cfg(feature = "mcp")]
use muster_mcp::{LeftOut, McpFile, Reading, ServerConfig, parse};
#[cfg(feature = "mcp")]
use muster_shared::wire::tool_server::{SERVER_NAME_RULE, is_tool_server_name};

use crate::app::App;
#[cfg(feature = "mcp")]
use crate::commands::agent::tools::OWN;
use crate::exit::Failure;

/// Most servers in the file. Each one is a process.
const MAX_SERVERS: u32 = 32;

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The file, beside the fleet.
pub(crate) fn path_of(app: &App) -> PathBuf {
    app.beside_fleet(&app.settings().tool.mcp.file)
}

/// Where it is kept what was seen and accepted of the tools of an MCP server, by the name before those of its tools. Each
/// server has a file of its own: the processes of several never write over each other.
pub(crate) fn pins_of(app: &App, namespace: &str) -> PathBuf {
    app.fleet.path().join(format!("mcp-pins-{namespace}.json"))
}

/// The folder of the tokens by which we are authorized at MCP servers.
pub(crate) fn tokens_of(app: &App) -> PathBuf {
    app.fleet.path().join("mcp-tokens")
}

/// When a file was last written, and how long it is: one that has the same is not read again.
pub(crate) fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let known = std::fs::metadata(path).ok()?;
    Some((known.modified().ok()?, known.len()))
}

#[cfg(feature = "mcp")]
/// Reads the file.
///
/// # Errors
/// When it is not there, is somebody else's, or is no such file.
pub(crate) fn read(app: &App) -> Result<McpFile, Failure> {
    let path = path_of(app);
    let shown = path.display();
    if !path.exists() {
        return Err(Failure::usage(format!("there is no {shown}")).help(
            "write it as for other tools: {\"mcpServers\": {\"time\": {\"command\": \"mcp-server-time\"}}}; tool.mcp.file names \
             another",
        ));
    }
    let text = muster_agents::input::text(&path, MAX_BYTES)
        .map_err(|why| Failure::usage(format!("{shown} cannot be read: {why}")))?;
    let base = app.fleet.path().parent().unwrap_or(&path);
    if let Some(fault) = app.trust.fault_of_found(&path, base, &text) {
        let (about, mend) = (fault.about(&path), fault.mend());
        return Err(Failure::usage(format!("{shown} does not count: {about}"))
            .help(format!("{mend}, or `muster trust {shown}` lets it count as it is now")));
    }
    // It runs programs and says who is sent what, wherever it comes from.
    if !app.trust.trusts_to_run(&path, &text) {
        return Err(Failure::usage(format!(
            "{shown} does not count: it runs programs, which takes your word"
        ))
        .help("`muster trust` shows it and asks"));
    }
    let most = MAX_SERVERS;
    let environment = |name: &str| std::env::var(name).ok();
    let reading = Reading { max_servers: most as usize, environment: &environment };
    let mut file = parse(&text, &reading).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    let is_taken =
        |server: &mut ServerConfig| server.namespace == OWN || !is_tool_server_name(&server.namespace);
    for ServerConfig { name, namespace, .. } in file.servers.extract_if(.., is_taken) {
        let reason = format!(
            "{namespace:?} is not a name for its tools; rename the server: {SERVER_NAME_RULE}, and not {OWN}"
        );
        file.left_out.push(LeftOut { server: name, reason });
    }
    Ok(file)
}
