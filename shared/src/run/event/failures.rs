//! What is done about failures.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use crate::flow::{FailureKind, Response};
use crate::ids::{Generation, TaskId};
use crate::run::apply::ApplyResult;
use crate::run::apply::task::executable;
use crate::run::state::RunState;
use crate::time::Millis;

/// How a failed try of a task is answered. What follows from it comes next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct FailureAnswered {
    /// The task.
    pub task: TaskId,
    /// The generation that failed.
    pub generation: Generation,
    /// What kind of failure it was.
    pub failure: FailureKind,
    /// What is done about it.
    pub response: Response,
    /// The model that tries it next, if another does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What is to be said of the part that there is, if that is taken for the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked: Option<String>,
    /// The tool that failed, if it is tried without that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
}

impl Payload for FailureAnswered {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        let which = self.model.as_ref().or(self.withheld.as_ref());
        let which = which.map(|which| format!(": {}", words.brief(which))).unwrap_or_default();
        format!("{}: {}; {}{which}", self.task, self.failure.in_words(), self.response)
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let answers = &mut executable(run, &self.task)?.answers;
        let given = answers.given.entry(self.response).or_default();
        *given = given.saturating_add(1);
        answers.last = Some(self.failure);
        if self.model.is_some() {
            answers.model.clone_from(&self.model);
        }
        if self.marked.is_some() {
            answers.marked.clone_from(&self.marked);
        }
        answers.withheld.extend(self.withheld.clone());
        run.responses.failures = run.responses.failures.saturating_add(1);
        if self.failure.is_of_the_model() {
            run.responses.model_failures = run.responses.model_failures.saturating_add(1);
        }
        Ok(())
    }
}

/// The run had as many failures as it may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ErrorBudgetUsedUp {
    /// How many.
    pub failures: u32,
    /// Whether a person is asked whether to go on. Else nothing more is begun, and the report is written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
}

impl Payload for ErrorBudgetUsedUp {
    fn text(&self, _: Words<'_>) -> String {
        let then = if self.asked { "a person is asked" } else { "nothing more is begun" };
        format!("error budget used up after {} failures: {then}", self.failures)
    }

    /// Where a person is asked, it begins anew if they let the run go on.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        if self.asked {
            run.responses.failures = 0;
            run.responses.model_failures = 0;
        } else {
            run.responses.used_up = true;
        }
        Ok(())
    }
}
