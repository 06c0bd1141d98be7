//! What a run that ended taught, kept for later runs (M1).

use serde::{Deserialize, Serialize};

use crate::ids::RunId;
use crate::text::one_line;
use crate::time::Millis;

/// Most lessons that are kept of one run.
pub const MOST_KEPT: usize = 12;
/// Longest lesson, in characters.
const LONGEST: usize = 400;
/// Longest part of a goal that is kept with them, in characters.
const LONGEST_GOAL: usize = 2_000;

/// The lessons of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunLessons {
    /// The run.
    pub run: RunId,
    /// What it was asked: runs with a like goal are given its lessons.
    pub goal: String,
    /// When it ended.
    pub ended_at: Millis,
    /// Whether it ended with a report.
    pub completed: bool,
    /// The lessons, the weightiest first.
    pub lessons: Vec<String>,
}

impl RunLessons {
    /// The same within all limits: few lessons, each one short line and none twice.
    #[must_use]
    pub fn bounded(self) -> Self {
        let mut lessons: Vec<String> = Vec::new();
        for lesson in self.lessons.iter().map(|lesson| one_line(lesson, LONGEST)) {
            if !lesson.is_empty() && !lessons.contains(&lesson) && lessons.len() < MOST_KEPT {
                lessons.push(lesson);
            }
        }
        Self { goal: one_line(&self.goal, LONGEST_GOAL), lessons, ..self }
    }
}
