//! Effects of settings of a project that need the user's consent: run a program, receive a secret, connect to a bus, widen a
//! limit, write outside of the project. Pure.

use std::path::{Component, Path};

pub(crate) use muster_shared::claim::Danger;
use serde_json::Value;

/// Settings with paths, which need the user's consent if they lead out of the project.
const PATHS: [&str; 4] = ["server.store_dir", "agent.cache_dir", "agent.blueprints", GUARD_FILE];

/// The file of a guard, which is read.
const GUARD_FILE: &str = "guards.*.file";

/// Effect of a value that needs the user's consent; `None` for a path within the project.
pub(crate) fn danger(key: &str, value: &Value) -> Option<Danger> {
    if PATHS.contains(&key) {
        let paths = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
        let leads_out = |path: &Value| path.as_str().is_none_or(|path| leads_out(Path::new(path)));
        let what = if key == GUARD_FILE { Danger::Read } else { Danger::Outside };
        return paths.iter().any(leads_out).then_some(what);
    }
    if key == "agent.model" && value == "offline" {
        // The offline model reaches nothing.
        return None;
    }
    let mut parts = key.split('.');
    Some(match (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) {
        ("agent", "endpoint" | "key_file") => Danger::Secret,
        ("agent", "model" | "models" | "fallback_models")
        | ("limits", "committee" | "responses")
        | ("trials", _) => Danger::Model,
        ("agent", "template_dir") => Danger::Prompt,
        ("agent", "rates" | "prices" | "max_answer_tokens")
        | ("fleet", _)
        | ("ask", "effort")
        | ("limits", "budget" | "task_deadline" | "run_deadline") => Danger::Spending,
        ("limits", limit) if limit.starts_with("max_") => Danger::Spending,
        ("limits", "people") => Danger::People,
        ("guards", _) => Danger::Guard,
        ("alerts", _) => Danger::Alerts,
        ("bus", _) => Danger::Bus,
        ("server", "binary") => Danger::Program,
        ("server" | "metrics", _) => Danger::Network,
        ("tool" | "documents", group) if group != "approve" && group != "quotas" => Danger::Tools,
        ("ui", _) => Danger::Visitors,
        ("keep", _) => Danger::Retention,
        _ => Danger::Rights,
    })
}

/// Whether a path leads out of the folder that it is meant within.
pub(crate) fn leads_out(path: &Path) -> bool {
    path.components().any(|part| match part {
        Component::Prefix(_) | Component::RootDir | Component::ParentDir => true,
        Component::CurDir | Component::Normal(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &str, value: &str) -> Option<Danger> {
        danger(key, &value.into())
    }

    #[test]
    fn what_runs_is_sent_or_leads_out_needs_the_users_consent() {
        for (key, wanted) in [
            ("server.binary", Danger::Program),
            ("agent.endpoint", Danger::Secret),
            ("bus.url", Danger::Bus),
            ("server.listen", Danger::Network),
            ("metrics.listen", Danger::Network),
            ("tool.allow", Danger::Tools),
            ("tool.mcp.trusted", Danger::Tools),
            ("documents.readers.require", Danger::Tools),
            ("ui.hosts", Danger::Visitors),
            ("alerts.webhook_file", Danger::Alerts),
            ("agent.models.*", Danger::Model),
            ("agent.template_dir", Danger::Prompt),
            ("fleet.budget.cost", Danger::Spending),
            ("limits.max_steps", Danger::Spending),
            ("limits.people.review", Danger::People),
            ("limits.rights.tools", Danger::Rights),
            ("keep.completed", Danger::Retention),
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
            assert_eq!(danger("agent.blueprints", &serde_json::json!(["plans", path])), wanted, "{path}");
            assert_eq!(of(GUARD_FILE, path), wanted.map(|_| Danger::Read), "{path}");
        }
    }
}
