//! A provider's rate limit: more requests than it allows within a window are refused, with the time after which one
//! fits again.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most requests within any window.
pub(super) struct RateLimit {
    most: usize,
    window: Duration,
    taken: Mutex<VecDeque<Instant>>,
}

impl RateLimit {
    pub(super) fn new(most: usize, window: Duration) -> Self {
        Self { most, window, taken: Mutex::default() }
    }

    /// Takes a request, or says after how long it may come again.
    pub(super) fn take(&self) -> Result<(), Duration> {
        let now = Instant::now();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while taken.front().is_some_and(|at| *at + self.window <= now) {
            taken.pop_front();
        }
        match taken.front().filter(|_| taken.len() >= self.most) {
            Some(oldest) => Err((*oldest + self.window).saturating_duration_since(now)),
            None => {
                taken.push_back(now);
                Ok(())
            }
        }
    }
}
