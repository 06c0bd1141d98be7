//! What the tasks of a run asked and told each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::flow::{Information, Plan};
use crate::ids::TaskIndex;
use crate::time::Millis;

/// What tasks asked and told each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PeerTalk {
    /// How many requests there were.
    pub requests: u32,
    /// What was told, by its number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shared: BTreeMap<u32, Shared>,
}

/// Something that a task told others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Shared {
    /// The task that told it.
    pub from: TaskIndex,
    /// The tasks that are told.
    pub to: Vec<TaskIndex>,
    /// What it says.
    pub text: String,
    /// When.
    pub at: Millis,
}

impl PeerTalk {
    /// Whether nobody asked or told anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests == 0 && self.shared.is_empty()
    }

    /// The number of what is told next.
    #[must_use]
    pub fn next_number(&self) -> u32 {
        self.shared.last_key_value().map_or(0, |(number, _)| *number).saturating_add(1)
    }

    /// What a leaf was told since a time, oldest first. What was told to a task that was split since is told to its parts.
    #[must_use]
    pub fn heard_by(&self, plan: &Plan, leaf: &TaskIndex, since: Millis) -> Vec<Information> {
        let concerns = |told: &Shared| told.to.iter().any(|to| to == leaf || leaf.is_below(to));
        let told = self.shared.iter().filter(|(_, told)| told.at >= since && concerns(told));
        told.map(|(number, told)| Information {
            number: *number,
            from: told.from.clone(),
            name: plan.tasks.get(&told.from).map(|task| task.name.clone()).unwrap_or_default(),
            text: told.text.clone(),
        })
        .collect()
    }
}
