//! Blueprints as goals and plans speak of them (R7): which there are, and which one does a task.

use std::collections::BTreeMap;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blueprint::{Blueprint, Param, ParamKind};

/// Most blueprints that a planner is told of.
pub const MOST_TOLD: usize = 20;

/// Longest texts about blueprints that a goal brings, in bytes of all together.
pub const MAX_TOLD_BYTES: usize = 32 * 1024;

/// Longest description of a blueprint or a parameter that a planner is told, in characters.
const MOST_SAID: usize = 200;

/// A blueprint as a planner is told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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

    /// As many of these as a goal may bring.
    #[must_use]
    pub fn told(all: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut bytes = 0;
        let fits = |brief: &Self| {
            bytes += brief.bytes();
            bytes <= MAX_TOLD_BYTES
        };
        all.into_iter().take(MOST_TOLD).take_while(fits).collect()
    }

    /// The length of what is said, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let params = self.params.iter().map(|(name, takes)| name.len() + takes.len());
        self.name.len() + self.description.len() + params.sum::<usize>()
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
    use super::*;
    use crate::blueprint::{parse, shipped};
    use crate::flow::Goal;

    #[test]
    fn a_planner_is_told_what_a_blueprint_is_for_and_what_it_takes() {
        let brief = BlueprintBrief::of(&parse(shipped("ticket_triage").unwrap()).unwrap());
        assert_eq!(brief.name, "ticket_triage");
        assert!(!brief.description.is_empty());
        let tickets = &brief.params["tickets"];
        assert!(tickets.starts_with("a list of texts, needed: "), "{tickets}");
    }

    #[test]
    fn a_goal_brings_no_more_blueprints_than_fit() {
        let of = |bytes: usize| BlueprintBrief { name: "x".repeat(bytes), ..BlueprintBrief::default() };
        let kept = |all: Vec<BlueprintBrief>| BlueprintBrief::told(all).len();
        assert_eq!(kept(vec![of(10); 30]), MOST_TOLD);
        assert_eq!(kept(vec![of(MAX_TOLD_BYTES), of(1), of(1)]), 1);
        for (brought, is_sound) in
            [(vec![of(10); MOST_TOLD], true), (vec![of(1); 21], false), (vec![of(MAX_TOLD_BYTES + 1)], false)]
        {
            let goal = Goal { blueprints: brought, ..Goal::new("What?") };
            assert_eq!(goal.check().is_ok(), is_sound);
        }
    }
}
