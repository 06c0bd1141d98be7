//! Settings of a task gateway.

use std::time::Duration;

use muster_shared::settings;

settings! {
    /// The task gateway, and its limits.
    #[derive(PartialEq, Eq)]
    pub struct GatewaySettings {
        /// Whether orchestrators serve programs in other languages (`agent.<role>.take` and so on).
        pub enabled: bool = true => flag(); Fleet Harmless,
        /// Most tasks that one gateway has given out for one role and that have not ended; more wait in their queue.
        pub tasks: usize = 256 => internal(),
        /// Most programs that wait for a task of one role at one gateway; more are refused at once.
        pub waiting: usize = 256 => internal(),
        /// Most other requests that one gateway works on at the same time; more are refused at once.
        pub requests: usize = 256 => internal(),
        /// The longest time that `take` waits for a task, whatever it asks for.
        #[serde(with = "muster_shared::span")]
        pub patience: Duration = Duration::from_secs(30) => internal(),
        /// Without a word for so long a program counts as dead, and its task goes to another.
        #[serde(with = "muster_shared::span")]
        pub silence: Duration = Duration::from_secs(15) => internal(),
        /// Largest request, in bytes.
        pub message_bytes: usize = 512 * 1024 => internal(),
    }
}
