//! What each slot of an agent does, kept where everybody in the process can write and read it; told with heartbeats.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use muster_shared::flow::AgentState;

/// The states of all slots.
#[derive(Debug, Clone, Default)]
pub struct SlotStates(Arc<[AtomicU8]>);

/// The state of one slot.
#[derive(Debug, Clone, Default)]
pub struct SlotState {
    all: SlotStates,
    number: usize,
}

impl SlotStates {
    /// So many slots, idle all of them.
    #[must_use]
    pub fn new(slots: u32) -> Self {
        Self((0..slots).map(|_| AtomicU8::new(0)).collect())
    }

    /// One of them.
    #[must_use]
    pub fn slot(&self, number: usize) -> SlotState {
        SlotState { all: self.clone(), number }
    }

    /// What those do that are not idle, in order of the states.
    #[must_use]
    pub fn at_work(&self) -> Vec<AgentState> {
        let states = self
            .0
            .iter()
            .filter_map(|cell| AgentState::ALL.get(usize::from(cell.load(Ordering::Relaxed))).copied());
        let mut at_work: Vec<AgentState> = states.filter(|state| *state != AgentState::Idle).collect();
        at_work.sort_unstable();
        at_work
    }
}

impl SlotState {
    /// From now on, the slot does this.
    pub fn is(&self, state: AgentState) {
        let place = AgentState::ALL.iter().position(|one| *one == state);
        if let (Some(cell), Some(place)) = (self.all.0.get(self.number), place) {
            cell.store(u8::try_from(place).unwrap_or(0), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_at_work_are_told_and_idle_ones_are_not() {
        let states = SlotStates::new(3);
        assert_eq!(states.at_work(), []);
        states.slot(2).is(AgentState::Thinking);
        states.slot(0).is(AgentState::Acting);
        // There is no such slot.
        states.slot(9).is(AgentState::Acting);
        assert_eq!(states.at_work(), [AgentState::Thinking, AgentState::Acting]);
        states.slot(0).is(AgentState::Idle);
        assert_eq!(states.at_work(), [AgentState::Thinking]);
    }
}
