//! One queue in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::time::Millis;

use super::stream::{MemoryStream, stored};
use crate::backend::{Ack, Delivery, QueueSpec};
use crate::subject::matches;
use crate::topology::Retention;

/// A queue by its stream and name.
pub(super) type QueueKey = (&'static str, String);

pub(super) struct MemoryQueue {
    spec: QueueSpec,
    /// Messages up to here were given out at least once.
    reached: u64,
    /// Given out and not done yet.
    held: BTreeMap<u64, InFlight>,
}

/// A message that was given out.
struct InFlight {
    delivered: u64,
    /// When it may be given out again.
    again: Millis,
    in_hand: bool,
}

impl MemoryQueue {
    pub(super) const fn new(spec: QueueSpec) -> Self {
        Self { spec, reached: 0, held: BTreeMap::new() }
    }

    pub(super) fn in_hand(&self, now: Millis) -> u64 {
        self.held.values().filter(|held| held.in_hand && held.again > now).count() as u64
    }

    pub(super) fn next_event(&self) -> Option<Millis> {
        self.held.values().map(|held| held.again).min()
    }

    /// Gives out what is due again, else what was never given out.
    pub(super) fn pull(&mut self, stream: &MemoryStream, now: Millis) -> Option<Delivery> {
        self.held.retain(|seq, _| stream.messages.contains_key(seq));
        let due = self.held.iter().find(|(_, held)| held.again <= now).map(|(&seq, _)| seq);
        let fresh = || {
            let mut rest = stream.messages.range(self.reached + 1..);
            rest.find(|(_, kept)| matches(&self.spec.filter, &kept.message.subject)).map(|(&seq, _)| seq)
        };
        let seq = due.or_else(fresh)?;
        self.reached = self.reached.max(seq);
        let again = now.after(self.spec.ack_wait);
        let held = self.held.entry(seq).or_insert(InFlight { delivered: 0, again, in_hand: true });
        (held.delivered, held.again, held.in_hand) = (held.delivered + 1, again, true);
        let ack = format!("$JS.ACK.{}.{}.{}.{seq}.0.0.0", self.spec.stream, self.spec.name, held.delivered);
        let kept = stream.messages.get(&seq)?;
        Some(Delivery { stored: stored(seq, kept), delivered: held.delivered, ack })
    }

    /// Gives out again what is in somebody's hands; says whether it was ever given out.
    pub(super) fn give_out_again(&mut self, seq: u64, now: Millis) -> bool {
        if let Some(held) = self.held.get_mut(&seq) {
            (held.again, held.in_hand) = (now, false);
        }
        seq <= self.reached
    }

    /// Takes note of what is said about a delivery.
    pub(super) fn ack(&mut self, stream: &mut MemoryStream, seq: u64, ack: Ack, now: Millis) {
        let again = |after: Duration| now.after(after);
        match (ack, self.held.get_mut(&seq)) {
            (Ack::Done | Ack::Term, _) => {
                self.held.remove(&seq);
                if stream.spec.retention == Retention::WorkQueue {
                    stream.remove(seq);
                }
            }
            (Ack::Progress, Some(held)) => held.again = again(self.spec.ack_wait),
            (Ack::Nak(delay), Some(held)) => (held.again, held.in_hand) = (again(delay), false),
            (Ack::Progress | Ack::Nak(_), None) => {}
        }
    }
}
