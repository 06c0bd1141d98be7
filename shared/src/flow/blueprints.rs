//! Blueprints as goals and plans speak of them (R7): which there are, and which one does a task.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blueprint::{Blueprint, Param, ParamKind};

/// Most blueprints that a planner is told of.
pub const MOST_TOLD: usize = 20;

/// Longest description of a blueprint or a parameter that a planner is told, in characters.
const MOST_SAID: usize = 200;

/// A blueprint as a planner is told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BlueprintBrief {
    /// What it is called by.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What its parameters take, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
}

/// A task that is done by a blueprint, with values for its parameters as far as the plan knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BlueprintCall {
    /// The blueprint.
    pub name: String,
    /// The values, by parameter. What is needed and not here is filled in by whoever does the task.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Value>,
}

impl BlueprintBrief {
    /// What is said of a blueprint.
    #[must_use]
    pub fn of(blueprint: &Blueprint) -> Self {
        let params = blueprint.params.iter().map(|(name, param)| (name.clone(), takes(param)));
        Self {
            name: blueprint.name.clone(),
            description: blueprint.description.chars().take(MOST_SAID).collect(),
            params: params.collect(),
        }
    }
}

/// What a parameter takes, in a few words.
fn takes(param: &Param) -> String {
    let kind = match param.kind {
        ParamKind::String => "text",
        ParamKind::Integer => "a whole number",
        ParamKind::Number => "a number",
        ParamKind::Boolean => "true or false",
        ParamKind::List => "a list of texts",
    };
    let choices =
        if param.choices.is_empty() { String::new() } else { format!(", of {}", param.choices.join(", ")) };
    let needed = if param.required && param.default.is_none() { ", needed" } else { "" };
    let meaning =
        if param.description.is_empty() { String::new() } else { format!(": {}", param.description) };
    format!("{kind}{choices}{needed}{meaning}").chars().take(MOST_SAID).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::blueprint::{parse, shipped};

    #[test]
    fn a_planner_is_told_what_a_blueprint_is_for_and_what_it_takes() {
        let brief = BlueprintBrief::of(&parse(shipped("ticket_triage").unwrap()).unwrap());
        assert_eq!(brief.name, "ticket_triage");
        assert!(!brief.description.is_empty());
        let tickets = &brief.params["tickets"];
        assert!(tickets.starts_with("a list of texts, needed: "), "{tickets}");
    }
}
