//! The section `[tool]` of the settings: what holds for tools, whoever calls them.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::ids::Role;
use muster_shared::settings;
use muster_tools::settings::{
    HttpSettings, McpSettings, SandboxSettings, SearchSettings, SqlSettings, WebSettings,
};
use muster_tools::{
    EngineLimits, EngineRules, LeaseSettings, ToolBreakerRules, ToolCacheSettings, ToolPatterns, ToolQuota,
    ToolRetries, ToolServerSettings,
};
use serde::{Deserialize, Serialize};

settings! {
    /// Tools, whoever calls them. Which of them a role has is set by `agent.tools`.
    #[derive(PartialEq)]
    pub struct ToolSettings {
        /// Tools that are off until they stand here, because they run programs, reach other machines or spend: names,
        /// `prefix.*`, or `*`. `muster tools list` shows which there are.
        pub allow: Vec<String> = Vec::new() => list().example("[\"web.*\", \"python\"]"); Fleet Trust,
        /// Tools of which a person approves each call before it is made, with arguments that they may edit: names, `prefix.*`,
        /// or `*`. Silence approves nothing.
        pub approve: Vec<String> = Vec::new() => list().example("[\"mail.*\", \"shell\"]"); Fleet More,
        /// Most calls of some tools together, by name, `prefix.*`, or `*`. All that mean a tool hold for it.
        pub quotas: BTreeMap<String, ToolQuota> = BTreeMap::new() => named("web.*", &group(ToolQuota::SETTINGS)),
        /// Time limits of calls, by name, `prefix.*`, or `*`, in place of the tools' own. The nearest holds.
        pub timeouts: BTreeMap<String, CallTimeout> = BTreeMap::new()
            => named("web.*", &span(1, 10 * MINUTE).example("\"20s\"")); Fleet Harmless,
        /// The tool that is called with the same arguments where the named one fails for good, if they fit it and it does no
        /// more than that one. The result says which answered.
        pub alternatives: BTreeMap<String, String> = BTreeMap::new()
            => named("web.search", &text().example("\"corpus.search\"")); Fleet Harmless,
        /// Calls that failed for something that passes are tried again, where doing them twice is as good as once.
        pub retries: ToolRetries = ToolRetries::default() => internal(),
        /// When a tool that cannot be reached, answers too late or breaks is left alone.
        pub breaker: ToolBreakerRules = ToolBreakerRules::default() => internal(),
        /// Answers of pure tools that serve others.
        pub cache: ToolCacheSettings,
        /// What programs that tools run may use, and what must keep them in.
        pub sandbox: SandboxSettings,
        /// What is reached by `fetch` and `fetch_file`.
        pub web: WebSettings,
        /// Tools that agents of a role offer to others while they live, by role: names, `prefix.*`, or `*`. Others know them
        /// as `lent-ROLE.NAME`, and call them where their owner runs.
        pub lend: BTreeMap<Role, Vec<String>> = BTreeMap::new() => named("researcher", &list().example("[\"sql\"]")); Fleet Trust,
        /// Roles whose agents are lent them: names, `prefix*`, or `*`.
        pub lend_to: Vec<String> = vec!["*".to_owned()] => list(); Fleet Trust,
        /// Tools of others that agents borrow: names, `prefix.*`, or `*`. Who does not borrow a tool does not see it.
        pub borrow: Vec<String> = Vec::new() => list().example("[\"lent-researcher.*\"]"); Fleet Trust,
        /// Leases of tools that are lent.
        pub lease: LeaseSettings = LeaseSettings::default() => internal(),
        /// Who answers `web_search`.
        pub search: SearchSettings,
        /// Services that `http_request` may call.
        pub http: HttpSettings,
        /// How much `sql` may use.
        pub sql: SqlSettings = SqlSettings::default() => internal(),
        /// MCP servers: the file that names them, what is believed of what they say, and limits.
        pub mcp: McpSettings,
        /// Processes that serve tools over the bus: `muster agent tools`, `muster agent mcp`.
        pub server: ToolServerSettings = ToolServerSettings::default() => internal(),
    }
}

/// The time limit of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallTimeout(#[serde(with = "muster_shared::span")] pub Duration);

impl ToolSettings {
    /// What the engine goes by.
    #[must_use]
    pub fn rules(&self) -> EngineRules {
        EngineRules {
            limits: EngineLimits::default(),
            allow: ToolPatterns::new(self.allow.clone()),
            approve: ToolPatterns::new(self.approve.clone()),
            retries: self.retries,
            breaker: self.breaker,
            quotas: self.quotas.clone(),
            timeouts: self.timeouts.iter().map(|(name, CallTimeout(limit))| (name.clone(), *limit)).collect(),
            alternatives: self.alternatives.clone(),
            cache: self.cache,
        }
    }
}
