//! What a setting of a project may not do unless the user has said so: run a program, be sent a secret, point at a bus,
//! write outside of the project. Pure.

use std::path::{Component, Path};

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

/// Settings that need the user's word whatever they say.
const ALWAYS: [(&str, Danger); 20] = [
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
    // Who may have done here what an agent of this machine may, and who does for it what it may not see.
    ("tool.lend_to", Danger::Tools),
    ("tool.borrow", Danger::Tools),
    ("ui.hosts", Danger::Visitors),
    ("ui.documents", Danger::Visitors),
];

/// Sections of which every setting needs it: who is reached, what is sent there, which programs run and what keeps them in,
/// what is done here for others.
const SECTIONS: [(&str, Danger); 10] = [
    ("alerts.", Danger::Alerts),
    ("tool.lend.", Danger::Tools),
    ("tool.web.", Danger::Tools),
    ("tool.search.", Danger::Tools),
    ("tool.http.", Danger::Tools),
    ("tool.sandbox.", Danger::Tools),
    ("tool.sql.", Danger::Tools),
    ("tool.mcp.", Danger::Tools),
    ("documents.readers.", Danger::Tools),
    ("ui.proxy.", Danger::Visitors),
];

/// Folders that are written, which need it where they lead out of the project.
const FOLDERS: [&str; 2] = ["server.store_dir", "agent.cache_dir"];

/// What this setting would do that needs the user's word; nothing of most.
pub(crate) fn danger(key: &str, value: &str) -> Option<Danger> {
    let always = ALWAYS.iter().find(|(name, _)| *name == key).map(|(_, danger)| *danger);
    let leads_out = || FOLDERS.contains(&key) && leads_out(Path::new(value));
    let of_section = SECTIONS.iter().find(|(section, _)| key.starts_with(section)).map(|(_, danger)| *danger);
    always.or(of_section).or_else(|| leads_out().then_some(Danger::Outside))
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
    use muster_shared::setting::Kind;

    use super::*;
    use crate::settings::text_keys;

    /// Texts that run nothing, are sent nothing and write nothing outside.
    const HARMLESS: [&str; 16] = [
        "agent.name",
        "agent.model",
        "agent.models.*",
        "agent.fallback_models",
        "agent.template_dir",
        "agent.blueprints",
        "agent.tools.*",
        // Which tool stands in for another: it has to be on by itself, and may do no more.
        "tool.alternatives.*",
        // Those of the user's own settings are not changed by a project (`settings::load`); what it names is watched more.
        "tool.approve",
        "fleet.agents_dir",
        "fleet.tools_dir",
        "log.level",
        "orchestrator.domains",
        "limits.*",
        // Those of a project are asked beside the user's own; what changes one of these needs the user's word
        // (`settings::project`).
        "guards.*",
        // Who does which task, by which model: a project names both anyway. A shadow may do less than the task that it shadows.
        "trials.*",
    ];

    /// A setting that is new has to be looked at: does it need the user's word?
    #[test]
    fn every_setting_that_takes_a_text_was_thought_about() {
        let known = |key: &str| {
            let section = key.split('.').next().unwrap_or_default();
            ALWAYS.iter().any(|(name, _)| *name == key)
                || SECTIONS.iter().any(|(section, _)| key.starts_with(section))
                || FOLDERS.contains(&key)
                || HARMLESS.contains(&key)
                || HARMLESS.contains(&format!("{section}.*").as_str())
        };
        let texts = text_keys(|kind| matches!(kind, Kind::Text | Kind::List { .. }));
        assert!(texts.len() > 15, "{texts:?}");
        let unknown: Vec<&String> = texts.iter().filter(|key| !known(key)).collect();
        assert!(unknown.is_empty(), "decide whether these need the user's word: {unknown:?}");
    }

    #[test]
    fn what_runs_is_sent_or_leads_out_needs_the_users_word() {
        assert_eq!(danger("server.binary", "nats-server"), Some(Danger::Program));
        assert_eq!(danger("agent.endpoint", "http://localhost"), Some(Danger::Secret));
        assert_eq!(danger("bus.url", ""), Some(Danger::Bus));
        assert_eq!(danger("tool.allow", "[\"shell\"]"), Some(Danger::Tools));
        assert_eq!(danger("alerts.webhook_file", "hook"), Some(Danger::Alerts));
        assert_eq!(danger("alerts.max_step_duration", "1h"), Some(Danger::Alerts));
        assert_eq!(danger("tool.sandbox.namespaces", "false"), Some(Danger::Tools));
        assert_eq!(danger("tool.http.secrets.house.file", "/run/secrets/key"), Some(Danger::Tools));
        for (path, wanted) in [
            (".muster/nats", None),
            ("./here", None),
            ("/var/lib", Some(Danger::Outside)),
            ("a/../../b", Some(Danger::Outside)),
        ] {
            assert_eq!(danger("server.store_dir", path), wanted, "{path}");
        }
        assert_eq!(danger("limits.max_steps", "3"), None);
    }
}
