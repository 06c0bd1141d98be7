//! Runs that belong to a task of another run (R6).

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rights::TaskRights;
use crate::ids::{RunId, TaskId};
use crate::text::beginning;

/// The task that a run was begun for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Parent {
    /// The run of the task.
    pub run: RunId,
    /// The task, which waits for the end of this run.
    pub task: TaskId,
    /// How many runs stand above this one.
    pub depth: u32,
    /// What is being worked on above: the goals of those runs and of their tasks. None of them is a goal again.
    #[serde(default)]
    pub goals: Vec<String>,
    /// What that task may use: no task of this run may use more.
    #[serde(default, skip_serializing_if = "TaskRights::is_open")]
    pub rights: TaskRights,
    /// What the run is told of the work that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Box<Background>>,
}

/// What a run within a run is told of the work that it is a part of. Each of its texts, and how many there are, is bounded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Background {
    /// What the person asked, in their words.
    pub asked: String,
    /// The goals of the tasks above, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<String>,
    /// What the task that it was begun for builds on: the name of each task, and what it came to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<(String, String)>,
    /// What was learnt on the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<String>,
}

impl Background {
    /// Most tasks above that are told.
    pub const MOST_ABOVE: usize = 20;
    /// Most results that are told.
    pub const MOST_RESULTS: usize = 8;
    /// Most lessons that are told.
    pub const MOST_LESSONS: usize = 8;
    /// Longest goal of the person, in characters.
    pub const LONGEST_ASKED: usize = 4_000;
    /// Longest of the other texts, in characters.
    pub const LONGEST: usize = 600;

    /// The same with no more, and nothing longer, than is told. What is nearest to the run is kept.
    #[must_use]
    pub fn bounded(self) -> Self {
        fn last<T>(mut all: Vec<T>, most: usize) -> Vec<T> {
            let surplus = all.len().saturating_sub(most);
            all.split_off(surplus)
        }
        let texts = |all: Vec<String>, most| {
            last(all, most).iter().map(|text| beginning(text, Self::LONGEST)).collect()
        };
        let results = last(self.results, Self::MOST_RESULTS);
        Self {
            asked: beginning(&self.asked, Self::LONGEST_ASKED),
            above: texts(self.above, Self::MOST_ABOVE),
            results: results
                .iter()
                .map(|(name, came_to)| (beginning(name, Self::LONGEST), beginning(came_to, Self::LONGEST)))
                .collect(),
            lessons: texts(self.lessons, Self::MOST_LESSONS),
        }
    }
}
