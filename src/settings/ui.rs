//! The dashboard, `muster ui`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use muster_bus::credentials::DashboardRole;
use muster_shared::setting::Secret;
use muster_shared::settings;
use serde::{Deserialize, Serialize};

/// The port that is looked for where none is asked for.
pub(crate) const PORT: u16 = 7177;

settings! {
    /// The dashboard, `muster ui` (docs/dashboard.md). It listens on this machine alone.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub(crate) struct UiSettings {
        /// The port; where it is taken and nobody asked for it by --port, any that is free. 0 for any.
        pub(crate) port: u16 = PORT => whole(0, 65_535),
        /// For how long somebody stays logged in who does nothing.
        #[serde(with = "muster_shared::span")]
        pub(crate) session_time: Duration = Duration::from_secs(12 * 3_600) => span(60 * SECOND, 365 * DAY),
        /// For how long an address that was printed can be opened, once.
        #[serde(with = "muster_shared::span")]
        pub(crate) login_time: Duration = Duration::from_secs(600) => span(SECOND, DAY),
        /// Most people who are logged in at once; whoever was idle longest gives way.
        pub(crate) max_sessions: usize = 100 => whole(1, 10_000),
        /// Most connections at once; more wait.
        pub(crate) max_connections: usize = 128 => whole(4, 10_000),
        /// Most pages that are kept up to date at once; further ones are refused.
        pub(crate) max_streams: usize = 32 => whole(1, 1_000),
        /// Largest request, in bytes.
        pub(crate) max_request: u64 = MIB => bytes(4 * KIB, 64 * MIB),
        /// Longest time for an answer. Asking a model in the playground, and sending documents, may take ten times as long.
        #[serde(with = "muster_shared::span")]
        pub(crate) request_time: Duration = Duration::from_secs(30) => span(SECOND, HOUR),
        /// How many runs, newest first, are searched.
        pub(crate) search_runs: usize = 500 => whole(1, 10_000),
        /// Most questions to models from the playground in an hour, by all together; 0 for none.
        pub(crate) playground_calls: u32 = 60 => whole(0, 100_000),
        /// Most tokens of an answer in the playground.
        pub(crate) playground_tokens: u32 = 8_192 => whole(1, 1_000_000),
        /// Most processes of one role that can be started from the dashboard.
        pub(crate) max_processes: u16 = 16 => whole(0, super::MOST_PROCESSES as u64),
        /// Names by which the dashboard may be called besides this machine's own, such as that of a proxy.
        pub(crate) hosts: Vec<String> = Vec::new() => list().example("[\"muster.example.org\"]"),
        /// Folders whose documents can be given with a goal by whoever did not start the dashboard himself.
        pub(crate) documents: Vec<PathBuf> = Vec::new() => list(),
        /// A proxy in front of it that lets people in, by OIDC or otherwise.
        pub(crate) proxy: ProxySettings = ProxySettings::default() => group(ProxySettings::SETTINGS),
    }
}

settings! {
    /// A proxy that says who somebody is. Only what comes from the addresses counts.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub(crate) struct ProxySettings {
        /// Addresses of the proxy, such as 127.0.0.1. Without any there is none.
        pub(crate) addresses: Vec<String> = Vec::new() => list().example("[\"127.0.0.1\"]"),
        /// The header with the name of the user.
        pub(crate) user: String = "X-Forwarded-User".to_owned() => text(),
        /// The header with his groups, with commas between them.
        pub(crate) groups: String = "X-Forwarded-Groups".to_owned() => text(),
        /// Which role each group has: viewer, auditor, operator or admin. Of several the one with most rights counts; who has none
        /// is not let in.
        pub(crate) roles: BTreeMap<String, DashboardRole> = BTreeMap::new()
            => named("team", &words::<DashboardRole>().example("\"operator\"")),
        /// What the proxy sends in the header X-Muster-Proxy, where others can connect from its addresses too.
        pub(crate) secret: Option<Secret> = None => secret(),
    }
}
