//! Settings of a process that serves tools, and of one that lends them.

use std::time::Duration;

use muster_shared::settings;

settings! {
    /// Settings of a process that serves tools.
    #[derive(Copy, PartialEq, Eq)]
    pub const struct ToolServerSettings {
        /// Calls that are carried out at the same time. Further ones are refused as busy, and made again by who called.
        pub at_once: u32 = 16 => internal(),
        /// Answers that are kept for whoever asks again for the same call.
        pub kept: u32 = 1_000 => internal(),
        /// Most bytes of kept answers.
        pub kept_mib: u32 = 32 => internal(),
        /// How long an answer is kept.
        #[serde(with = "muster_shared::span")]
        pub kept_for: Duration = Duration::from_secs(3_600) => internal(),
    }
}

settings! {
    /// Leases of tools that an agent lends.
    #[derive(Copy, PartialEq, Eq)]
    pub const struct LeaseSettings {
        /// How long a lease holds from when it was given or its tool was last used. It ends with its task at the latest.
        #[serde(with = "muster_shared::span")]
        pub lasts: Duration = Duration::from_secs(600) => internal(),
        /// Most leases that one process gives at the same time.
        pub most: u32 = 64 => internal(),
        /// Most of them to one borrower.
        pub per_borrower: u32 = 16 => internal(),
    }
}
