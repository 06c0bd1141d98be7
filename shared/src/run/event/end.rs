//! How a run ends.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use super::{AgentEvent, StopReason};
use crate::flow::{Report, TaskStatus};
use crate::ids::TaskId;
use crate::run::apply::ApplyResult;
use crate::run::apply::agent::count_usage_said;
use crate::run::apply::phase::require;
use crate::run::guarding::Held;
use crate::run::questions::QuestionEnd;
use crate::run::state::{Phase, RunState, RunStatus};
use crate::time::Millis;

/// The run ended well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RunCompleted {
    /// The answer.
    pub report: Report,
}

impl Payload for RunCompleted {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Write)
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("run completed: {}", words.brief(&self.report.title))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        require(run, &[Phase::Writing])?;
        run.report = Some(self.report.clone());
        end(run, RunStatus::Completed, "the run was completed without it", now);
        Ok(())
    }
}

/// The run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RunFailed {
    /// Why, and what to do.
    pub reason: String,
}

impl Payload for RunFailed {
    fn text(&self, words: Words<'_>) -> String {
        format!("run failed: {}", words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        run.reason = Some(self.reason.clone());
        end(run, RunStatus::Failed, "the run failed", now);
        Ok(())
    }
}

/// The run was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RunAborted {
    /// What stopped it.
    pub why: StopReason,
    /// In words.
    pub reason: String,
    /// What there was to report when it was stopped. Put together by rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<Report>>,
}

impl Payload for RunAborted {
    fn text(&self, words: Words<'_>) -> String {
        format!("run stopped: {}", words.brief(&self.reason))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        run.report = self.report.as_deref().cloned();
        run.reason = Some(self.reason.clone());
        end(run, RunStatus::Aborted(self.why), &self.reason, now);
        Ok(())
    }
}

/// Ends the run. What agents still have in hand is cut off, what they reported counts as used, and nobody waits any
/// more.
fn end(run: &mut RunState, status: RunStatus, reason: &str, now: Millis) {
    run.status = status;
    run.phase = Phase::Ended;
    run.control.paused = None;
    run.ended_at = Some(now);
    for task in run.tasks.values_mut() {
        if task.status.is_in_work() {
            task.status = TaskStatus::Aborted;
            task.agent = None;
            task.reasons.push(reason.to_owned());
        }
        task.end_wait();
    }
    for question in run.questions.values_mut().filter(|question| question.is_open()) {
        question.end = Some(QuestionEnd::Withdrawn(reason.to_owned()));
    }
    for held in std::mem::take(&mut run.guarding.open).into_values() {
        if let Held::Outcome { seq, key, outcome } = held.what {
            run.pending.insert(seq, (key, AgentEvent::Outcome(outcome)));
        }
    }
    for (key, event) in std::mem::take(&mut run.pending).into_values() {
        count_usage_said(run, &key, &event);
    }
}
