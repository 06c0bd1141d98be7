//! Specialists: roles that users define. What they say of themselves, and what they hold to.

use std::collections::BTreeSet;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::goal::CorpusRef;
use super::plan::PlanTask;
use super::task::TaskOffered;
use super::work::{LeafRef, Work};
use crate::ids::Role;

/// What a role is for, as planners are told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Specialty {
    /// The role.
    pub role: Role,
    /// What it is for, in a sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What it can do, in a word or two each; the `needs` of a task are compared with these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// The tools it has, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The fields of data that its results hold; a task that needs one says `data.NAME` in its expected output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gives: Vec<String>,
}

impl Specialty {
    /// Most specialties that a planner is told.
    pub const MOST: usize = 32;
    /// Longest description, in characters.
    pub const MAX_DESCRIPTION: usize = 400;
    /// Most capabilities.
    pub const MAX_CAPABILITIES: usize = 32;
    /// Longest capability, in characters.
    pub const MAX_CAPABILITY: usize = 64;
    /// Most tools.
    pub const MAX_TOOLS: usize = 64;

    /// What there is to say of a role that comes with Muster: the tools that its agents have beside those that come with
    /// Muster. Nothing where there are none.
    #[must_use]
    pub fn of_built_in<'a>(role: &Role, tools: impl Iterator<Item = &'a String>) -> Option<Self> {
        let tools: Vec<String> = tools.cloned().collect();
        (!tools.is_empty()).then(|| Self { tools, ..Self::of_role(role.clone()) })
    }

    /// A role of which only its name is known.
    #[must_use]
    pub fn of_role(role: Role) -> Self {
        let (description, capabilities, tools, gives) = (String::new(), Vec::new(), Vec::new(), Vec::new());
        Self { role, description, capabilities, tools, gives }
    }

    /// Whether it is about a role that comes with Muster.
    #[must_use]
    pub const fn is_built_in(&self) -> bool {
        !matches!(self.role, Role::Specialist(_))
    }

    /// The same within its limits: what comes from the bus may be of any length.
    #[must_use]
    pub fn within_limits(mut self) -> Self {
        let cut = |text: &str, most: usize| text.trim().chars().take(most).collect::<String>();
        self.description = cut(&self.description, Self::MAX_DESCRIPTION);
        self.capabilities.truncate(Self::MAX_CAPABILITIES);
        for capability in &mut self.capabilities {
            *capability = cut(capability, Self::MAX_CAPABILITY);
        }
        self.tools.truncate(Self::MAX_TOOLS);
        for tool in &mut self.tools {
            *tool = cut(tool, Self::MAX_CAPABILITY);
        }
        self.gives.truncate(Self::MAX_CAPABILITIES);
        for field in &mut self.gives {
            *field = cut(field, Self::MAX_CAPABILITY);
        }
        self
    }
}

/// The JSON Schemas that a specialist holds to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct ContractSchemas {
    /// Of what it takes on, see [`given`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Of the `data` of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl ContractSchemas {
    /// Whether nothing is asked or promised.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.input.is_none() && self.output.is_none()
    }

    /// The fields of data that are promised, at the top of what is given.
    #[must_use]
    pub fn gives(&self) -> Vec<String> {
        let Some(output) = &self.output else { return Vec::new() };
        let listed = output.get("properties").and_then(Value::as_object);
        let listed = listed.into_iter().flat_map(|all| all.keys().cloned());
        let required = output.get("required").and_then(Value::as_array).into_iter().flatten();
        let required = required.filter_map(Value::as_str).map(str::to_owned);
        let fields: BTreeSet<String> = listed.chain(required).collect();
        fields.into_iter().take(Specialty::MAX_CAPABILITIES).collect()
    }
}

/// A contract that was not held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ContractViolation {
    /// Whose part of it.
    pub side: ContractSide,
    /// What does not fit, one line each.
    pub faults: Vec<String>,
}

/// A side of a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContractSide {
    /// What was asked: the task does not fit `contract.input`. The agent did not begin it.
    Input,
    /// What was given: the result does not fit `contract.output`.
    Output,
}

/// What a leaf is given, as `contract.input` is compared with: `task` (`name`, `goal`, `expected_output`, `milestones`,
/// `needs`), `goal` (the run's), `documents` (how many there are) and `inputs`, each with `index`, `name`,
/// `conclusion`, `findings` and `data`. Nothing for what is no leaf.
#[must_use]
pub fn given(offer: &TaskOffered) -> Option<Value> {
    if let Work::Execute { task, inputs, .. } = &offer.work {
        Some(given_with(&offer.goal, task, inputs, offer.corpus.as_ref()))
    } else {
        None
    }
}

/// What a leaf is given with a goal, the task itself, what others gave, and the documents; see [`given`].
#[must_use]
pub fn given_with(goal: &str, task: &PlanTask, inputs: &[LeafRef], corpus: Option<&CorpusRef>) -> Value {
    json!({
        "goal": goal,
        "task": {
            "name": task.name,
            "goal": task.goal,
            "expected_output": task.expected_output,
            "milestones": task.milestones,
            "needs": task.needs,
        },
        "documents": corpus.map_or(0, |corpus| corpus.files),
        "inputs": inputs.iter().map(input).collect::<Vec<Value>>(),
    })
}

fn input(leaf: &LeafRef) -> Value {
    json!({
        "index": leaf.index.to_string(),
        "name": leaf.name,
        "conclusion": leaf.result.conclusion,
        "findings": leaf.result.findings,
        "data": leaf.result.data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_that_is_promised_is_told_by_field() {
        let of = |output: Value| ContractSchemas { input: None, output: Some(output) }.gives();
        let listed = json!({"properties": {"total": {}, "parts": {}}, "required": ["total", "date"]});
        assert_eq!(of(listed), ["date", "parts", "total"]);
        for nothing in [json!(true), json!({}), json!({"properties": [1], "required": "x"})] {
            assert_eq!(of(nothing), Vec::<String>::new());
        }
        assert_eq!(ContractSchemas::default().gives(), Vec::<String>::new());
    }
}
