//! How calls of tools and steps went lately: counted in slices of time, so that what is kept does not grow with the work. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::flow::{Action, ObservationStatus, Step};
use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use muster_shared::time::Millis;

/// Slices that the longest window has.
const SLICES: u64 = 60;

/// Most tools and roles that are told apart; others count together.
const MOST_NAMES: usize = 200;
/// Under what others count.
const OTHERS: &str = "others";

/// Calls of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    /// Calls that were made.
    pub(crate) made: u64,
    /// Of these, those that failed or took too long.
    pub(crate) failed: u64,
}

/// Steps of a role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    /// How many.
    pub(crate) count: u64,
    /// The time of all of them, in milliseconds.
    pub(crate) millis: u64,
}

#[derive(Debug, Clone, Default)]
struct Slice {
    tools: BTreeMap<String, Calls>,
    roles: BTreeMap<String, Steps>,
}

/// What was done lately.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    longest: Duration,
    slice_ms: u64,
    /// By number: time by the length of a slice.
    slices: BTreeMap<u64, Slice>,
}

impl Window {
    /// Of windows that are no longer than this.
    pub(crate) fn new(longest: Duration) -> Self {
        let slice_ms = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX).div_ceil(SLICES).max(1);
        Self { longest, slice_ms, slices: BTreeMap::new() }
    }

    /// Counts what an entry says.
    pub(crate) fn count(&mut self, entry: &Entry, now: Millis) {
        let RecordEvent::Agent(key, event) = &entry.event else { return };
        let step = match event {
            AgentEvent::Step(step) => Some(step),
            AgentEvent::Outcome(outcome) => outcome.last_step.as_deref(),
            AgentEvent::Started(_)
            | AgentEvent::ToolStarted(_)
            | AgentEvent::Released(_)
            | AgentEvent::Unreadable(_) => None,
        };
        let Some(step) = step else { return };
        // What is older than any window is looked at by nobody.
        if now.since(entry.at) > self.longest {
            return;
        }
        self.forget(now);
        let slice = self.slices.entry(entry.at.0 / self.slice_ms).or_default();
        count_calls(&mut slice.tools, step);
        let of_role = named(&mut slice.roles, &key.role.to_string());
        of_role.count += 1;
        of_role.millis = of_role.millis.saturating_add(step.millis);
    }

    /// Forgets what is older than any window.
    pub(crate) fn forget(&mut self, now: Millis) {
        let first = Millis(now.0.saturating_sub(u64::try_from(self.longest.as_millis()).unwrap_or(u64::MAX)));
        self.slices = self.slices.split_off(&(first.0 / self.slice_ms));
    }

    /// Calls within a window, by tool.
    pub(crate) fn tools(&self, window: Duration, now: Millis) -> BTreeMap<&str, Calls> {
        let mut all: BTreeMap<&str, Calls> = BTreeMap::new();
        for (tool, calls) in self.within(window, now).flat_map(|slice| &slice.tools) {
            let of_tool = all.entry(tool).or_default();
            of_tool.made += calls.made;
            of_tool.failed += calls.failed;
        }
        all
    }

    /// Steps within a window, by role.
    pub(crate) fn roles(&self, window: Duration, now: Millis) -> BTreeMap<&str, Steps> {
        let mut all: BTreeMap<&str, Steps> = BTreeMap::new();
        for (role, steps) in self.within(window, now).flat_map(|slice| &slice.roles) {
            let of_role = all.entry(role).or_default();
            of_role.count += steps.count;
            of_role.millis = of_role.millis.saturating_add(steps.millis);
        }
        all
    }

    fn within(&self, window: Duration, now: Millis) -> impl Iterator<Item = &Slice> {
        let from = now.0.saturating_sub(u64::try_from(window.as_millis()).unwrap_or(u64::MAX));
        self.slices.range(from / self.slice_ms..).map(|(_, slice)| slice)
    }
}

fn count_calls(tools: &mut BTreeMap<String, Calls>, step: &Step) {
    let seen = step.acts().filter_map(|(action, observation)| Some((action, observation?)));
    for (action, observation) in seen {
        // What was answered by an earlier answer, or not let, says nothing of the tool.
        let is_call = action.name != Action::SUBMIT && observation.cached.is_none();
        let failed = match observation.status {
            ObservationStatus::Success => false,
            ObservationStatus::Error | ObservationStatus::Timeout => true,
            ObservationStatus::Refused => continue,
        };
        if is_call {
            let of_tool = named(tools, &action.name);
            of_tool.made += 1;
            of_tool.failed += u64::from(failed);
        }
    }
}

fn named<'a, T: Default>(all: &'a mut BTreeMap<String, T>, name: &str) -> &'a mut T {
    let is_room = all.contains_key(name) || all.len() < MOST_NAMES;
    all.entry(if is_room { name.to_owned() } else { OTHERS.to_owned() }).or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::sight::tests::{entry, step};
    use super::*;

    #[test]
    fn calls_and_steps_count_within_their_window_and_are_forgotten_after_it() {
        let mut window = Window::new(Duration::from_secs(600));
        let now = Millis(10_000_000);
        for (ago, status) in
            [(700, "error"), (500, "error"), (100, "success"), (5, "timeout"), (4, "refused")]
        {
            let at = Millis(now.0 - ago * 1000);
            window.count(&entry(at, "worker", step("calculator", status, 400)), now);
        }
        window.count(&entry(now, "planner", step("submit", "success", 90)), now);
        let short = Duration::from_secs(60);
        assert_eq!(window.tools(short, now)["calculator"], Calls { made: 1, failed: 1 });
        let long = Duration::from_secs(600);
        assert_eq!(window.tools(long, now)["calculator"], Calls { made: 3, failed: 2 });
        assert_eq!(window.tools(long, now).len(), 1, "to submit is no call");
        assert_eq!(window.roles(long, now)["worker"], Steps { count: 4, millis: 1600 });
        assert_eq!(window.roles(short, now)["planner"], Steps { count: 1, millis: 90 });
        window.forget(Millis(now.0 + 601_000));
        assert!(window.slices.len() <= 1, "{:?}", window.slices.keys());
        assert!(window.tools(long, Millis(now.0 + 700_000)).is_empty());
    }

    #[test]
    fn names_and_slices_are_bounded() {
        let mut window = Window::new(Duration::from_secs(60));
        for n in 0..5_000_u64 {
            let at = Millis(1_000_000 + n * 100);
            window.count(&entry(at, "worker", step(&format!("tool-{}", n % 1000), "success", 1)), at);
        }
        assert!(window.slices.len() <= 62, "{}", window.slices.len());
        assert!(window.slices.values().all(|slice| slice.tools.len() <= MOST_NAMES + 1));
    }
}
