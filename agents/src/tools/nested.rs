//! Planning as an action (R6): a run of its own for a part of the task, with a plan made for it or by a blueprint. The
//! task waits meanwhile and goes on with the run's report.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use muster_shared::blueprint::{fill, missing, schema};
use muster_shared::flow::goal::{GoalError, MAX_DOMAIN_BYTES, MAX_GOAL_BYTES, is_domain};
use muster_shared::flow::{ChildGoal, RolePermission, Wait};
use serde_json::{Value, json};

use super::spec::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use crate::library::Library;

/// The name of the action that plans.
pub const PLAN: &str = "plan";

/// The name of the action that works by a blueprint.
pub use muster_shared::plan::tools::BLUEPRINT;

/// Both actions.
#[must_use]
pub fn nested_tools(library: Library) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(PlanTool), Arc::new(ByBlueprint { library })]
}

struct PlanTool;

#[async_trait]
impl Tool for PlanTool {
    fn spec(&self) -> ToolSpec {
        let properties = json!({
            "goal": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_GOAL_BYTES,
                "description": "what the run is to achieve, with all that it needs to know"
            },
            "domain": {
                "type": "string",
                "maxLength": MAX_DOMAIN_BYTES,
                "description": "the domain whose orchestrator is to see to it, where the fleet has one"
            }
        });
        let what = "Has a plan made and carried out for a part of this task that takes several steps of several \
                    agents; you go on with its report. Not for the whole task, and not for what a step or two do.";
        waiting(PLAN, what.to_owned(), properties, "goal", RolePermission::Plan)
    }

    async fn call(&self, _: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let goal = args["goal"].as_str().unwrap_or_default().trim();
        if goal.is_empty() {
            return Err(ToolFailure::InvalidArguments(
                "the goal is empty: say what is to be achieved".to_owned(),
            ));
        }
        let domain = args["domain"].as_str().map(str::trim).filter(|name| !name.is_empty());
        if let Some(wrong) = domain.filter(|name| !is_domain(name)) {
            return Err(ToolFailure::InvalidArguments(
                GoalError::NoDomain { name: wrong.to_owned() }.to_string(),
            ));
        }
        let (goal, domain) = (goal.to_owned(), domain.map(str::to_owned));
        Ok(ToolOutput::waiting(Wait::Run(Box::new(ChildGoal { goal, domain, blueprint: None }))))
    }
}

struct ByBlueprint {
    library: Library,
}

#[async_trait]
impl Tool for ByBlueprint {
    fn spec(&self) -> ToolSpec {
        let listed = self.library.list();
        let known = listed.iter().filter_map(|listed| {
            let found = listed.blueprint.as_ref().ok()?;
            let params: Vec<&str> = found.params.keys().map(String::as_str).collect();
            Some(format!("{} ({}): {}", listed.name, params.join(", "), found.description))
        });
        let known: Vec<String> = known.take(MOST_LISTED).collect();
        let properties = json!({
            "name": { "type": "string", "description": "which blueprint" },
            "params": { "type": "object", "description": "values for its parameters, from what you know" }
        });
        let what = format!(
            "Has a plan carried out that was written beforehand, with values of yours; you go on with its report. \
             There are: {}",
            known.join("; ")
        );
        waiting(BLUEPRINT, what, properties, "name", RolePermission::Blueprints)
    }

    async fn call(&self, _: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let wrong = ToolFailure::InvalidArguments;
        let name = args["name"].as_str().unwrap_or_default().trim();
        let found = self.library.find(name).map_err(|error| wrong(error.to_string()))?;
        let given: BTreeMap<String, Value> = match args.get("params") {
            Some(Value::Object(given)) => given.clone().into_iter().collect(),
            _ => BTreeMap::new(),
        };
        let filled = fill(&found, &given).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let open = missing(&found, &given);
            let open =
                if open.is_empty() { String::new() } else { format!(" Give also {}.", open.join(", ")) };
            wrong(format!("{}.{open} The parameters of {name} are: {}", lines.join("; "), schema(&found)))
        })?;
        let goal = filled.goal();
        let child = ChildGoal { goal, domain: None, blueprint: Some(Box::new(filled)) };
        Ok(ToolOutput::waiting(Wait::Run(Box::new(child))))
    }
}

/// Most blueprints that a model is told of.
const MOST_LISTED: usize = 20;

/// A tool that does nothing by itself: called again it asks for the same.
fn waiting(
    name: &str,
    what: String,
    properties: Value,
    required: &str,
    permission: RolePermission,
) -> ToolSpec {
    ToolSpec::with_properties(name, what, properties, &[required])
        .with_repeatable_effects()
        .behind(permission)
}

#[cfg(test)]
mod tests {
    use muster_shared::plan::tools::STANDARD;

    use super::*;

    #[test]
    fn plans_may_name_every_tool_that_comes_with_muster() {
        let registry = crate::tools::standard_registry(&crate::tools::ToolSettings::default()).unwrap();
        for tool in nested_tools(Library::default()) {
            registry.register(tool).unwrap();
        }
        let names = registry.list().iter().map(|spec| spec.name.clone()).collect::<Vec<String>>();
        // Looking comes with reading: plans do not know whether there is anything to look at.
        let nameable: Vec<&String> = names.iter().filter(|name| *name != crate::tools::look::LOOK).collect();
        assert_eq!(nameable, STANDARD.iter().collect::<Vec<_>>());
        assert_eq!(names.len(), STANDARD.len() + 1);
    }
}
