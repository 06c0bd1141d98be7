//! What a run is busy with: what may happen then, and what follows when it is busy with something else.

use super::error::{ApplyError, ApplyResult};
use super::task::move_to;
use crate::flow::TaskStatus;
use crate::ids::TaskId;
use crate::run::drafts::DraftReviewEnd;
use crate::run::state::{Phase, RunState};

/// Why reviews end whose draft came to nothing.
const CHANGED: &str = "what the report is made of changed";

/// An event that belongs to some phases only.
///
/// # Errors
/// When the run is busy with another.
pub(in crate::run) fn require(run: &RunState, allowed: &[Phase]) -> ApplyResult {
    if allowed.contains(&run.phase) { Ok(()) } else { Err(ApplyError::WrongPhase { phase: run.phase }) }
}

/// What the report is made of changes: there is no draft any more, and nothing of it to review.
pub(in crate::run) fn back_to_executing(run: &mut RunState) {
    if run.phase == Phase::Writing {
        drop_draft(run);
        run.phase = Phase::Executing;
    }
}

fn drop_draft(run: &mut RunState) {
    if let Some((number, _)) = run.drafts.open() {
        if let Some(last) = run.drafts.reviews.last_mut() {
            last.end = Some(DraftReviewEnd::Missed(CHANGED.to_owned()));
        }
        // What has ended stays as it is.
        let _ = close_review(run, number, CHANGED);
    }
    run.drafts.kept = None;
    run.drafts.before = run.drafts.reviews.len();
}

/// Ends the task of a review that nobody waits for any more.
pub(in crate::run) fn close_review(run: &mut RunState, number: u32, reason: &str) -> ApplyResult {
    let id = TaskId::DraftReview(number);
    let Some(task) = run.tasks.get_mut(&id).filter(|task| !task.status.is_ended()) else { return Ok(()) };
    move_to(task, &id, TaskStatus::Aborted)?;
    task.agent = None;
    task.reasons.push(reason.to_owned());
    Ok(())
}
