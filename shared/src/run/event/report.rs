//! The report, its drafts, and their reviews.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use crate::flow::{DraftReview, Outcome, TaskStatus};
use crate::ids::{TaskId, TaskIndex};
use crate::run::apply::phase::{close_review, require};
use crate::run::apply::task::illegal;
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::drafts::{DraftReviewEnd, ReviewOfDraft};
use crate::run::state::{Phase, RunState};
use crate::run::task_state::TaskState;
use crate::time::Millis;

/// The report is being written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct WritingBegan {
    /// The only task of the plan, where what it gave is the report and no writer is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<TaskIndex>,
}

impl Payload for WritingBegan {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::Write)
    }

    fn text(&self, _: Words<'_>) -> String {
        match &self.from {
            Some(task) => format!("what {task} gave is the report"),
            None => "the report is being written".to_owned(),
        }
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Executing])?;
        run.phase = Phase::Writing;
        Ok(())
    }
}

/// The report is written, and a reviewer reads this draft before it is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DraftReviewBegun {
    /// Which review of the run, from 1.
    pub number: u32,
    /// Until when the reviewer is waited for.
    pub until: Millis,
}

impl Payload for DraftReviewBegun {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::DraftReview(self.number))
    }

    fn text(&self, _: Words<'_>) -> String {
        format!("the draft of the report is reviewed before it is delivered (review {})", self.number)
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Writing])?;
        let id = TaskId::DraftReview(self.number);
        let is_next = run.drafts.open().is_none() && self.number == run.drafts.number().saturating_add(1);
        let written = run.tasks.get(&TaskId::Write).filter(|task| task.status == TaskStatus::Completed);
        let draft =
            written.and_then(|task| task.outcome.as_deref()).and_then(Outcome::report).filter(|_| is_next);
        let unknown = || ApplyError::UnknownTask { task: id.clone() };
        run.drafts.kept = Some(Box::new(draft.cloned().ok_or_else(unknown)?));
        run.drafts.reviews.push(ReviewOfDraft { until: self.until, end: None });
        run.tasks.insert(id, TaskState::default());
        Ok(())
    }
}

/// A reviewer has read the draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DraftReviewed {
    /// Which review of the run, from 1.
    pub number: u32,
    /// What it says.
    pub review: DraftReview,
    /// Whether the report is written again; else it is delivered as it is.
    pub revise: bool,
}

impl Payload for DraftReviewed {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::DraftReview(self.number))
    }

    fn text(&self, words: Words<'_>) -> String {
        let remarks = words.lines("remark: ", &self.review.lines());
        format!("review {} of the draft: {}{remarks}", self.number, self.review.followed_by(self.revise))
    }

    /// What is to be written again is opened again.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Writing])?;
        let (review, revise) = (self.review.clone(), self.revise);
        end(run, self.number, DraftReviewEnd::Reviewed { review, revise })?;
        if !self.revise {
            return Ok(());
        }
        let unknown = || ApplyError::UnknownTask { task: TaskId::Write };
        let task = run.tasks.get_mut(&TaskId::Write).ok_or_else(unknown)?;
        if task.status != TaskStatus::Completed {
            return Err(illegal(&TaskId::Write, task.status, TaskStatus::Created));
        }
        task.begin_anew();
        task.forget_answers();
        Ok(())
    }
}

/// The review of the draft did not take place, or nothing came of it. The draft is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DraftReviewMissed {
    /// Which review of the run, from 1.
    pub number: u32,
    /// Why.
    pub reason: String,
}

impl Payload for DraftReviewMissed {
    fn task(&self) -> Option<TaskId> {
        Some(TaskId::DraftReview(self.number))
    }

    fn text(&self, words: Words<'_>) -> String {
        let (number, reason) = (self.number, words.brief(&self.reason));
        format!("review {number} of the draft gave nothing: {reason}; the draft is delivered")
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        require(run, &[Phase::Writing])?;
        end(run, self.number, DraftReviewEnd::Missed(self.reason.clone()))?;
        close_review(run, self.number, &self.reason)
    }
}

fn end(run: &mut RunState, number: u32, end: DraftReviewEnd) -> ApplyResult {
    let is_open = run.drafts.open().is_some_and(|(open, _)| open == number);
    let unknown = ApplyError::UnknownTask { task: TaskId::DraftReview(number) };
    run.drafts.reviews.last_mut().filter(|_| is_open).ok_or(unknown)?.end = Some(end);
    Ok(())
}
