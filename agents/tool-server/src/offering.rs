//! The tools of a server: named within it, registered, and described for agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use muster_shared::time::millis;
use muster_shared::wire::tool_server::{
    LONGEST_CALL_MS, MOST_TOOLS, ServedResult, ServedStatus, ServedTool, ToolSpecs, WhenUncertain,
};
use muster_tools::{
    Tool, ToolContext, ToolEngine, ToolFailure, ToolOutput, ToolRegistry, ToolResult, ToolSource, ToolSpec,
    ToolStatus, Uncertain,
};
use serde_json::Value;

/// Room for the descriptions of all tools in one message, with what stands around them.
const MOST_BYTES: usize = 1024 * 1024 - 4 * 1024;

/// The tools of a server as they are at one moment.
pub(crate) struct Offering {
    pub(crate) engine: ToolEngine,
    pub(crate) specs: ToolSpecs,
    /// Tells this set from another.
    pub(crate) digest: String,
    /// The digest of each tool, and its full name, by its own name.
    known: BTreeMap<String, KnownTool>,
}

struct KnownTool {
    digest: String,
    full_name: String,
}

impl Offering {
    /// These tools under the name of a server. What cannot be used is left out, and told.
    pub(crate) fn of(server: &str, tools: &[Arc<dyn Tool>]) -> Self {
        let registry = ToolRegistry::new();
        let mut served: BTreeMap<String, ServedTool> = BTreeMap::new();
        let mut bytes = 0;
        for tool in tools {
            let tool = Named::within(server, Arc::clone(tool));
            let described = tool.described();
            let size = serde_json::to_vec(&described).map_or(usize::MAX, |json| json.len() + 1);
            let fault = described.fault(server).or_else(|| {
                let is_full = served.len() >= MOST_TOOLS || size.saturating_add(bytes) > MOST_BYTES;
                is_full.then(|| {
                    format!("there is no room for `{}`: the server has too many tools", described.name)
                })
            });
            let registered = match fault {
                Some(fault) => Err(fault),
                None => registry.register(Arc::new(tool)).map_err(|error| error.to_string()),
            };
            match registered {
                Ok(()) => {
                    bytes += size;
                    served.insert(described.name.clone(), described);
                }
                Err(why) => tracing::warn!(server, why, "a tool is left out"),
            }
        }
        let known = served.iter().map(|(name, tool)| {
            let known = KnownTool { digest: tool.digest(), full_name: tool.full_name(server) };
            (name.clone(), known)
        });
        let known = known.collect();
        let specs = ToolSpecs { tools: served.into_values().collect() };
        Self { engine: ToolEngine::new(Arc::new(registry)), digest: specs.digest(), specs, known }
    }

    /// The full name of a tool, if it is the one that the caller knows.
    pub(crate) fn is_current(&self, tool: &str, digest: &str) -> Option<&str> {
        let known = self.known.get(tool).filter(|known| known.digest == digest)?;
        Some(&known.full_name)
    }
}

/// A tool as agents know it that is served under this name: for whoever calls it without a server.
#[must_use]
pub fn under_name(server: &str, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
    let mut named = Named::within(server, tool);
    named.spec.source = ToolSource::Server(server.to_owned());
    Arc::new(named)
}

/// A tool under the name of its server.
struct Named {
    tool: Arc<dyn Tool>,
    spec: ToolSpec,
    own_name: String,
}

impl Named {
    fn within(server: &str, tool: Arc<dyn Tool>) -> Self {
        let mut spec = tool.spec();
        let prefix = format!("{server}.");
        let own_name = spec.name.strip_prefix(&prefix).unwrap_or(&spec.name).to_owned();
        spec.name = format!("{prefix}{own_name}");
        Self { tool, spec, own_name }
    }

    fn described(&self) -> ServedTool {
        let ToolSpec { description, parameters, grants, pure, uncertain, timeout, approve, cache, .. } =
            &self.spec;
        let uncertain = match uncertain {
            Uncertain::Repeat => WhenUncertain::Repeat,
            Uncertain::Ask => WhenUncertain::Ask,
            Uncertain::Fail => WhenUncertain::Fail,
        };
        ServedTool {
            name: self.own_name.clone(),
            description: description.clone(),
            parameters: parameters.clone(),
            pure: *pure,
            uncertain,
            grants: grants.iter().map(|grant| grant.as_str().to_owned()).collect(),
            approve: *approve,
            timeout_ms: millis(*timeout).clamp(1, LONGEST_CALL_MS),
            cache: cache.clone().filter(|_| *pure),
        }
    }
}

#[async_trait]
impl Tool for Named {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        self.tool.call(ctx, args).await
    }
}

/// What came of a call, as it travels.
pub(crate) fn served(result: ToolResult) -> ServedResult {
    let ToolResult { status, content, data, transient, wait, .. } = result;
    if wait.is_some() {
        let content = "This tool waits for somebody, which no tool of a server can do.".to_owned();
        return ServedResult { status: ServedStatus::Error, content, data: None };
    }
    let status = match status {
        ToolStatus::Success => ServedStatus::Success,
        ToolStatus::Error if transient => ServedStatus::Unavailable,
        ToolStatus::Error => ServedStatus::Error,
        ToolStatus::Timeout => ServedStatus::Timeout,
        ToolStatus::Refused => ServedStatus::Refused,
    };
    ServedResult { status, content, data }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Plain(String);

    #[async_trait]
    impl Tool for Plain {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new(self.0.clone(), "Does it.", json!({ "type": "object" }))
        }

        async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
            Ok(ToolOutput::text("done"))
        }
    }

    fn offering(names: impl IntoIterator<Item = String>) -> Offering {
        let tools: Vec<Arc<dyn Tool>> =
            names.into_iter().map(|name| Arc::new(Plain(name)) as Arc<dyn Tool>).collect();
        Offering::of("notes", &tools)
    }

    #[test]
    fn tools_stand_under_the_name_of_their_server_once_and_no_more_than_may_be() {
        let names = ["add", "notes.list", "notes.add", "a b", "list"].map(str::to_owned);
        let known = offering(names);
        let names: Vec<&str> = known.specs.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["add", "list"], "the first of each name");
        let digest = known.specs.tools[0].digest();
        assert_eq!(known.is_current("add", &digest), Some("notes.add"));
        assert_eq!(known.is_current("add", "another"), None);
        assert_eq!(known.is_current("remove", &digest), None);
        let many = offering((0..10_000).map(|n| format!("t{n}")));
        assert_eq!(many.specs.tools.len(), MOST_TOOLS);
    }
}
