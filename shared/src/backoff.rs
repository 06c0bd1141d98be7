//! Waiting between attempts: longer after each failure in a row, up to a cap, and not everybody at the same moment.
//! Nothing here draws random numbers: whoever waits brings its own.

use std::time::Duration;

/// The first wait, doubled with each further failure in a row, and never longer than the cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
}

impl Backoff {
    /// Waits from `first` on, and at most `cap`.
    #[must_use]
    pub const fn new(first: Duration, cap: Duration) -> Self {
        Self { first, cap }
    }

    /// The whole wait after so many failures in a row; none before the first.
    #[must_use]
    pub fn after(&self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
        self.first.saturating_mul(2_u32.saturating_pow(doublings)).min(self.cap)
    }

    /// The wait spread by a random number from 0 to 1, over the upper half of the whole wait: those who failed together
    /// do not come back together, and none comes back at once.
    #[must_use]
    pub fn spread(&self, failures: u32, random: f64) -> Duration {
        self.after(failures).mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_are_spread_over_their_upper_half() {
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        let waits = [0, 1, 2, 4, 5, 40, u32::MAX].map(|failures| backoff.after(failures).as_millis());
        assert_eq!(waits, [0, 100, 200, 800, 1_000, 1_000, 1_000]);
        let spread = [-1.0, 0.0, 0.5, 1.0, 7.0].map(|random| backoff.spread(2, random).as_millis());
        assert_eq!(spread, [100, 100, 150, 200, 200]);
    }
}
