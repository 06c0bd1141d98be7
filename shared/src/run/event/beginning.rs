//! How a run begins.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use crate::flow::{Goal, RunLimits};
use crate::ids::TaskId;
use crate::run::apply::phase::require;
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::fork::{Inherited, Origin};
use crate::run::state::{Phase, RunState};
use crate::time::Millis;

/// The run exists. Always the first event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RunCreated {
    /// The goal.
    pub goal: Box<Goal>,
    /// Limits in force.
    pub limits: RunLimits,
    /// The version of the events of this run.
    pub event_version: u32,
    /// The run's secret, in hexadecimal.
    pub secret: String,
    /// When it must be finished.
    pub deadline: Millis,
}

impl Payload for RunCreated {
    fn text(&self, words: Words<'_>) -> String {
        let priority = match self.goal.priority {
            0 => String::new(),
            priority => format!(" (priority {priority})"),
        };
        format!("run created{priority}: {}", words.brief(&self.goal.text))
    }

    /// Another one: the first makes the state that all others change.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        Err(ApplyError::CreatedTwice { run: run.id })
    }
}

/// The run goes on from where another one stood. Comes with its creation only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RunForked {
    /// Where that was.
    pub from: Origin,
    /// What was taken over.
    pub state: Box<Inherited>,
}

impl Payload for RunForked {
    fn text(&self, _: Words<'_>) -> String {
        format!("forked from {} at entry {}", self.from.run, self.from.at)
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        if !Inherited::fits(run) {
            return Err(ApplyError::WrongPhase { phase: run.phase });
        }
        self.state.give_to(run, self.from);
        Ok(())
    }
}

/// Earlier runs with a like goal taught something. Comes with the run's creation only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LessonsRecalled {
    /// The lessons, those of the likest goals first.
    pub lessons: Vec<String>,
}

impl Payload for LessonsRecalled {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Plan)
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("taught by earlier runs:{}", words.lines("", &self.lessons))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Planning])?;
        run.planning.lessons.clone_from(&self.lessons);
        Ok(())
    }
}
