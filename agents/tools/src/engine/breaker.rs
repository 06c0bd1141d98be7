//! Leaving a tool alone that cannot be reached. Pure; times come in.

use std::time::{Duration, Instant};

use muster_shared::backoff::Backoff;

use super::rules::ToolBreakerRules;

/// What is known of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Breaker {
    /// It is called. So many tries failed in a row.
    #[default]
    Closed,
    /// It is called, and failed so many times in a row.
    Failing(u32),
    /// It is left alone.
    Open {
        /// Until then.
        until: Instant,
        /// How often it was left alone in a row.
        times: u32,
    },
    /// One call tries whether it is back; the others do not wait for it beyond then.
    Trying {
        /// When another may try.
        until: Instant,
        /// How often it was left alone in a row.
        times: u32,
    },
}

impl Breaker {
    /// Whether a call may be made now, else how long it is left alone. Whoever is the first after a pause tries, for
    /// `limit`.
    pub(super) fn admit(&mut self, now: Instant, limit: Duration) -> Result<(), Duration> {
        match *self {
            Self::Closed | Self::Failing(_) => Ok(()),
            Self::Open { until, times } | Self::Trying { until, times } if now >= until => {
                *self = Self::Trying { until: now + limit, times };
                Ok(())
            }
            Self::Open { until, .. } | Self::Trying { until, .. } => Err(until - now),
        }
    }

    /// A try failed in a way that says that the tool cannot be reached.
    pub(super) fn fail(&mut self, now: Instant, rules: &ToolBreakerRules) {
        let times = match *self {
            Self::Closed | Self::Failing(_) if rules.failures == 0 => return,
            Self::Closed if rules.failures > 1 => return *self = Self::Failing(1),
            Self::Failing(failed) if failed + 1 < rules.failures => return *self = Self::Failing(failed + 1),
            Self::Closed | Self::Failing(_) => 1,
            Self::Trying { times, .. } => times.saturating_add(1),
            // It was on its way when others found out: that is no news.
            Self::Open { .. } => return,
        };
        let pause = Backoff::new(rules.pause, rules.max_pause).after(times);
        *self = Self::Open { until: now + pause, times };
    }

    /// It answered.
    pub(super) const fn succeed(&mut self) {
        *self = Self::Closed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn rules(failures: u32) -> ToolBreakerRules {
        ToolBreakerRules { failures, pause: Duration::from_secs(2), max_pause: Duration::from_secs(5) }
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_one_call_at_a_time_tries() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        let at = |seconds: u64| now + Duration::from_secs(seconds);
        breaker.fail(now, &rules(3));
        breaker.fail(now, &rules(3));
        breaker.succeed();
        breaker.fail(now, &rules(3));
        breaker.fail(now, &rules(3));
        assert_eq!(breaker.admit(now, LIMIT), Ok(()), "not three in a row");
        breaker.fail(now, &rules(3));
        assert_eq!(breaker.admit(now, LIMIT), Err(Duration::from_secs(2)));
        assert_eq!(breaker.admit(at(2), LIMIT), Ok(()), "one tries");
        assert_eq!(breaker.admit(at(2), LIMIT), Err(LIMIT), "and no other");
        breaker.fail(at(3), &rules(3));
        assert_eq!(breaker.admit(at(3), LIMIT), Err(Duration::from_secs(4)), "twice as long");
        assert_eq!(breaker.admit(at(7), LIMIT), Ok(()));
        assert_eq!(breaker.admit(at(40), LIMIT), Ok(()), "whoever tried was never heard of");
        breaker.fail(at(41), &rules(3));
        assert_eq!(breaker.admit(at(41), LIMIT), Err(Duration::from_secs(5)), "at most");
        breaker.admit(at(50), LIMIT).unwrap();
        breaker.succeed();
        assert_eq!(breaker, Breaker::Closed);
    }

    #[test]
    fn at_zero_nothing_is_left_alone_and_at_one_the_first_failure_counts() {
        let (mut never, mut first, now) = (Breaker::default(), Breaker::default(), Instant::now());
        for _ in 0..100 {
            never.fail(now, &rules(0));
        }
        assert_eq!(never.admit(now, LIMIT), Ok(()));
        first.fail(now, &rules(1));
        assert!(first.admit(now, LIMIT).is_err());
    }
}
