//! Roles whose last agent left, or whose first one is about to start: for how long plans may name them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use muster_shared::flow::Specialty;
use muster_shared::ids::Role;

/// For how long plans may name a role without an agent: one that is started again is back by then.
const REMEMBERED: Duration = Duration::from_secs(30);

/// Most roles that are remembered.
const MOST_AWAY: usize = 1024;

/// Roles without an agent that are expected to have one soon, each with the time since when.
#[derive(Debug, Default)]
pub(super) struct Away(HashMap<Role, (Instant, Specialty)>);

impl Away {
    /// The last of a role left, or the first is about to start.
    pub(super) fn left(&mut self, specialty: Specialty) {
        self.0.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        if self.0.len() < MOST_AWAY {
            self.0.insert(specialty.role.clone(), (Instant::now(), specialty));
        }
    }

    /// An agent of a role is online.
    pub(super) fn back(&mut self, role: &Role) {
        self.0.remove(role);
    }

    /// Those that planners are told of all the same.
    pub(super) fn remembered(&self) -> impl Iterator<Item = &Specialty> {
        let lately = self.0.values().filter(|(since, _)| since.elapsed() < REMEMBERED);
        lately.map(|(_, specialty)| specialty)
    }
}
