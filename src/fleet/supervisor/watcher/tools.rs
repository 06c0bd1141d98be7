//! Keeps a process that serves the tools of the folder of tool files, while there are any.

use std::collections::BTreeMap;
use std::time::SystemTime;

use muster_tool_server::file::ENDING;
use tokio_util::sync::CancellationToken;

use super::{Keepers, Watcher};
use crate::commands::agent::mcp;
use crate::commands::agent::tools::{OWN, role_of};
use crate::fleet::member::MemberSpec;
use crate::fleet::pass::Duty;
use crate::{mcp_file, tool_files};

/// The process that serves the tools of the folder.
#[derive(Default)]
pub(super) struct OwnTools {
    running: Option<CancellationToken>,
    /// How many were started: each process has a name of its own.
    started: u32,
}

/// The processes that serve the tools of MCP servers, one for each.
#[derive(Default)]
pub(super) struct McpServers {
    running: BTreeMap<String, CancellationToken>,
    started: u32,
    /// The file as it was when it was read last.
    known: Option<(SystemTime, u64)>,
}

impl Watcher {
    /// Starts a process for each MCP server of the file, and ends those of servers that it names no more.
    pub(super) fn follow_mcp(&mut self, keepers: &mut Keepers) {
        let now = mcp_file::stamp(&mcp_file::path_of(&self.app));
        if self.state.host.is_some() || now == self.mcp_servers.known {
            return;
        }
        self.mcp_servers.known = now;
        let wanted = now.map_or_else(BTreeMap::new, |_| mcp::named(&self.app));
        self.mcp_servers.running.retain(|name, running| {
            let stays = wanted.contains_key(name);
            if !stays {
                running.cancel();
            }
            stays
        });
        for (name, namespace) in wanted {
            if self.mcp_servers.running.contains_key(&name) {
                continue;
            }
            let own = keepers.stop.child_token();
            if let Some(member) = self.new_mcp_server(&name, namespace) {
                keepers.keep(member, own.clone());
                self.mcp_servers.running.insert(name, own);
            }
        }
        self.write();
    }

    fn new_mcp_server(&mut self, server: &str, namespace: String) -> Option<MemberSpec> {
        self.mcp_servers.started += 1;
        let name = format!("{}-{}", role_of(&namespace), self.mcp_servers.started);
        let file = mcp_file::path_of(&self.app);
        self.new_member(name, &["agent", "mcp", server], Duty::ToolServer(namespace), file)
    }

    /// Starts the process when the folder has a tool file, and ends it when it has none any more. What changes within the folder
    /// it sees by itself.
    pub(super) fn follow_tools(&mut self, keepers: &mut Keepers) {
        // A machine that joined starts what it was invited for, and nothing else.
        if self.state.host.is_some() {
            return;
        }
        let is_wanted = !tool_files::files_in(&tool_files::folder_of(&self.app), ENDING).is_empty();
        match (is_wanted, self.own_tools.running.take()) {
            (true, None) => {
                let own = keepers.stop.child_token();
                if let Some(member) = self.new_tool_server() {
                    keepers.keep(member, own.clone());
                    self.own_tools.running = Some(own);
                }
                self.write();
            }
            (false, Some(running)) => {
                running.cancel();
                self.forget_given_up(&tool_files::folder_of(&self.app));
                self.write();
            }
            (true, running @ Some(_)) => self.own_tools.running = running,
            (false, None) => {}
        }
    }

    fn new_tool_server(&mut self) -> Option<MemberSpec> {
        self.own_tools.started += 1;
        let name = format!("{}-{}", role_of(OWN), self.own_tools.started);
        let folder = tool_files::folder_of(&self.app);
        let words = ["agent", "tools", &folder.display().to_string()];
        self.new_member(name, &words, Duty::ToolServer(OWN.to_owned()), folder)
    }
}
