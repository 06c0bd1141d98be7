//! Keeps a process that serves the tools of the folder of tool files, while there are any.

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::super::members::Common;
use super::Watcher;
use crate::commands::agent::tools::{OWN, role_of};
use crate::fleet::member::{Changed, MemberSpec, keep};
use crate::fleet::pass::Duty;
use crate::fleet::state::MemberState;
use crate::tool_files;

/// The process that serves the tools of the folder.
#[derive(Default)]
pub(super) struct OwnTools {
    running: Option<CancellationToken>,
    /// How many were started: each process has a name of its own.
    started: u32,
}

impl Watcher {
    /// Starts the process when the folder has a tool file, and ends it when it has none any more. What changes within the folder
    /// it sees by itself.
    pub(super) fn follow_tools(
        &mut self,
        keepers: &mut JoinSet<()>,
        changed: &mpsc::Sender<Changed>,
        stop: &CancellationToken,
    ) {
        // A machine that joined starts what it was invited for, and nothing else.
        if self.state.host.is_some() {
            return;
        }
        let is_wanted = !tool_files::files_in(&tool_files::folder_of(&self.app)).is_empty();
        match (is_wanted, self.own_tools.running.take()) {
            (true, None) => {
                let own = stop.child_token();
                if let Some(member) = self.new_tool_server() {
                    keepers.spawn(keep(member, changed.clone(), own.clone()));
                    self.own_tools.running = Some(own);
                }
                self.write();
            }
            (false, Some(running)) => {
                running.cancel();
                let folder = tool_files::folder_of(&self.app);
                // One that was given up has nothing more to say.
                self.state
                    .members
                    .retain(|member| member.process.is_some() || member.file.as_ref() != Some(&folder));
                self.write();
            }
            (true, running @ Some(_)) => self.own_tools.running = running,
            (false, None) => {}
        }
    }

    fn new_tool_server(&mut self) -> Option<MemberSpec> {
        let program = std::env::current_exe().ok()?;
        self.own_tools.started += 1;
        let name = format!("{}-{}", role_of(OWN), self.own_tools.started);
        let folder = tool_files::folder_of(&self.app);
        let words = ["agent", "tools", &folder.display().to_string()].map(str::to_owned);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let common =
            Common { app: &self.app, program: &program, url: &self.state.url, desk: self.desk.as_ref() };
        let member = common.member(&name, &words, Duty::ToolServer(OWN.to_owned()));
        let state = MemberState { file: Some(folder), ..MemberState::new(name, None) };
        self.state.members.push(state);
        Some(member)
    }
}
