//! The processes of a fleet, and what happened to them.

use std::collections::{BTreeMap, VecDeque};

use muster_bus::RegistryChange;
use muster_shared::ids::AgentId;
use muster_shared::run::event::{TaskOrphaned, TaskTakenBack};
use muster_shared::run::{Entry, RecordEvent, RunEvent};
use muster_shared::time::Millis;
use muster_shared::wire::Profile;

use crate::commands::{Around, FleetShown};

/// Most of what happened that is remembered.
const MOST_HAPPENED: usize = 200;

/// Something that happened to processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Happened {
    /// When.
    pub(crate) at: Millis,
    /// What, for a person.
    pub(crate) text: String,
}

/// The processes of a fleet.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    profiles: BTreeMap<AgentId, Profile>,
    around: Around,
    happened: VecDeque<Happened>,
}

impl Fleet {
    /// What the processes say of themselves.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.values()
    }

    /// All that `muster ps` tells.
    pub(crate) fn shown(&self) -> FleetShown {
        self.around.with(self.profiles.values().cloned().collect())
    }

    /// What died, what came, who took over: the newest first.
    pub(crate) fn happened(&self) -> impl ExactSizeIterator<Item = &Happened> {
        self.happened.iter()
    }

    pub(super) fn note(&mut self, happened: Happened) {
        self.happened.push_front(happened);
        self.happened.truncate(MOST_HAPPENED);
    }

    /// Whether anything is different now. Who was there at the beginning did not come.
    pub(super) fn take(&mut self, change: RegistryChange, at: Millis, is_settled: bool) -> bool {
        match change {
            RegistryChange::Joined(profile) => {
                if is_settled {
                    self.note(Happened { at, text: format!("{} came", profile.agent) });
                }
                self.profiles.insert(profile.agent.clone(), profile);
                true
            }
            RegistryChange::Changed(profile) => {
                let agent = profile.agent.clone();
                let before = self.profiles.insert(agent.clone(), profile);
                before.as_ref() != self.profiles.get(&agent)
            }
            RegistryChange::Left(agent) => {
                let left = self.profiles.remove(&agent).is_some();
                if left {
                    self.note(Happened { at, text: format!("{agent} is gone") });
                }
                left
            }
        }
    }

    pub(super) fn learn(&mut self, around: Around) -> bool {
        let is_changed = self.around != around;
        self.around = around;
        is_changed
    }

    /// Another fleet, or another time: what happened before is remembered.
    pub(super) fn forget(&mut self) {
        self.profiles.clear();
        self.around = Around::default();
    }
}

/// What an entry tells of processes: who lost a task, and who decides now.
pub(super) fn told_by(entry: &Entry, decider: Option<&AgentId>) -> Vec<Happened> {
    let RecordEvent::Decided(decided) = &entry.event else { return Vec::new() };
    let (at, run) = (entry.at, entry.run.short());
    let lost = decided.events.iter().filter_map(|event| match event {
        RunEvent::TaskOrphaned(TaskOrphaned { task, agent, .. }) => {
            Some(format!("{agent} was lost, and had {task} of run {run}: another goes on with it"))
        }
        RunEvent::TaskTakenBack(TaskTakenBack { task, agent, .. }) => {
            Some(format!("{agent} said nothing of {task} of run {run} for too long: another goes on with it"))
        }
        _ => None,
    });
    let another = decider.filter(|before| **before != decided.by);
    let taken = another.map(|before| format!("{} took run {run} over from {before}", decided.by));
    lost.chain(taken).map(|text| Happened { at, text }).collect()
}
