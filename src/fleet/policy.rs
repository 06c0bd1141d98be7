//! When a process that died is started again. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use muster_shared::time::Millis;

/// Limits of restarting one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RestartPolicy {
    /// Restarts within the window after which the process is given up.
    pub(crate) max_restarts: u32,
    /// The window.
    pub(crate) window: Duration,
    /// The first wait; it doubles with each restart in the window.
    pub(crate) first_wait: Duration,
    /// The longest wait.
    pub(crate) longest_wait: Duration,
}

/// What to do about a process that died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestartDecision {
    /// Start it again after this time.
    Restart {
        /// How long to wait.
        after: Duration,
    },
    /// It died too often.
    GiveUp,
}

/// When a process died lately.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deaths {
    times: VecDeque<Millis>,
}

impl Deaths {
    /// Notes a death and says what to do.
    pub(crate) fn died(&mut self, now: Millis, policy: &RestartPolicy) -> RestartDecision {
        self.times.retain(|at| now.since(*at) < policy.window);
        let restarts = u32::try_from(self.times.len()).unwrap_or(u32::MAX);
        if restarts >= policy.max_restarts {
            return RestartDecision::GiveUp;
        }
        self.times.push_back(now);
        let doubled = policy.first_wait.saturating_mul(1_u32.checked_shl(restarts).unwrap_or(u32::MAX));
        RestartDecision::Restart { after: doubled.min(policy.longest_wait) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RestartPolicy = RestartPolicy {
        max_restarts: 4,
        window: Duration::from_secs(60),
        first_wait: Duration::from_millis(100),
        longest_wait: Duration::from_millis(350),
    };

    fn restart(millis: u64) -> RestartDecision {
        RestartDecision::Restart { after: Duration::from_millis(millis) }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_then_it_is_given_up() {
        let mut deaths = Deaths::default();
        let verdicts: Vec<RestartDecision> = (0..5).map(|n| deaths.died(Millis(n * 1000), &POLICY)).collect();
        assert_eq!(
            verdicts,
            [restart(100), restart(200), restart(350), restart(350), RestartDecision::GiveUp]
        );
    }

    #[test]
    fn old_deaths_are_forgotten() {
        let mut deaths = Deaths::default();
        for n in 0..20 {
            assert_eq!(deaths.died(Millis(n * 61_000), &POLICY), restart(100));
        }
    }

    #[test]
    fn no_restart_at_all_can_be_asked_for() {
        let policy = RestartPolicy { max_restarts: 0, ..POLICY };
        assert_eq!(Deaths::default().died(Millis(1), &policy), RestartDecision::GiveUp);
    }
}
