//! Results of a run that contradict each other: what was found, what was done about it, and how it ended (O3).

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::state::RunState;
use crate::conflict::{ConflictVerdict, Side, Subject};
use crate::flow::{Citation, ConflictStep, PlanTask};
use crate::ids::{AgentId, TaskIndex};
use crate::time::Millis;

/// Results of a run that contradict each other, and who helps to settle that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Conflicts {
    /// Every conflict that was found, by its number, and what became of it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub found: BTreeMap<u32, ConflictState>,
    /// Small tasks outside the plan that help to settle conflicts, by their number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settling: BTreeMap<u32, Settling>,
}

/// Claims of different tasks that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ConflictState {
    /// What they are about, in the words of a claim.
    pub subject: String,
    /// The claims.
    pub sides: Vec<Side>,
    /// When it was found.
    pub found_at: Millis,
    /// When the time to settle it is up.
    pub until: Millis,
    /// The steps of the policy that were taken and ask somebody.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub steps: BTreeSet<ConflictStep>,
    /// The task of the plan that finds out what holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified_by: Option<TaskIndex>,
    /// How it ended; nothing while it is being settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<ConflictEnd>,
    /// The tasks that are done again because they lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redone: Vec<TaskIndex>,
}

impl ConflictState {
    /// Whether it is being settled.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// What it is about, in the form in which subjects are compared.
    #[must_use]
    pub fn subject(&self) -> Option<Subject> {
        Subject::of(&self.subject)
    }

    /// The side of a task.
    #[must_use]
    pub fn side(&self, task: &TaskIndex) -> Option<&Side> {
        self.sides.iter().find(|side| side.task == *task)
    }

    /// The verdict, if there is one.
    #[must_use]
    pub const fn verdict(&self) -> Option<&ConflictVerdict> {
        if let Some(ConflictEnd::Settled(verdict)) = &self.end { Some(verdict) } else { None }
    }
}

/// How a conflict ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConflictEnd {
    /// It is known what holds.
    Settled(ConflictVerdict),
    /// It is not, and why. The report says so.
    Unsettled(String),
    /// There is no contradiction, or none any more, and why.
    Gone(String),
    /// Both hold: they speak of different things; what tells them apart. The report says so.
    Both(String),
}

impl ConflictEnd {
    /// It in words, with the tasks that are done again because they lost.
    #[must_use]
    pub fn in_full(&self, redone: &[TaskIndex]) -> String {
        let list =
            |tasks: &[TaskIndex]| tasks.iter().map(ToString::to_string).collect::<Vec<String>>().join(", ");
        match self {
            Self::Settled(ConflictVerdict { value, by, why, losers, evidence, .. }) => {
                let again = match redone {
                    [] => String::new(),
                    redone => format!("; {} is done again", list(redone)),
                };
                let (places, losers) = (Citation::places(evidence), list(losers));
                format!("{value} holds, by {by}: {why}{places}; not what {losers} claims{again}")
            }
            Self::Unsettled(why) => format!("not settled: {why}"),
            Self::Gone(why) => format!("no conflict: {why}"),
            Self::Both(why) => format!("both hold: {why}"),
        }
    }
}

/// A small task outside the plan that helps to settle a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Settling {
    /// The conflict.
    pub conflict: u32,
    /// What it is for.
    pub purpose: SettlingFor,
    /// What is to be done, and by which role.
    pub task: Box<PlanTask>,
}

/// What a task is for that helps to settle a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SettlingFor {
    /// To show how this task came to its value.
    Method(TaskIndex),
    /// To judge which side is right.
    Arbiter,
}

/// How often an agent was right and wrong where results contradicted each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConflictCount {
    /// Verdicts for what it claimed.
    pub won: u32,
    /// Verdicts against it.
    pub lost: u32,
}

impl RunState {
    /// Whether a task was added to verify claims that contradict each other, or is a part of such a task.
    #[must_use]
    pub fn is_verification(&self, task: &TaskIndex) -> bool {
        let mut added = self.conflicts.found.values().filter_map(|conflict| conflict.verified_by.as_ref());
        added.any(|by| by == task || task.is_below(by))
    }

    /// The conflicts that are being settled.
    pub fn open_conflicts(&self) -> impl Iterator<Item = (u32, &ConflictState)> {
        self.conflicts
            .found
            .iter()
            .filter(|(_, conflict)| conflict.is_open())
            .map(|(id, conflict)| (*id, conflict))
    }

    /// How often each agent won and lost.
    #[must_use]
    pub fn conflict_counts(&self) -> BTreeMap<AgentId, ConflictCount> {
        let mut counts: BTreeMap<AgentId, ConflictCount> = BTreeMap::new();
        for conflict in self.conflicts.found.values() {
            let Some(verdict) = conflict.verdict() else { continue };
            for side in &conflict.sides {
                let Some(agent) = &side.agent else { continue };
                let count = counts.entry(agent.clone()).or_default();
                if verdict.winners.contains(&side.task) {
                    count.won = count.won.saturating_add(1);
                } else if verdict.losers.contains(&side.task) {
                    count.lost = count.lost.saturating_add(1);
                }
            }
        }
        counts
    }
}
