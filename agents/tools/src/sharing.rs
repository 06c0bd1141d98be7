//! Answers of pure tools that serve others in the fleet: what names a call, what is kept, and where.

use std::time::Duration;

use async_trait::async_trait;
use muster_shared::flow::Budget;
use muster_shared::flow::cached::{canonical, digest_of};
use muster_shared::flow::rights::Rights;
use muster_shared::settings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::ToolContext;
use crate::spec::{Permission, ToolSource, ToolSpec};

/// Largest arguments of a call whose answer is shared, in bytes of JSON.
const MOST_ARGUMENTS: usize = 16 * 1024;

settings! {
    /// Answers of pure tools that serve agents of the same role which make the same call, in the whole fleet. Tools say how long
    /// theirs do.
    #[derive(Copy, PartialEq, Eq)]
    pub struct ToolCacheSettings {
        /// How old an answer may be, whatever its tool says; 0 to call every time.
        #[serde(with = "muster_shared::span")]
        pub oldest: Duration = Duration::from_secs(24 * 3600) => span(0, 30 * DAY); Fleet Harmless,
        /// Largest answer that is kept, with its data. All of them together share the bucket of answers.
        pub max_bytes: usize = 64 * 1024 => internal(),
    }
}

/// Names a call: the same for all who may be given the same answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedKey(String);

impl SharedKey {
    /// SHA-256 in hexadecimal.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Names this call. All that can change what is answered is in it: the tool as it is described, its version, the arguments,
    /// and whatever narrows what the task may reach. Nobody is given what somebody with other rights was answered.
    pub(crate) fn of(spec: &ToolSpec, args: &Value, ctx: &ToolContext) -> Option<Self> {
        let described = canonical(&serde_json::to_value(spec).ok()?);
        let args = canonical(args);
        if args.len() > MOST_ARGUMENTS {
            return None;
        }
        // What the task may still spend is another for each task, and no part of an answer.
        let rights = Rights { budget: Budget::UNLIMITED, ..ctx.rights.effective() };
        let rights = canonical(&serde_json::to_value(rights).ok()?);
        let granted: Vec<&str> = ctx.grants.iter().map(|grant| grant.as_str()).collect();
        let permissions = canonical(&serde_json::to_value(ctx.permissions).ok()?);
        let parts = [&spec.name, &described, &args, &rights, &granted.join(" "), &permissions];
        Some(Self(digest_of(&parts.map(String::as_str))))
    }
}

/// How long answers of a tool serve others; nothing where they serve nobody. The tool says it, and all of these hold: it changes
/// nothing, and what it answers depends on its arguments and on other machines alone.
pub(crate) fn serves(spec: &ToolSpec) -> Option<Duration> {
    let depends_on_run =
        spec.grants.iter().any(|grant| !matches!(grant, Permission::Network | Permission::Execute));
    // Whoever is lent a tool asks its owner each time: leases end.
    let is_lent = matches!(spec.source, ToolSource::Agent(_));
    let may = spec.pure && !spec.approve && spec.inner.is_empty() && !depends_on_run && !is_lent;
    spec.cache.as_ref().filter(|_| may).map(muster_shared::flow::ToolCache::serves)
}

/// An answer that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedAnswer {
    /// What it is.
    pub answer: AnswerToShare,
    /// How old it is.
    pub age: Duration,
}

/// A good answer, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerToShare {
    /// The observation.
    pub content: String,
    /// The same as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// How long the call took, in milliseconds.
    pub took_ms: u64,
}

/// Where answers are kept for others: those of one role, in the whole fleet.
#[async_trait]
pub trait SharedAnswers: Send + Sync + 'static {
    /// The last answer to a call, if one is kept.
    ///
    /// # Errors
    /// Why it cannot be looked up.
    async fn find(&self, key: &SharedKey) -> Result<Option<SharedAnswer>, String>;

    /// Keeps an answer for others, without secrets.
    ///
    /// # Errors
    /// Why it cannot be kept.
    async fn keep(&self, key: &SharedKey, answer: AnswerToShare) -> Result<(), String>;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use muster_shared::flow::{Grantor, RolePermissions, TaskRights, ToolCache};
    use serde_json::json;

    use super::*;

    fn spec(version: &str) -> ToolSpec {
        let cache = ToolCache::serving(Duration::from_secs(60), version.to_owned());
        ToolSpec::new("web_search", "For tests.", json!({"type": "object", "properties": {}}))
            .needing(Permission::Network)
            .cached(cache)
    }

    fn narrowed(to: serde_json::Value) -> ToolContext {
        let to: Rights = serde_json::from_value(to).unwrap();
        ToolContext::new("r", "1").within(Arc::new(TaskRights::default().narrowed_by(Grantor::Goal, &to)))
    }

    #[test]
    fn a_call_is_the_same_whoever_makes_it_and_another_with_all_that_may_change_its_answer() {
        let (args, plain) = (json!({"query": "a", "most": 3}), ToolContext::new("r", "1"));
        let key = |spec: &ToolSpec, args: &Value, ctx: &ToolContext| SharedKey::of(spec, args, ctx).unwrap();
        let one = key(&spec("1"), &args, &plain);
        let other_order: Value = serde_json::from_str(r#"{"most": 3, "query": "a"}"#).unwrap();
        for (why, same) in [
            ("another run and task", key(&spec("1"), &args, &ToolContext::new("s", "2-1"))),
            ("another order of fields", key(&spec("1"), &other_order, &plain)),
            ("approved", key(&spec("1"), &args, &plain.clone().approved())),
            ("another budget", key(&spec("1"), &args, &narrowed(json!({"budget": {"model_calls": 3}})))),
        ] {
            assert_eq!(one, same, "{why}");
        }
        let described = ToolSpec { description: "Otherwise.".to_owned(), ..spec("1") };
        let named = ToolSpec { name: "own.search".to_owned(), ..spec("1") };
        let of_server = spec("1").from_source(ToolSource::Server("s".to_owned()));
        let permissions = RolePermissions { peers: false, ..RolePermissions::OPEN };
        for (why, other) in [
            ("arguments", key(&spec("1"), &json!({"query": "a", "most": 4}), &plain)),
            ("a number as text", key(&spec("1"), &json!({"query": "a", "most": "3"}), &plain)),
            ("version", key(&spec("2"), &args, &plain)),
            ("description", key(&described, &args, &plain)),
            ("name", key(&named, &args, &plain)),
            ("source", key(&of_server, &args, &plain)),
            ("hosts", key(&spec("1"), &args, &narrowed(json!({"hosts": ["a.org"]})))),
            ("other hosts", key(&spec("1"), &args, &narrowed(json!({"hosts": ["b.org"]})))),
            ("tools", key(&spec("1"), &args, &narrowed(json!({"tools": ["web_search"]})))),
            ("granted", key(&spec("1"), &args, &plain.clone().granting([Permission::Network]))),
            ("permissions", key(&spec("1"), &args, &ToolContext { permissions, ..plain.clone() })),
        ] {
            assert_ne!(one, other, "{why}");
        }
        assert_eq!(SharedKey::of(&spec("1"), &json!({"query": "x".repeat(20_000)}), &plain), None);
    }

    #[test]
    fn answers_serve_only_where_the_tool_says_so_and_nothing_else_is_in_them() {
        assert_eq!(serves(&spec("1")), Some(Duration::from_secs(60)));
        assert_eq!(serves(&spec("1").needing(Permission::Execute)), Some(Duration::from_secs(60)));
        let calling = spec("1").calling(["calculator".to_owned()].into());
        let lent = spec("1").from_source(ToolSource::Agent("lent-worker".to_owned()));
        for (why, spec) in [
            ("it does not say so", spec("1").cached(None)),
            ("effects", spec("1").with_side_effects()),
            ("approved by a person", spec("1").approved_by_person()),
            ("calls others", calling),
            ("lent", lent),
            ("documents", spec("1").needing(Permission::ReadDocuments)),
            ("files", spec("1").needing(Permission::ReadWorkspace)),
            ("memory", spec("1").needing(Permission::Memory)),
            ("people", spec("1").needing(Permission::AskPerson)),
            ("money", spec("1").needing(Permission::Money)),
        ] {
            assert_eq!(serves(&spec), None, "{why}");
        }
    }
}
