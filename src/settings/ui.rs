//! The dashboard, `muster ui`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use muster_bus::credentials::DashboardRole;
use muster_shared::setting::Secret;
use muster_shared::settings;

/// Time after which an idle session ends: a working day.
pub(crate) const SESSION_TIME: Duration = Duration::from_secs(12 * 3_600);

/// Largest request, in bytes. A goal or a plan takes some kilobytes; uploads of documents have a separate limit.
pub(crate) const MAX_REQUEST: u64 = 1024 * 1024;

/// The port that is looked for where none is asked for.
pub(crate) const PORT: u16 = 7177;

settings! {
    /// The dashboard, `muster ui` (docs/dashboard.md). It listens on this machine alone.
    pub(crate) struct UiSettings {
        /// The port; where it is taken and nobody asked for it by --port, any that is free. 0 for any.
        pub(crate) port: u16 = PORT => whole(0, 65_535); User Harmless,
        /// Names by which the dashboard may be called besides this machine's own, such as that of a proxy.
        pub(crate) hosts: Vec<String> = Vec::new() => list().example("[\"muster.example.org\"]"); User Trust,
        /// Folders whose documents can be given with a goal by whoever did not start the dashboard himself.
        pub(crate) documents: Vec<PathBuf> = Vec::new() => list(); User Trust,
        /// A proxy in front of it that lets people in, by OIDC or otherwise.
        pub(crate) proxy: ProxySettings,
    }
}

settings! {
    /// A proxy that says who somebody is. Only what comes from the addresses counts.
    pub(crate) struct ProxySettings {
        /// Addresses of the proxy, such as 127.0.0.1. Without any there is none.
        pub(crate) addresses: Vec<String> = Vec::new() => list().example("[\"127.0.0.1\"]"); User Trust,
        /// The header with the name of the user.
        pub(crate) user: String = "X-Forwarded-User".to_owned() => text(); User Trust,
        /// The header with his groups, with commas between them.
        pub(crate) groups: String = "X-Forwarded-Groups".to_owned() => text(); User Trust,
        /// Which role each group has: viewer, auditor, operator or admin. Of several the one with most rights counts; who has none
        /// is not let in.
        pub(crate) roles: BTreeMap<String, DashboardRole> = BTreeMap::new()
            => named("team", &words::<DashboardRole>().example("\"operator\"")); User Trust,
        /// What the proxy sends in the header X-Muster-Proxy, where others can connect from its addresses too.
        pub(crate) secret: Option<Secret> = None => secret(); User Trust,
    }
}
