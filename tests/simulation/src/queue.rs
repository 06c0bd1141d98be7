//! A work queue: what is given out and not done comes back after a while.

use std::collections::{BTreeMap, VecDeque};

use muster_shared::ids::{RunId, TaskId};

use crate::agenda::Time;
use crate::messages::{Item, Life, Taken};

/// Somebody who waits for an item.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) who: Life,
    pub(crate) call: u64,
    until: Time,
}

#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    items: BTreeMap<u64, Kept>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Kept {
    body: Item,
    /// When it was to be given out at first.
    since: Time,
    delivered: u32,
    /// When it may be given out.
    free_at: Time,
}

/// Who has waited for so long beyond its time does not wait any more.
const KEPT: Time = 60_000;

/// How long an item may be held without a sign of progress.
pub(crate) const ACK_WAIT: Time = 30_000;

impl WorkQueue {
    pub(crate) fn put(&mut self, item: u64, body: Item, free_at: Time) {
        self.items.insert(item, Kept { body, since: free_at, delivered: 0, free_at });
    }

    pub(crate) fn wait(&mut self, who: Life, call: u64, until: Time) {
        // Whoever asks again has stopped waiting for what it asked before.
        self.waiting.retain(|waiting| waiting.until > until.saturating_sub(KEPT));
        self.waiting.push_back(Waiting { who, call, until });
    }

    /// Whether somebody waits while something is there.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty() && !self.items.is_empty()
    }

    /// A process died: nothing is given to its requests.
    pub(crate) fn disconnected(&mut self, who: Life) {
        self.waiting.retain(|waiting| waiting.who != who);
    }

    /// Whoever asked so does not wait any more.
    pub(crate) fn leave(&mut self, call: u64) {
        self.waiting.retain(|waiting| waiting.call != call);
    }

    /// Gives out what is free to whoever waits longest.
    pub(crate) fn give(&mut self, now: Time) -> Option<(Waiting, Taken)> {
        self.waiting.retain(|waiting| waiting.until > now);
        let (item, kept) = self.items.iter_mut().find(|(_, kept)| kept.free_at <= now)?;
        let waiting = self.waiting.pop_front()?;
        kept.delivered += 1;
        kept.free_at = now + ACK_WAIT;
        Some((
            waiting,
            Taken { item: *item, body: kept.body.clone(), since: kept.since, delivered: kept.delivered },
        ))
    }

    /// Removes an item, whoever says so: a stale acknowledgement counts too.
    pub(crate) fn done(&mut self, item: u64) {
        self.items.remove(&item);
    }

    /// Removes all offers of a run.
    pub(crate) fn withdraw_all(&mut self, run: RunId) {
        self.items.retain(|_, kept| match &kept.body {
            Item::Task(offer) => offer.run != run,
            Item::Command(..) => true,
        });
    }

    pub(crate) fn hold_until(&mut self, item: u64, until: Time) {
        if let Some(kept) = self.items.get_mut(&item) {
            kept.free_at = until;
        }
    }

    /// Gives out again the newest offer of a task that was given out before.
    pub(crate) fn give_out_again(&mut self, run: RunId, task: &TaskId, now: Time) {
        let is_of_task = |body: &Item| match body {
            Item::Task(offer) => offer.run == run && offer.task == *task,
            Item::Command(..) => false,
        };
        let newest = self.items.values_mut().rfind(|kept| is_of_task(&kept.body));
        if let Some(kept) = newest.filter(|kept| kept.delivered > 0) {
            kept.free_at = now;
        }
    }

    /// When something may be given out, if somebody waits.
    pub(crate) fn next(&self) -> Option<Time> {
        if self.waiting.is_empty() { None } else { self.items.values().map(|kept| kept.free_at).min() }
    }

    /// The server was started again: nobody waits any more, and how often items were given out may be forgotten.
    pub(crate) fn restart(&mut self, forget: bool) {
        self.waiting.clear();
        if forget {
            self.items.values_mut().for_each(|kept| kept.delivered = 0);
        }
    }
}
