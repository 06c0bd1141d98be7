//! Follows the folder of specialists: starts and ends their processes as files come, change and go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::super::members::Common;
use super::{Keepers, Watcher};
use crate::fleet::member::{MemberChange, MemberSpec};
use crate::fleet::pass::Duty;
use crate::fleet::specialists::{self, Content, Order};
use crate::fleet::state::{MemberState, RefusedFile};
use crate::fleet::team;
use crate::trust::absolute;

/// The specialists of the watched folder.
#[derive(Default)]
pub(super) struct Specialists {
    files: specialists::Files,
    settled: BTreeMap<PathBuf, Content>,
    running: BTreeMap<PathBuf, CancellationToken>,
    /// How many processes of each there are to be; one of those that are not named.
    pub(super) scale: BTreeMap<String, u16>,
    /// How many were started: each process has a name of its own.
    started: u32,
}

impl Specialists {
    /// The file that defines a role.
    pub(super) fn file_of(&self, wanted: &str) -> Option<PathBuf> {
        let defines =
            |content: &Content| matches!(content, Content::Specialist { role, .. } if role == wanted);
        self.settled.iter().find(|(_, content)| defines(content)).map(|(path, _)| path.clone())
    }

    /// By what all processes of a file are ended.
    pub(super) fn end_of(&self, file: &Path) -> Option<&CancellationToken> {
        self.running.get(file)
    }
}

impl Watcher {
    /// Starts the processes of each specialist whose file has come, and ends those whose file went or changed.
    pub(super) async fn follow_folder(&mut self, keepers: &mut Keepers) {
        // A machine that joined starts what it was invited for, and nothing else.
        if self.state.host.is_some() {
            return;
        }
        let mut files = specialists::look_for(&self.app, &self.specialists.files);
        // What the team lists is started already, as often as it says.
        files.retain(|path, _| !self.app.loaded.team.as_ref().is_some_and(|team| team::lists(team, path)));
        let settled = specialists::settle(&files);
        let orders = specialists::orders(&self.specialists.settled, &settled);
        (self.specialists.files, self.specialists.settled) = (files, settled);
        if orders.is_empty() {
            return;
        }
        let team = self.app.loaded.team.as_ref().map(|team| &team.path);
        self.state.refused.retain(|file| Some(&file.path) == team);
        self.state.refused.extend(refused(&self.specialists.settled));
        for order in orders {
            match order {
                Order::Stop(path) => {
                    if let Some(running) = self.specialists.running.remove(&path) {
                        running.cancel();
                    }
                    self.forget_given_up(&path);
                }
                Order::Start { path, role } => {
                    let own = keepers.stop.child_token();
                    for _ in 0..self.specialists.scale.get(&role).copied().unwrap_or(1) {
                        if let Some(member) = self.new_specialist(&path, &role) {
                            let end = self.scaling.end_of(&member.name, &own);
                            keepers.keep(member, end);
                        }
                    }
                    self.specialists.running.insert(path, own);
                }
                Order::Refuse { path, reason } => {
                    tracing::warn!(reason, "an agent file is left out");
                    self.tell(&path.display().to_string(), MemberChange::Refused { reason }).await;
                }
            }
        }
        self.write();
    }

    pub(super) fn new_specialist(&mut self, path: &Path, role: &str) -> Option<MemberSpec> {
        let duty = Duty::Agent(role.parse().ok()?);
        self.specialists.started += 1;
        let name = format!("{role}-{}", self.specialists.started);
        let file = absolute(path).display().to_string();
        self.new_member(name, &["agent", &file], duty, path.to_owned())
    }

    /// Adds a process for a file to the state.
    pub(super) fn new_member(
        &mut self,
        name: String,
        words: &[&str],
        duty: Duty,
        file: PathBuf,
    ) -> Option<MemberSpec> {
        let common = Common::new(&self.app, &self.state.url, self.desk.as_ref()).ok()?;
        let member = common.member(&name, words, duty);
        self.state.members.push(MemberState { file: Some(file), ..MemberState::new(name, None) });
        Some(member)
    }

    /// Removes the processes of a file that were given up: they have nothing more to say.
    pub(super) fn forget_given_up(&mut self, file: &Path) {
        let is_of = |member: &MemberState| member.file.as_deref() == Some(file);
        self.state.members.retain(|member| member.process.is_some() || !is_of(member));
    }
}

fn refused(settled: &BTreeMap<PathBuf, Content>) -> impl Iterator<Item = RefusedFile> {
    settled.iter().filter_map(|(path, content)| match content {
        Content::Faulty { reason, .. } => Some(RefusedFile { path: path.clone(), reason: reason.clone() }),
        Content::Specialist { .. } => None,
    })
}
