//! What is told of a call of a composite: what came of it, and of each step. Pure.

use muster_shared::text::{beginning, counted};
use muster_tools::ToolOutput;
use serde::Serialize;
use serde_json::{Value, json};

use crate::course::{CallState, Course, StepCourse, StepState};
use crate::scope::StepScope;
use crate::template::in_words;

/// Most characters of why a step failed.
const MOST_WHY: usize = 600;

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepOutcome {
    /// All of it was done.
    Done,
    /// It failed.
    Failed,
    /// Nothing of it was done.
    Skipped,
    /// It was done, and undone when the whole failed.
    Compensated,
}

impl StepOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Compensated => "compensated",
        }
    }
}

/// What is told of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct StepReport {
    pub(crate) step: String,
    pub(crate) tool: String,
    pub(crate) outcome: StepOutcome,
    /// How many calls were begun.
    pub(crate) calls: usize,
    /// How many of them were undone.
    pub(crate) compensated: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

impl StepReport {
    fn of(name: &str, tool: &str, course: &StepCourse) -> Self {
        let count = |state: &CallState| course.made.iter().filter(|made| made.state == *state).count();
        let (compensated, left) = (count(&CallState::Compensated), count(&CallState::Done));
        let stuck = course.made.iter().find_map(|made| match &made.state {
            CallState::NotCompensated(why) => Some(format!("it could not be undone: {why}")),
            _ => None,
        });
        let (outcome, why) = match &course.state {
            StepState::Done if compensated > 0 && left == 0 && stuck.is_none() => {
                (StepOutcome::Compensated, None)
            }
            StepState::Done => (StepOutcome::Done, None),
            StepState::Skipped(why) => (StepOutcome::Skipped, Some(why.clone())),
            StepState::Failed(why) => (StepOutcome::Failed, Some(why.clone())),
            StepState::Waiting | StepState::Open { .. } => {
                (StepOutcome::Failed, Some("it did not end".to_owned()))
            }
        };
        let why: Vec<String> = why.into_iter().chain(stuck).collect();
        let why = (!why.is_empty()).then(|| beginning(&why.join("; "), MOST_WHY));
        Self {
            step: name.to_owned(),
            tool: tool.to_owned(),
            outcome,
            calls: course.made.len(),
            compensated,
            why,
        }
    }

    fn in_words(&self) -> String {
        let mut words = format!("- {} ({}): {}", self.step, self.tool, self.outcome.as_str());
        if self.calls > 1 {
            words.push_str(&format!(", {}", counted(self.calls, "call", "calls")));
        }
        if self.compensated > 0 && self.outcome != StepOutcome::Compensated {
            words.push_str(&format!(", {} undone", self.compensated));
        }
        match &self.why {
            Some(why) => format!("{words}: {why}"),
            None => words,
        }
    }
}

impl Course {
    /// What came of each step.
    pub(crate) fn steps_told(&self) -> Vec<StepReport> {
        let told = self.composite.steps.iter().zip(&self.steps);
        told.map(|(step, course)| StepReport::of(&step.name, &step.tool.name, course)).collect()
    }

    /// What is told when it is over.
    ///
    /// # Errors
    /// Says why it failed, and what was done all the same.
    pub(crate) fn told(&self) -> Result<ToolOutput, String> {
        let steps = self.steps_told();
        let lines: Vec<String> = steps.iter().map(StepReport::in_words).collect();
        let lines = lines.join("\n");
        let failed = |why: &str| {
            let left = if steps.iter().any(|step| step.outcome == StepOutcome::Done) {
                " What is done below stays done."
            } else {
                ""
            };
            format!("`{}` failed: {}.{left}\n{lines}", self.composite.name, beginning(why, MOST_WHY))
        };
        if let Some(why) = &self.why {
            return Err(failed(why));
        }
        let result = self.result().map_err(|why| failed(&format!("its result cannot be made up: {why}")))?;
        let content = in_words(&result);
        let content = if content.is_empty() { lines } else { format!("{content}\n\n{lines}") };
        Ok(ToolOutput::text(content).with_data(json!({ "result": result, "steps": steps })))
    }

    /// What it gives: what its file says, or what the last step that was done gave.
    fn result(&self) -> Result<Value, String> {
        if let Some(template) = &self.composite.result {
            return Ok(template.fill(&StepScope::of(self))?.unwrap_or_default());
        }
        let last = self.steps.iter().rev().find(|step| step.state == StepState::Done);
        let given = |step: &StepCourse| step.seen.get("data").or_else(|| step.seen.get("content")).cloned();
        Ok(last.and_then(given).unwrap_or_default())
    }
}
