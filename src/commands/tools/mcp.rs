//! Tools of MCP servers for calls by hand: a server is started, or connected to, for as long as the command runs.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use miette::Diagnostic;
use muster_agents::tools::Tool;
use muster_mcp::{Callbacks, McpServer, PinKeeper, Pins, ServerConfig};

use crate::app::App;
use crate::mcp_file::HeldTool;
use crate::{mcp_file, output};

/// Longest start of a server of which no tool is named: a list does not wait for one that hangs.
const LIST_LIMIT: Duration = Duration::from_secs(10);

/// MCP servers that run for a command.
#[derive(Default)]
pub(super) struct StartedServers {
    servers: Vec<McpServer>,
    held: Vec<HeldTool>,
}

impl StartedServers {
    /// Starts the server that a tool of this full name is of; all of them where none is named. What does not start is told, and
    /// left out.
    pub(super) async fn start(app: &App, tool: Option<&str>) -> Self {
        if !mcp_file::path_of(app).exists() {
            return Self::default();
        }
        let namespace = match tool.map(|tool| tool.split_once('.')) {
            Some(None) => return Self::default(),
            Some(Some((namespace, _))) => Some(namespace),
            None => None,
        };
        let file = match mcp_file::read(app) {
            Ok(file) => file,
            Err(failure) => {
                // Whoever names another tool is not bothered with it.
                if namespace.is_none_or(|name| mcp_file::names(app, name)) {
                    let help =
                        Diagnostic::help(&failure).map(|help| format!("\nhelp: {help}")).unwrap_or_default();
                    output::note!("tools of MCP servers are left out: {failure}{help}");
                }
                return Self::default();
            }
        };
        let is_wanted = |config: &ServerConfig| namespace.is_none_or(|name| name == config.namespace);
        let wanted = file.servers.into_iter().filter(is_wanted);
        let started = join_all(wanted.map(|config| start(app, config, namespace.is_none()))).await;
        let (servers, held): (Vec<_>, Vec<_>) = started.into_iter().unzip();
        Self { servers: servers.into_iter().flatten().collect(), held: held.concat() }
    }

    /// Tools that their servers have, and that wait for a person.
    pub(super) fn held(&self) -> Vec<HeldTool> {
        self.held.clone()
    }

    /// Their tools, each under its full name.
    pub(super) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.servers.iter().flat_map(McpServer::tools).collect()
    }

    /// Ends them, with all their processes.
    pub(super) async fn stop(self) {
        join_all(self.servers.iter().map(McpServer::stop)).await;
    }
}

/// The server, if it starts, and its tools that are held back.
async fn start(app: &App, config: ServerConfig, is_one_of_all: bool) -> (Option<McpServer>, Vec<HeldTool>) {
    let name = config.name.clone();
    let left_out = |why: &str| output::note!("tools of the MCP server {name} are left out: {why}");
    let path = mcp_file::pins_of(app, &config.namespace);
    let known = match Pins::load(&path) {
        Ok(pins) => pins,
        Err(error) => {
            left_out(&error.to_string());
            return (None, Vec::new());
        }
    };
    let mut settings = app.settings().tool.mcp.clone();
    if is_one_of_all {
        settings.start_limit = settings.start_limit.min(LIST_LIMIT);
    }
    let (pins, tokens) = (PinKeeper::new(known.clone()), Some(mcp_file::tokens_of(app)));
    let callbacks = Callbacks { pins: pins.clone(), tokens, ..Callbacks::default() };
    let started = Box::pin(McpServer::start(config.clone(), &settings, &callbacks)).await;
    let seen = pins.pins();
    // `muster tools accept` reads the change there. Processes of a fleet that is up keep the file themselves.
    if app.fleet.live().is_none()
        && seen.held(&name) != known.held(&name)
        && let Err(error) = seen.save(&path)
    {
        tracing::warn!(%error, "a change of a tool is not kept");
    }
    (started.map_err(|error| left_out(&error.to_string())).ok(), HeldTool::of(&config, &seen))
}
