//! What is folded when the draft of the report is reviewed.

use super::super::drafts::{DraftReviewEnd, ReviewOfDraft};
use super::super::state::{RunState, TaskState};
use super::error::ApplyError;
use super::responses;
use super::task::{illegal, move_to};
use crate::flow::{DraftReview, Outcome, Product, Report, TaskStatus};
use crate::ids::TaskId;
use crate::time::Millis;

/// Why reviews end whose draft came to nothing.
const CHANGED: &str = "what the report is made of changed";

/// The draft is there, and is to be reviewed before it is delivered.
pub(super) fn begun(
    state: &mut RunState,
    event: &'static str,
    number: u32,
    until: Millis,
) -> Result<(), ApplyError> {
    let unknown = || ApplyError::UnknownTask { task: TaskId::DraftReview(number), event };
    let is_next = state.drafts.open().is_none() && number == state.drafts.number().saturating_add(1);
    let written = state.tasks.get(&TaskId::Write).filter(|task| task.status == TaskStatus::Completed);
    let draft = written.and_then(|task| task.outcome.as_ref()).and_then(report).filter(|_| is_next);
    let draft = draft.cloned().ok_or_else(unknown)?;
    state.drafts.kept = Some(Box::new(draft));
    state.drafts.reviews.push(ReviewOfDraft { until, end: None });
    state.tasks.insert(TaskId::DraftReview(number), TaskState::new());
    Ok(())
}

/// The reviewer has read it. What is to be written again is opened again.
pub(super) fn reviewed(
    state: &mut RunState,
    event: &'static str,
    number: u32,
    (review, revise): (&DraftReview, bool),
) -> Result<(), ApplyError> {
    end(state, event, number, DraftReviewEnd::Reviewed { review: review.clone(), revise })?;
    if !revise {
        return Ok(());
    }
    let write = TaskId::Write;
    let unknown = || ApplyError::UnknownTask { task: TaskId::Write, event };
    let task = state.tasks.get_mut(&write).ok_or_else(unknown)?;
    if task.status != TaskStatus::Completed {
        return Err(illegal(&write, task.status, TaskStatus::Created));
    }
    task.status = TaskStatus::Created;
    task.agent = None;
    task.outcome = None;
    task.failures = 0;
    responses::reopened(state, &write);
    Ok(())
}

/// The review did not take place, or nothing came of it.
pub(super) fn missed(
    state: &mut RunState,
    event: &'static str,
    number: u32,
    reason: &str,
) -> Result<(), ApplyError> {
    end(state, event, number, DraftReviewEnd::Missed(reason.to_owned()))?;
    close(state, number, reason)
}

/// What the report is made of changes: there is no draft any more, and nothing of it to review.
pub(super) fn dropped(state: &mut RunState) {
    let open = state.drafts.open().map(|(number, _)| number);
    if let Some(last) = state.drafts.reviews.last_mut().filter(|_| open.is_some()) {
        last.end = Some(DraftReviewEnd::Missed(CHANGED.to_owned()));
    }
    if let Some(number) = open {
        // What has ended stays as it is.
        let _ = close(state, number, CHANGED);
    }
    state.drafts.kept = None;
    state.drafts.before = state.drafts.reviews.len();
}

fn end(
    state: &mut RunState,
    event: &'static str,
    number: u32,
    end: DraftReviewEnd,
) -> Result<(), ApplyError> {
    let is_open = state.drafts.open().is_some_and(|(open, _)| open == number);
    let unknown = ApplyError::UnknownTask { task: TaskId::DraftReview(number), event };
    let last = state.drafts.reviews.last_mut().filter(|_| is_open).ok_or(unknown)?;
    last.end = Some(end);
    Ok(())
}

/// Ends the task of a review that nobody waits for any more.
fn close(state: &mut RunState, number: u32, reason: &str) -> Result<(), ApplyError> {
    let id = TaskId::DraftReview(number);
    let Some(task) = state.tasks.get_mut(&id).filter(|task| !task.status.is_ended()) else { return Ok(()) };
    move_to(task, &id, TaskStatus::Aborted)?;
    task.agent = None;
    task.reasons.push(reason.to_owned());
    Ok(())
}

fn report(outcome: &Outcome) -> Option<&Report> {
    match outcome.product.as_ref()? {
        Product::Report(report) => Some(report),
        Product::Plan(_)
        | Product::Result(_)
        | Product::Reflection(_)
        | Product::Refinement(_)
        | Product::DraftReview(_) => None,
    }
}
