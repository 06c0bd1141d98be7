//! Heeds what is wished of a fleet that is up: starts and ends processes of single roles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::super::members::{Common, of_role};
use super::{Keepers, Watcher};
use crate::fleet::member::MemberSpec;
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
    pub(super) fn follow_wish(&mut self, keepers: &mut Keepers) {
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
                    self.start_more(role, more, keepers);
                }
                Some(Change::Stop(names)) => {
                    tracing::info!(role, ?names, by = wish.by, "fewer processes are wished");
                    for name in names {
                        if let Some(end) = self.scaling.ends.remove(&name) {
                            self.scaling.leaving.insert(name);
                            end.cancel();
                        }
                    }
                }
            }
            // What its file starts later is as many.
            self.specialists.scale.insert(role.clone(), *wanted);
        }
        self.write();
    }

    fn start_more(&mut self, role: &str, more: u16, keepers: &mut Keepers) {
        let file = self.file_of(role);
        for _ in 0..more {
            let member = match &file {
                Some(file) => self.new_specialist(file, role),
                None => self.one_more(role),
            };
            let Some(member) = member else { return };
            let all = file.as_ref().and_then(|file| self.specialists.end_of(file));
            let end = self.scaling.end_of(&member.name, all.unwrap_or(&keepers.stop));
            keepers.keep(member, end);
        }
    }

    /// The file that defines a specialist; nothing for a role that comes with Muster.
    fn file_of(&self, role: &str) -> Option<PathBuf> {
        let of_role = |member: &&MemberState| member.role() == role;
        let known = self.state.members.iter().filter(of_role).find_map(|member| member.file.clone());
        known.or_else(|| self.specialists.file_of(role))
    }

    fn one_more(&mut self, role: &str) -> Option<MemberSpec> {
        let number = next_number(&self.state.members, role);
        let common = Common::new(&self.app, &self.state.url, self.desk.as_ref()).ok()?;
        let member = of_role(&common, role, number)?;
        self.state.members.push(MemberState::new(member.name.clone(), None));
        Some(member)
    }
}
