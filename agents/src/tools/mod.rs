//! Tools: what an agent may act with.
//!
//! [`muster_tools`] says what a tool is and has the engine.
//!
//! | tool | does | pure | needs |
//! |---|---|---|---|
//! | `calculator` | arithmetic | yes | |
//! | `corpus.search`, `corpus.read`, `corpus.look` | the documents given with the goal | yes | `read_documents` |
//! | `workspace.read`, `workspace.list` | files of the run | yes | `read_workspace` |
//! | `workspace.write`, `workspace.append` | files of the run | no | `write_workspace` |
//! | see [`actions`] | the standard actions | | |

use std::sync::Arc;

pub mod actions;
pub mod asked;
pub mod borrowing;
pub mod calculator;
pub mod counts;
pub mod documents;
pub mod edges;
pub mod lenders;
pub mod lent;
pub mod look;
pub mod nested;
pub mod read_result;
pub mod remote;
pub mod served;
pub mod settings;
pub mod shared;
pub mod workspace;

use crate::AgentSettings;
use crate::library::Library;

pub use self::{
    calculator::Calculator,
    settings::ToolSettings,
    workspace::{SharedWorkspace, Workspace, WorkspaceLimits},
};
pub use muster_tools::{
    EngineLimits, EngineRules, Permission, RegistryError, Tool, ToolContext, ToolEngine, ToolFailure,
    ToolOutput, ToolRegistry, ToolResult, ToolSource, ToolSpec, ToolStatus, Uncertain, engine, registry,
    spec,
};

/// A registry with the built-in tools, as settings have them. Those that are off until they are allowed are among them:
/// the engine calls none of them before that.
///
/// # Errors
/// Never as long as the built-in tools are sound, which a test checks.
pub fn standard_registry(_settings: &ToolSettings) -> Result<ToolRegistry, RegistryError> {
    let registry = ToolRegistry::new();
    registry.register_own(Arc::new(Calculator))?;
    let tools = documents::corpus_tools().into_iter().chain(workspace::workspace_tools());
    for tool in tools.chain(actions::tools()) {
        registry.register_own(tool)?;
    }
    Ok(registry)
}

/// All tools of an agent with these settings, and further ones that it was given. One that cannot be registered is left out, and that is told.
#[must_use]
pub fn registry_of(settings: &AgentSettings, further: &[Arc<dyn Tool>]) -> ToolRegistry {
    let registry = standard_registry(&settings.tool).unwrap_or_else(|error| {
        tracing::error!(%error, "the built-in tools are left out");
        ToolRegistry::new()
    });
    let library = Library::new(settings.blueprints.clone());
    let ours =
        nested::nested_tools(library).into_iter().chain([Arc::new(read_result::ReadResult) as Arc<dyn Tool>]);
    let ours = ours.chain(edges::edge_tools(settings)).map(|tool| registry.register_own(tool));
    let further = further.iter().map(|tool| registry.register(Arc::clone(tool)));
    // In this order no tool takes the name of a built-in one.
    for error in ours.chain(further).filter_map(Result::err) {
        tracing::error!(%error, "a tool is left out");
    }
    settings.composites.register(&registry);
    registry
}

/// These tools, and those that they call in turn.
#[must_use]
pub fn with_inner(tools: &[Arc<ToolSpec>], registry: &ToolRegistry) -> Vec<Arc<ToolSpec>> {
    let inner = tools.iter().flat_map(|tool| &tool.inner).filter_map(|name| registry.find(name));
    tools.iter().cloned().chain(inner).collect()
}

/// What comes with tools that settings allow by name, that people put there themselves (files, servers), or that others lend: that
/// is to allow what they say that they need. Documents and files are there or not.
#[must_use]
pub fn granted_by_name(tools: &[Arc<ToolSpec>]) -> Vec<Permission> {
    let allowed = tools.iter().filter(|tool| tool.source != ToolSource::BuiltIn || tool.off_until_allowed);
    let needed = allowed.flat_map(|tool| tool.grants.iter().copied());
    needed.filter(|permission| !DOCUMENTS.contains(permission) && !FILES.contains(permission)).collect()
}

/// What a tool needs to read documents.
pub(crate) const DOCUMENTS: [Permission; 1] = [Permission::ReadDocuments];
/// What a tool needs for the files of a run.
pub(crate) const FILES: [Permission; 2] = [Permission::ReadWorkspace, Permission::WriteWorkspace];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_of_our_tools_can_be_used_and_say_the_same_in_the_draft_that_they_are_read_in() {
        use jsonschema::Validator;
        use serde_json::{Value, json};

        const OF_ITS_OWN: [&str; 4] =
            ["$schema", "prefixItems", "unevaluatedProperties", "dependentRequired"];
        let registry = standard_registry(&ToolSettings::default()).unwrap();
        for tool in nested::nested_tools(crate::library::Library::default()) {
            registry.register_own(tool).unwrap();
        }
        let samples =
            [json!({}), json!({ "unknown": 1 }), json!([]), json!({ "path": 1, "query": [], "text": null })];
        for spec in registry.list() {
            let registered = registry.get(&spec.name).unwrap();
            let own: &Validator = registered.validator().unwrap();
            let newest = jsonschema::validator_for(&spec.parameters).unwrap();
            assert_eq!(spec.parameters["type"], "object", "{}", spec.name);
            let written = spec.parameters.to_string();
            assert!(OF_ITS_OWN.iter().all(|word| !written.contains(word)), "{written}");
            for sample in &samples {
                let faults =
                    |of: &Validator| of.iter_errors(sample).map(|e| e.to_string()).collect::<Vec<_>>();
                assert_eq!(faults(own), faults(&newest), "{} of {}", sample as &Value, spec.name);
            }
        }
    }

    #[test]
    fn the_standard_tools_are_sound_and_their_names_fit_every_provider() {
        let specs = standard_registry(&ToolSettings::default()).unwrap().list();
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "analyze",
                "ask_peer",
                "calculator",
                "compare",
                "corpus.look",
                "corpus.read",
                "corpus.search",
                "delegate",
                "escalate",
                "generate",
                "read_context",
                "request_context",
                "request_info",
                "search",
                "share_info",
                "transform",
                "validate",
                "who_can",
                "workspace.append",
                "workspace.list",
                "workspace.read",
                "workspace.write",
                "write_context"
            ]
        );
        for spec in specs {
            let name = spec.model_name();
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "{name}");
            assert_eq!(
                spec.pure,
                !(["delegate", "escalate", "request_info", "workspace.append", "workspace.write"]
                    .contains(&spec.name.as_str())
                    || actions::reaches_peers(&spec.name)),
                "{name}"
            );
        }
    }
}
