//! When a server that died is started again. Pure.

use std::collections::VecDeque;
use std::time::Duration;

/// Longest wait before a restart.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(30);

/// By what rules a server is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartRules {
    /// Most restarts within the window.
    pub most: u32,
    /// The time in which they are counted.
    pub window: Duration,
    /// The wait before the first; it doubles with each one within the window.
    pub pause: Duration,
}

/// What follows from a death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// It is started again after this long.
    After(Duration),
    /// It has died too often.
    GiveUp,
}

/// The deaths that still count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deaths {
    at: VecDeque<Duration>,
}

impl Deaths {
    /// Counts a death at this time, on a clock that only goes forward, and says what follows.
    pub fn died(&mut self, now: Duration, rules: &RestartRules) -> Restart {
        while self.at.front().is_some_and(|at| now.saturating_sub(*at) > rules.window) {
            self.at.pop_front();
        }
        let before = u32::try_from(self.at.len()).unwrap_or(u32::MAX);
        if before >= rules.most {
            return Restart::GiveUp;
        }
        self.at.push_back(now);
        let factor = 2_u32.saturating_pow(before);
        Restart::After(rules.pause.saturating_mul(factor).min(MAX_PAUSE.max(rules.pause)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: RestartRules =
        RestartRules { most: 3, window: Duration::from_secs(60), pause: Duration::from_millis(500) };

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_restart_waits_twice_as_long_and_after_the_most_there_is_none() {
        let mut deaths = Deaths::default();
        let follows: Vec<Restart> = (1..=4).map(|second| deaths.died(at(second), &RULES)).collect();
        let millis = |n| Restart::After(Duration::from_millis(n));
        assert_eq!(follows, [millis(500), millis(1_000), millis(2_000), Restart::GiveUp]);
    }

    #[test]
    fn deaths_of_long_ago_do_not_count() {
        let mut deaths = Deaths::default();
        for second in 1..=3 {
            deaths.died(at(second), &RULES);
        }
        assert_eq!(deaths.died(at(64), &RULES), Restart::After(RULES.pause));
    }

    #[test]
    fn without_restarts_the_first_death_is_the_last() {
        let rules = RestartRules { most: 0, ..RULES };
        assert_eq!(Deaths::default().died(at(0), &rules), Restart::GiveUp);
    }

    proptest! {
        #[test]
        fn never_more_than_the_most_within_the_window(gaps in proptest::collection::vec(0_u64..40, 1..60)) {
            let mut deaths = Deaths::default();
            let mut now = 0;
            let mut restarts: Vec<u64> = Vec::new();
            for gap in gaps {
                now += gap;
                if matches!(deaths.died(at(now), &RULES), Restart::After(pause) if pause <= MAX_PAUSE) {
                    restarts.push(now);
                }
                let recent = restarts.iter().filter(|then| now - **then <= RULES.window.as_secs()).count();
                prop_assert!(recent <= 3);
            }
        }
    }
}
