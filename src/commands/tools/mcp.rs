//! Tools of MCP servers for calls by hand: a server is started, or connected to, for as long as the command runs.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use miette::Diagnostic;
use muster_agents::tools::Tool;
use muster_mcp::{Callbacks, McpServer, PinKeeper, Pins, ServerConfig};

use crate::app::App;
use crate::{mcp_file, output};

/// Longest start of a server of which no tool is named: a list does not wait for one that hangs.
const LIST_LIMIT: Duration = Duration::from_secs(10);

/// MCP servers that run for a command.
pub(super) struct StartedServers(Vec<McpServer>);

impl StartedServers {
    /// Starts the server that a tool of this full name is of; all of them where none is named. What does not start is told, and
    /// left out.
    pub(super) async fn start(app: &App, tool: Option<&str>) -> Self {
        if !mcp_file::path_of(app).exists() {
            return Self(Vec::new());
        }
        let namespace = match tool.map(|tool| tool.split_once('.')) {
            Some(None) => return Self(Vec::new()),
            Some(Some((namespace, _))) => Some(namespace),
            None => None,
        };
        let file = match mcp_file::read(app) {
            Ok(file) => file,
            Err(failure) => {
                // Whoever names another tool is not bothered with it.
                if namespace.is_none_or(|name| mcp_file::names(app, name)) {
                    let help = Diagnostic::help(&failure).map(|help| format!("\nhelp: {help}")).unwrap_or_default();
                    output::note(&format!("tools of MCP servers are left out: {failure}{help}"));
                }
                return Self(Vec::new());
            }
        };
        let is_wanted = |config: &ServerConfig| namespace.is_none_or(|name| name == config.namespace);
        let wanted = file.servers.into_iter().filter(is_wanted);
        let started = join_all(wanted.map(|config| start(app, config, namespace.is_none()))).await;
        Self(started.into_iter().flatten().collect())
    }

    /// Their tools, each under its full name.
    pub(super) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.iter().flat_map(McpServer::tools).collect()
    }

    /// Ends them, with all their processes.
    pub(super) async fn stop(self) {
        join_all(self.0.iter().map(McpServer::stop)).await;
    }
}

async fn start(app: &App, config: ServerConfig, is_one_of_all: bool) -> Option<McpServer> {
    let name = config.name.clone();
    let left_out = |why: &str| output::note(&format!("tools of the MCP server {name} are left out: {why}"));
    let pins = match Pins::load(&mcp_file::pins_of(app, &config.namespace)) {
        Ok(pins) => pins,
        Err(error) => {
            left_out(&error.to_string());
            return None;
        }
    };
    let mut settings = app.settings().tool.mcp.clone();
    if is_one_of_all {
        settings.start_limit = settings.start_limit.min(LIST_LIMIT);
    }
    let (pins, tokens) = (PinKeeper::new(pins), Some(mcp_file::tokens_of(app)));
    let callbacks = Callbacks { pins, tokens, ..Callbacks::default() };
    match Box::pin(McpServer::start(config, &settings, &callbacks)).await {
        Ok(server) => Some(server),
        Err(error) => {
            left_out(&error.to_string());
            None
        }
    }
}
