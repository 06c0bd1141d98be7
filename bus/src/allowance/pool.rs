//! A budget of the whole fleet: processes borrow parts of it, and say what they used. Pure.

use std::collections::BTreeMap;

use muster_shared::flow::{Budget, Usage};
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};

/// The part of the budget that is lent at once.
pub const CHUNK: u64 = 20;

/// A budget of the whole fleet. Times are the broker's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pool {
    /// What was used, as far as it is known.
    pub used: Usage,
    /// What is lent, by process.
    pub lent: BTreeMap<String, Loan>,
}

/// What one process has borrowed and not said to have used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loan {
    /// The most that it may still use.
    pub budget: Budget,
    /// Until when it may; the rest is free again then.
    pub until: Millis,
}

/// What a process asks of a pool.
#[derive(Debug, Clone, Copy)]
pub struct LoanRequest<'a> {
    /// The process.
    pub who: &'a str,
    /// What it used since it last said so.
    pub used: Usage,
    /// The least that is of use to it.
    pub needs: Budget,
    /// The time.
    pub now: Millis,
    /// Until when it may use what it is lent.
    pub until: Millis,
}

impl Pool {
    /// Takes note of what a process used, and lends it a part of `limit` in place of what it had: what it needs, or a
    /// chunk where there is as much. Nothing when there is not as much as it needs.
    pub fn borrow(&mut self, limit: &Budget, request: &LoanRequest<'_>) -> Option<Budget> {
        let LoanRequest { who, used, needs, now, until } = *request;
        self.used += used;
        self.lent.remove(who);
        self.lent.retain(|_, loan| loan.until > now);
        let free = self.free(limit);
        if !free.covers(&needs) {
            return None;
        }
        let chunk = limit.map(|_, limit| limit.div_ceil(CHUNK)).tighter(&free);
        let floor = needs.parts();
        let budget = chunk.map(|part, chunk| chunk.max(floor[part].unwrap_or(0)));
        self.lent.insert(who.to_owned(), Loan { budget, until });
        Some(budget)
    }

    /// Takes note of what a process used since it last said so. It counts whether or not its loan still runs.
    pub fn report(&mut self, who: &str, used: Usage) {
        self.used += used;
        if let Some(loan) = self.lent.get_mut(who) {
            loan.budget = loan.budget.left(&used);
        }
    }

    /// What is neither used nor lent.
    #[must_use]
    pub fn free(&self, limit: &Budget) -> Budget {
        self.lent.values().fold(limit.left(&self.used), |free, loan| free.without(&loan.budget))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Budget = calls(100);
    const NOW: Millis = Millis(1_000);
    const LATER: Millis = Millis(2_000);

    const fn calls(most: u64) -> Budget {
        Budget { model_calls: Some(most), ..Budget::UNLIMITED }
    }

    fn used(calls: u64) -> Usage {
        Usage { model_calls: calls, ..Usage::default() }
    }

    fn borrow(pool: &mut Pool, who: &str, before: u64, needs: u64, now: Millis) -> Option<u64> {
        let until = now.after(std::time::Duration::from_secs(1));
        let request = LoanRequest { who, used: used(before), needs: calls(needs), now, until };
        pool.borrow(&LIMIT, &request).and_then(|budget| budget.model_calls)
    }

    #[test]
    fn a_twentieth_is_lent_or_what_is_needed() {
        let mut pool = Pool::default();
        assert_eq!(borrow(&mut pool, "a", 0, 1, NOW), Some(5));
        assert_eq!(borrow(&mut pool, "b", 0, 30, NOW), Some(30));
        assert_eq!(pool.free(&LIMIT), calls(65));
        assert_eq!(borrow(&mut pool, "c", 0, 66, NOW), None);
        assert_eq!(borrow(&mut pool, "b", 12, 1, NOW), Some(5), "what was left is given back");
        assert_eq!((pool.used, pool.free(&LIMIT)), (used(12), calls(78)));
    }

    #[test]
    fn what_a_dead_process_had_left_comes_back() {
        let mut pool = Pool::default();
        borrow(&mut pool, "dead", 0, 50, NOW).unwrap();
        pool.report("dead", used(3));
        assert_eq!(pool.free(&LIMIT), calls(50), "what it used is not lent any more");
        assert_eq!(borrow(&mut pool, "b", 0, 60, NOW), None);
        assert_eq!(borrow(&mut pool, "b", 0, 60, LATER), Some(60));
        assert_eq!(pool.used, used(3));
        pool.report("dead", used(1));
        assert_eq!(pool.used, used(4), "it was not dead after all: what it used counts");
    }

    #[test]
    fn used_and_lent_never_exceed_the_limit() {
        let mut pool = Pool::default();
        for turn in 0..400_u64 {
            let who = format!("process-{}", turn % 7);
            let now = Millis(1_000 + turn);
            let lent = pool.lent.get(&who).filter(|loan| loan.until > now);
            let had = lent.and_then(|loan| loan.budget.model_calls).unwrap_or(0);
            let _ = borrow(&mut pool, &who, had * (turn % 3) / 2, turn % 11, now);
            let lent: u64 = pool.lent.values().filter_map(|loan| loan.budget.model_calls).sum();
            assert!(pool.used.model_calls + lent <= 100, "{pool:?}");
        }
    }
}
