//! Specialists that left: for how long plans may still name them, and runs wait for them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use muster_shared::flow::Specialty;
use muster_shared::ids::{Queue, Role};

/// For how long plans may name a specialist that left: one that is started anew is back by then.
const REMEMBERED: Duration = Duration::from_secs(30);

/// For how long it is remembered when specialists left; runs that wait longer count from when they look.
const LONGEST_REMEMBERED: Duration = Duration::from_secs(24 * 3600);

/// Most specialists that are remembered as away.
const MOST_AWAY: usize = 1024;

/// Specialists of which the last one left lately.
#[derive(Debug)]
pub(super) struct Away {
    left: HashMap<Role, EmptiedRole>,
    /// When this orchestrator began to look who is there.
    began: Instant,
}

/// A role of which nobody is there any more.
#[derive(Debug)]
struct EmptiedRole {
    since: Instant,
    specialty: Specialty,
}

impl Default for Away {
    fn default() -> Self {
        Self { left: HashMap::new(), began: Instant::now() }
    }
}

impl Away {
    /// The last of a role left.
    pub(super) fn left(&mut self, specialty: Specialty) {
        self.left.retain(|_, left| left.since.elapsed() < LONGEST_REMEMBERED);
        if self.left.len() < MOST_AWAY {
            let role = specialty.role.clone();
            self.left.insert(role, EmptiedRole { since: Instant::now(), specialty });
        }
    }

    /// One of a role is there again.
    pub(super) fn back(&mut self, role: &Role) {
        self.left.remove(role);
    }

    /// Those that planners are told of all the same.
    pub(super) fn remembered(&self) -> impl Iterator<Item = &Specialty> {
        let lately = self.left.values().filter(|left| left.since.elapsed() < REMEMBERED);
        lately.map(|left| &left.specialty)
    }

    /// The queues of those that left less than `wait` ago, as far as plans may name them.
    pub(super) fn missed(&self, wait: Duration) -> impl Iterator<Item = Queue> {
        let left = self.left.iter().filter(move |(_, left)| left.since.elapsed() < wait.min(REMEMBERED));
        left.map(|(role, _)| Queue::Role(role.clone()))
    }

    /// Whether a queue that nobody takes from is waited for. Who was never seen counts as away since this orchestrator
    /// began.
    pub(super) fn is_awaited(&self, queue: &Queue, wait: Duration) -> bool {
        if let Queue::Role(role @ Role::Specialist(_)) = queue {
            let since = self.left.get(role).map_or(self.began, |left| left.since);
            since.elapsed() < wait
        } else {
            false
        }
    }
}
