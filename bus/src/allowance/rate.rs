//! A provider's rate: requests and tokens in a minute. Pure.
//!
//! The rate is kept by giving every request a time: each one moves the time of the next on by what it takes. Whoever
//! asks is told when its turn is, so that the fleet forms one row and nobody has to ask twice.

use muster_shared::settings;
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};

settings! {
    /// How often a model may be asked, by all processes of the fleet together.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Rate {
        /// Requests in a minute; not limited when absent.
        pub requests_per_minute: Option<u32> = None => whole(1, 4_000_000_000).example("60"); Fleet Lower,
        /// Tokens in a minute, sent and answered; not limited when absent.
        pub tokens_per_minute: Option<u64> = None => whole(1, MANY).example("100000"); Fleet Lower,
    }
}

/// How much of the stated rate is used, in percent: providers count a little differently than we do.
const USED_PERCENT: u64 = 95;

const MICROS_PER_MINUTE: u64 = 60_000_000;

impl Rate {
    /// Whether it limits anything.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.requests_per_minute.is_some() || self.tokens_per_minute.is_some()
    }

    /// Requests that are lent at once: one second's worth, at least one.
    #[must_use]
    pub fn chunk(&self) -> u32 {
        self.requests_per_minute.map_or(1, |most| (most / 60).max(1))
    }

    fn micros_of_requests(&self, requests: u32) -> u64 {
        self.requests_per_minute.map_or(0, |most| share(u64::from(requests), u64::from(most)))
    }

    fn micros_of_tokens(&self, tokens: u64) -> u64 {
        self.tokens_per_minute.map_or(0, |most| share(tokens, most))
    }
}

/// Time in which `count` may pass when `per_minute` may in a minute.
fn share(count: u64, per_minute: u64) -> u64 {
    let usable = u128::from(per_minute.max(1)) * u128::from(USED_PERCENT);
    let micros = u128::from(count) * u128::from(MICROS_PER_MINUTE) * 100 / usable.max(1);
    u64::try_from(micros).unwrap_or(u64::MAX)
}

/// How far a rate is used. Times are the broker's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RateState {
    /// When the next request may be made, in microseconds.
    requests_at: u64,
    /// When tokens may be used again, in microseconds.
    tokens_at: u64,
    /// The provider asked everybody to wait until then.
    pub closed_until: Millis,
}

/// What is to be set aside of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Requests.
    pub requests: u32,
    /// Tokens.
    pub tokens: u64,
}

impl RateState {
    /// Sets aside requests and tokens, and says when their turn is. Nothing is set aside when that would be later
    /// than `latest`.
    pub fn reserve(&mut self, rate: &Rate, demand: Demand, now: Millis, latest: Millis) -> Option<Millis> {
        let Demand { requests, tokens } = demand;
        let now = micros(now.max(self.closed_until));
        let start = now.max(self.requests_at).max(self.tokens_at);
        if start > micros(latest) {
            return None;
        }
        self.requests_at = start.saturating_add(rate.micros_of_requests(requests));
        self.tokens_at = start.saturating_add(rate.micros_of_tokens(tokens));
        Some(Millis(start.div_ceil(1000)))
    }

    /// The provider asked to wait: nobody asks it before then. Gives nothing when that is known.
    pub fn close(&mut self, until: Millis) -> Option<()> {
        if until <= self.closed_until {
            return None;
        }
        self.closed_until = until;
        self.requests_at = self.requests_at.max(micros(until));
        Some(())
    }
}

const fn micros(at: Millis) -> u64 {
    at.0.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_000_000);
    const LATE: Millis = Millis(u64::MAX / 2000);

    fn requests(most: u32) -> Rate {
        Rate { requests_per_minute: Some(most), tokens_per_minute: None }
    }

    const fn demand(requests: u32, tokens: u64) -> Demand {
        Demand { requests, tokens }
    }

    #[test]
    fn requests_stand_in_one_row() {
        let (mut state, rate) = (RateState::default(), requests(60));
        let turns: Vec<u64> = (0..4)
            .filter_map(|_| state.reserve(&rate, demand(1, 0), NOW, LATE))
            .map(|at| at.0 - NOW.0)
            .collect();
        assert_eq!(turns, [0, 1053, 2106, 3158], "a second each, and a twentieth to spare");
        let later = NOW.after(std::time::Duration::from_secs(60));
        assert_eq!(
            state.reserve(&rate, demand(1, 0), later, LATE),
            Some(later),
            "what was not used is not saved up"
        );
    }

    #[test]
    fn no_minute_has_more_than_the_rate() {
        let (mut state, rate) = (RateState::default(), requests(600));
        let turns: Vec<u64> = (0..3000)
            .filter_map(|_| state.reserve(&rate, demand(rate.chunk(), 0), NOW, LATE))
            .map(|at| at.0)
            .collect();
        for (at, turn) in turns.iter().enumerate() {
            let chunks = turns[at..].iter().take_while(|other| **other < turn + 60_000).count();
            assert!(chunks * 10 <= 600, "{chunks} chunks of 10 in the minute after {turn}");
        }
    }

    #[test]
    fn tokens_count_too() {
        let rate = Rate { requests_per_minute: Some(6_000), tokens_per_minute: Some(60_000) };
        let mut state = RateState::default();
        assert_eq!(state.reserve(&rate, demand(1, 9_500), NOW, LATE), Some(NOW));
        assert_eq!(state.reserve(&rate, demand(1, 100), NOW, LATE), Some(Millis(NOW.0 + 10_000)));
    }

    #[test]
    fn nobody_is_put_beyond_its_patience() {
        let (mut state, rate) = (RateState::default(), requests(1));
        let latest = Millis(NOW.0 + 1_000);
        assert_eq!(state.reserve(&rate, demand(1, 0), NOW, latest), Some(NOW));
        let before = state;
        assert_eq!(state.reserve(&rate, demand(1, 0), NOW, latest), None);
        assert_eq!(state, before, "nothing was set aside");
    }

    #[test]
    fn what_a_provider_asks_for_holds_for_all() {
        let (mut state, rate) = (RateState::default(), Rate::default());
        let until = Millis(NOW.0 + 7_000);
        assert_eq!(state.close(until), Some(()));
        assert_eq!(state.close(Millis(NOW.0 + 3_000)), None, "an earlier end changes nothing");
        assert_eq!(state.reserve(&rate, demand(1, 0), NOW, LATE), Some(until));
    }
}
