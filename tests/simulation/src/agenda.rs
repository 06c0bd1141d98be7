//! What happens when, in the order of virtual time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Milliseconds since the simulation began.
pub(crate) type Time = u64;

/// Events to come. Those of the same time come in the order in which they were entered.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Slot<E>>,
    entered: u64,
}

#[derive(Debug)]
struct Slot<E> {
    at: Time,
    order: u64,
    event: E,
}

impl<E> Agenda<E> {
    pub(crate) const fn new() -> Self {
        Self { heap: BinaryHeap::new(), entered: 0 }
    }

    pub(crate) fn enter(&mut self, at: Time, event: E) {
        self.entered += 1;
        self.heap.push(Slot { at, order: self.entered, event });
    }

    pub(crate) fn next(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|slot| (slot.at, slot.event))
    }
}

impl<E> PartialEq for Slot<E> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<E> Eq for Slot<E> {}

impl<E> PartialOrd for Slot<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Slot<E> {
    /// The heap gives its greatest first: the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}
