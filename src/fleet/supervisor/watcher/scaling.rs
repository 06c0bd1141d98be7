//! Heeds what is wished of a fleet that is up: starts and ends processes of single roles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::super::members::{Common, of_role};
use super::Watcher;
use crate::fleet::member::{Changed, MemberSpec, keep};
use crate::fleet::state::MemberState;
use crate::fleet::wish::{Change, change, next_number};

/// What was heeded, and by what single processes are ended.
#[derive(Default)]
pub(super) struct Scaling {
    heeded: Option<Uuid>,
    /// By which each process is ended alone.
    ends: BTreeMap<String, CancellationToken>,
    /// Processes that end since fewer are wished: nothing more is to be said of them.
    pub(super) leaving: BTreeSet<String>,
}

impl Scaling {
    /// By what a process is ended alone.
    pub(super) fn end_of(&mut self, name: &str, all: &CancellationToken) -> CancellationToken {
        let end = all.child_token();
        self.ends.insert(name.to_owned(), end.clone());
        end
    }
}

impl Watcher {
    /// Does what is wished, once.
    pub(super) fn follow_wish(
        &mut self,
        keepers: &mut JoinSet<()>,
        changed: &mpsc::Sender<Changed>,
        stop: &CancellationToken,
    ) {
        if self.state.host.is_some() {
            return;
        }
        let Some(wish) = self.folder.wish().filter(|wish| self.scaling.heeded != Some(wish.id)) else {
            return;
        };
        self.scaling.heeded = Some(wish.id);
        for (role, wanted) in &wish.scale {
            match change(&self.state.members, role, *wanted) {
                None => {}
                Some(Change::Start(more)) => {
                    tracing::info!(role, more, by = wish.by, "more processes are wished");
                    self.start_more(role, more, keepers, changed, stop);
                }
                Some(Change::Stop(names)) => {
                    tracing::info!(role, ?names, by = wish.by, "fewer processes are wished");
                    self.stop_some(names);
                }
            }
            // What its file starts later is as many.
            self.specialists.scale.insert(role.clone(), *wanted);
        }
        self.write();
    }

    fn start_more(
        &mut self,
        role: &str,
        more: u16,
        keepers: &mut JoinSet<()>,
        changed: &mpsc::Sender<Changed>,
        stop: &CancellationToken,
    ) {
        let file = self.file_of(role);
        for _ in 0..more {
            let (member, all) = match &file {
                Some(file) => (
                    self.new_specialist(file, role),
                    self.specialists.end_of(file).unwrap_or_else(|| stop.clone()),
                ),
                None => (self.one_more(role), stop.clone()),
            };
            let Some(member) = member else { return };
            let end = self.scaling.end_of(&member.name, &all);
            keepers.spawn(keep(member, changed.clone(), end));
        }
    }

    fn stop_some(&mut self, names: Vec<String>) {
        for name in names {
            if let Some(end) = self.scaling.ends.remove(&name) {
                self.scaling.leaving.insert(name);
                end.cancel();
            }
        }
    }

    /// The file that defines a specialist; nothing for a role that comes with Muster.
    fn file_of(&self, role: &str) -> Option<PathBuf> {
        let of_role = |member: &&MemberState| member.role() == role;
        let known = self.state.members.iter().filter(of_role).find_map(|member| member.file.clone());
        known.or_else(|| self.specialists.file_of(role))
    }

    fn one_more(&mut self, role: &str) -> Option<MemberSpec> {
        let program = std::env::current_exe().ok()?;
        let number = next_number(&self.state.members, role);
        let common =
            Common { app: &self.app, program: &program, url: &self.state.url, desk: self.desk.as_ref() };
        let member = of_role(common, role, number)?;
        self.state.members.push(MemberState::new(member.name.clone(), None));
        Some(member)
    }
}
