//! What became of the calls of each tool, counted in this process.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::flow::CachedAnswer;
use serde::Serialize;

use crate::spec::ToolStatus;

/// Buckets of the histogram of times; each is half as wide again as the one before.
const BUCKETS: usize = 48;
/// The upper end of the first bucket, in microseconds.
const FIRST: f64 = 10.0;
/// How much wider each bucket is than the one before.
const WIDER: f64 = 1.5;

/// What became of the calls of one tool. Times are those of whole calls, as exact as half of themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolStats {
    /// Calls.
    pub calls: u64,
    /// Of these, those that ended with an error.
    pub failures: u64,
    /// Those whose time was up.
    pub timeouts: u64,
    /// Those that were not let.
    pub refused: u64,
    /// Further tries.
    pub retries: u64,
    /// Calls that were answered by the last good answer.
    pub kept: u64,
    /// Calls that were answered by what others were answered before: the tool was not called.
    pub cached: u64,
    /// How long those would have taken, in milliseconds.
    pub saved_ms: u64,
    /// Calls that another tool answered.
    pub stood_in: u64,
    /// Bytes of all observations.
    pub bytes: u64,
    #[serde(skip)]
    times: Vec<u32>,
}

/// How one call ended, as far as it is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) status: ToolStatus,
    pub(super) tries: u32,
    pub(super) is_kept: bool,
    pub(super) by_another: bool,
    pub(super) cached: Option<CachedAnswer>,
    pub(super) bytes: usize,
    pub(super) took: Duration,
}

impl ToolStats {
    pub(super) fn count(&mut self, call: &Counted) {
        self.calls += 1;
        match call.status {
            ToolStatus::Success => {}
            ToolStatus::Error => self.failures += 1,
            ToolStatus::Timeout => self.timeouts += 1,
            ToolStatus::Refused => self.refused += 1,
        }
        self.retries += u64::from(call.tries.saturating_sub(1));
        self.kept += u64::from(call.is_kept);
        if let Some(cached) = call.cached {
            self.cached += 1;
            self.saved_ms = self.saved_ms.saturating_add(cached.saved_ms);
        }
        self.stood_in += u64::from(call.by_another);
        self.bytes += call.bytes as u64;
        if self.times.is_empty() {
            self.times = vec![0; BUCKETS];
        }
        if let Some(times) = self.times.get_mut(bucket(call.took)) {
            *times = times.saturating_add(1);
        }
    }

    /// The time within which so many percent of the calls ended; nothing where there were none.
    #[must_use]
    pub fn within(&self, percent: u64) -> Option<Duration> {
        let all: u64 = self.times.iter().map(|times| u64::from(*times)).sum();
        let wanted = (all * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.times.iter().position(|times| {
            seen += u64::from(*times);
            seen >= wanted
        });
        found.filter(|_| all > 0).map(end_of)
    }
}

/// The counts of all tools that were called.
pub(super) type AllStats = BTreeMap<String, ToolStats>;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and a float cast saturates"
)]
fn bucket(took: Duration) -> usize {
    let times = (took.as_secs_f64() * 1e6 / FIRST).max(1.0);
    ((times.ln() / WIDER.ln()).ceil() as usize).min(BUCKETS - 1)
}

fn end_of(bucket: usize) -> Duration {
    let times = WIDER.powi(i32::try_from(bucket).unwrap_or(i32::MAX));
    Duration::from_secs_f64(FIRST * times / 1e6)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn call(status: ToolStatus, millis: u64) -> Counted {
        let took = Duration::from_millis(millis);
        Counted { status, tries: 1, is_kept: false, by_another: false, cached: None, bytes: 10, took }
    }

    #[test]
    fn calls_are_counted_by_how_they_ended_and_their_times_are_about_right() {
        let mut stats = ToolStats::default();
        assert_eq!(stats.within(50), None);
        for millis in 1..=100 {
            stats.count(&call(ToolStatus::Success, millis));
        }
        stats.count(&Counted { tries: 3, ..call(ToolStatus::Timeout, 60_000) });
        stats.count(&Counted { is_kept: true, ..call(ToolStatus::Success, 5) });
        assert_eq!((stats.calls, stats.timeouts, stats.failures, stats.retries), (102, 1, 0, 2));
        assert_eq!((stats.kept, stats.bytes), (1, 1020));

        let (half, most) = (stats.within(50).unwrap(), stats.within(95).unwrap());
        assert!((50..=75).contains(&half.as_millis()), "{half:?}");
        assert!((95..=145).contains(&most.as_millis()), "{most:?}");
        assert!(stats.within(100).unwrap() >= Duration::from_secs(60));
        let cached = Some(CachedAnswer { age_ms: 9_000, saved_ms: 300 });
        stats.count(&Counted { cached, ..call(ToolStatus::Success, 1) });
        stats.count(&Counted { cached, ..call(ToolStatus::Success, 1) });
        assert_eq!((stats.cached, stats.saved_ms, stats.kept), (2, 600, 1));
    }
}
