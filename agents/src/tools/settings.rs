//! The section `[tool]` of the settings: what holds for tools, whoever calls them.

use muster_shared::settings;
use muster_tools::{EngineLimits, EngineRules, ToolPatterns};
use serde::{Deserialize, Serialize};

settings! {
    /// Tools, whoever calls them. Which of them a role has is set by `agent.tools`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct ToolSettings {
        /// Tools that are off until they stand here, because they run programs, reach other machines or spend: names,
        /// `prefix.*`, or `*`. `muster tools list` shows which there are.
        pub allow: Vec<String> = Vec::new() => list().example("[\"web.*\", \"python\"]"),
    }
}

impl ToolSettings {
    /// What the engine goes by.
    #[must_use]
    pub fn rules(&self) -> EngineRules {
        EngineRules { limits: EngineLimits::default(), allow: ToolPatterns::new(self.allow.clone()) }
    }
}
