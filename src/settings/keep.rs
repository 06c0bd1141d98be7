//! How long runs are kept.

use std::time::Duration;

use muster_shared::settings;

settings! {
    /// How long runs are kept in full after their end. After that, `muster gc` leaves a summary of them. Without it nothing is
    /// removed.
    #[derive(PartialEq, Eq)]
    pub(crate) struct KeepSettings {
        /// Runs that were completed; 0s for good.
        #[serde(with = "muster_shared::span")]
        pub(crate) completed: Duration = Duration::ZERO => span(SECOND, 36500 * DAY).or_zero(); Fleet Trust,
        /// Runs that failed, were stopped, or were completed in part; 0s for good.
        #[serde(with = "muster_shared::span")]
        pub(crate) failed: Duration = Duration::ZERO => span(SECOND, 36500 * DAY).or_zero(); Fleet Trust,
    }
}
