//! What a setting of a project may not do unless the user has said so: run a program, be sent a secret, point at a bus,
//! write outside of the project. Pure.

use std::path::{Component, Path};

use muster_shared::setting::Sensitivity;
use serde::{Deserialize, Serialize};

/// What would be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Danger {
    /// It runs a program.
    Program,
    /// It names who is sent a secret, or a file that is sent as one.
    Secret,
    /// It points at a bus, or says as whom one comes there.
    Bus,
    /// It lets other machines reach a bus here.
    Network,
    /// It has files written outside of the project.
    Outside,
    /// It changes a guard of the user's.
    Guard,
    /// It changes what the user's own settings let tasks use.
    Rights,
    /// It says who is let in to the dashboard, and what he may give to runs.
    Visitors,
    /// It lets agents call tools that are off until they are allowed.
    Tools,
    /// A file that somebody else can change.
    Foreign,
    /// It says where alerts are sent, and when.
    Alerts,
    /// Keys of a fleet that came with the project: whoever made them is its operator.
    Keys,
}

impl Danger {
    /// In words, after "it would".
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Program => "run a program",
            Self::Secret => "say where keys of models are sent, or which file is one",
            Self::Bus => "point at a bus",
            Self::Network => "let other machines reach the fleet's bus, or its figures",
            Self::Outside => "write outside of the project",
            Self::Guard => "change a guard of yours",
            Self::Rights => "change what your own settings let tasks use",
            Self::Visitors => "say who is let in to the dashboard",
            Self::Tools => "let agents call tools that run programs, reach other machines or spend",
            Self::Foreign => "be read, though others can change it",
            Self::Alerts => "say where alerts are sent, and when",
            Self::Keys => "say who belongs to the fleet here, and who is its operator",
        }
    }
}

/// Prefixes of settings that need trust by their declaration, and take effect without it for now.
const COUNT_AT_ONCE: [&str; 10] = [
    "agent.blueprints",
    "agent.fallback_models",
    "agent.model",
    "agent.permissions.",
    "agent.rates.",
    "agent.template_dir",
    "fleet.",
    "keep.",
    "limits.",
    "trials.",
];

/// Folders that are written, which need it where they lead out of the project.
const FOLDERS: [&str; 2] = ["server.store_dir", "agent.cache_dir"];

/// Reason for which a value of this setting needs the user's consent, if it does.
pub(crate) fn danger(key: &str, sensitivity: Sensitivity, value: &str) -> Option<Danger> {
    if sensitivity != Sensitivity::Trust || COUNT_AT_ONCE.iter().any(|known| key.starts_with(known)) {
        return None;
    }
    if FOLDERS.contains(&key) {
        return leads_out(Path::new(value)).then_some(Danger::Outside);
    }
    Some(match key.split('.').next().unwrap_or_default() {
        "agent" => Danger::Secret,
        "alerts" => Danger::Alerts,
        "bus" => Danger::Bus,
        "server" if key == "server.binary" => Danger::Program,
        "server" | "metrics" => Danger::Network,
        "tool" | "documents" => Danger::Tools,
        "ui" => Danger::Visitors,
        _ => Danger::Rights,
    })
}

/// Whether a path leads out of the folder that it is meant within.
fn leads_out(path: &Path) -> bool {
    path.components().any(|part| match part {
        Component::Prefix(_) | Component::RootDir | Component::ParentDir => true,
        Component::CurDir | Component::Normal(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::sensitivity;

    fn of(key: &str, value: &str) -> Option<Danger> {
        danger(key, sensitivity(key).unwrap(), value)
    }

    #[test]
    fn what_runs_is_sent_or_leads_out_needs_the_users_consent() {
        for (key, wanted) in [
            ("server.binary", Danger::Program),
            ("agent.endpoint", Danger::Secret),
            ("agent.key_file", Danger::Secret),
            ("bus.url", Danger::Bus),
            ("bus.user", Danger::Bus),
            ("bus.system_user", Danger::Bus),
            ("bus.system_credentials", Danger::Bus),
            ("bus.credentials", Danger::Bus),
            ("bus.server_user", Danger::Bus),
            ("bus.tls_ca", Danger::Bus),
            ("bus.tls_cert", Danger::Bus),
            ("bus.tls_key", Danger::Bus),
            ("server.listen", Danger::Network),
            ("server.names", Danger::Network),
            ("metrics.listen", Danger::Network),
            ("tool.allow", Danger::Tools),
            ("tool.lend.*", Danger::Tools),
            ("tool.lend_to", Danger::Tools),
            ("tool.borrow", Danger::Tools),
            ("tool.web.proxy", Danger::Tools),
            ("tool.search.endpoint", Danger::Tools),
            ("tool.http.hosts", Danger::Tools),
            ("tool.http.secrets.*.file", Danger::Tools),
            ("tool.sandbox.namespaces", Danger::Tools),
            ("tool.mcp.trusted", Danger::Tools),
            ("documents.readers.require", Danger::Tools),
            ("ui.hosts", Danger::Visitors),
            ("ui.documents", Danger::Visitors),
            ("ui.proxy.addresses", Danger::Visitors),
            ("alerts.webhook_file", Danger::Alerts),
            ("alerts.max_step_duration", Danger::Alerts),
        ] {
            assert_eq!(of(key, "false"), Some(wanted), "{key}");
        }
        for (path, wanted) in [
            (".muster/nats", None),
            ("./here", None),
            ("/var/lib", Some(Danger::Outside)),
            ("a/../../b", Some(Danger::Outside)),
        ] {
            assert_eq!(of("server.store_dir", path), wanted, "{path}");
        }
        assert_eq!(of("limits.max_steps", "3"), None);
    }
}
