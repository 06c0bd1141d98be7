//! Whether a failing model is asked again, and when. Pure.

use std::time::Duration;

use muster_shared::backoff::Backoff;
use muster_shared::settings;

use crate::model::chat::ModelError;

settings! {
    /// Limits of retrying.
    #[derive(Copy, PartialEq)]
    pub struct RetryLimits {
        /// Calls per target, the first one included.
        pub attempts: u32 = 5 => whole(1, 1000); Fleet Harmless,
        /// Time for all calls and waits together, over all targets.
        #[serde(with = "muster_shared::span")]
        pub total: Duration = Duration::from_secs(300) => internal(),
        /// The first wait; it doubles with each attempt.
        #[serde(with = "muster_shared::span")]
        pub base: Duration = Duration::from_millis(500) => internal(),
        /// The longest wait of our own making.
        #[serde(with = "muster_shared::span")]
        pub max_wait: Duration = Duration::from_secs(30) => internal(),
        /// The longest wait a provider may ask for; one that asks for more is given up.
        #[serde(with = "muster_shared::span")]
        pub max_retry_after: Duration = Duration::from_secs(120) => internal(),
    }
}

impl RetryLimits {
    /// The waits of our own making.
    #[must_use]
    pub(super) const fn backoff(&self) -> Backoff {
        Backoff::new(self.base, self.max_wait)
    }
}

/// What to do after a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Ask again after this time.
    Retry {
        /// How long to wait.
        after: Duration,
    },
    /// Further calls cannot help, or a limit is reached.
    GiveUp,
}

/// Decides whether the `attempt`-th failed call (from 1) is followed by another.
///
/// `elapsed` is the time since the first call; `jitter` (0 to 1) spreads the waits so that many agents
/// do not come back at the same moment. A provider's Retry-After is a floor: jitter only adds to it.
#[must_use]
pub fn decide_retry(
    error: &ModelError,
    attempt: u32,
    elapsed: Duration,
    limits: &RetryLimits,
    jitter: f64,
) -> RetryDecision {
    if !error.is_transient() || attempt >= limits.attempts {
        return RetryDecision::GiveUp;
    }
    let jitter = jitter.clamp(0.0, 1.0);
    let after = match error.retry_after() {
        Some(asked) if asked > limits.max_retry_after => return RetryDecision::GiveUp,
        Some(asked) => asked + limits.base.mul_f64(jitter),
        None => limits.backoff().spread(attempt, jitter),
    };
    if elapsed.saturating_add(after) >= limits.total {
        return RetryDecision::GiveUp;
    }
    RetryDecision::Retry { after }
}
