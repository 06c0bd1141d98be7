//! The offer of a task.

use super::super::spending::Allotment;
use super::super::state::{RunState, RunStatus};
use super::super::trials;
use super::error::{ApplyError, ApplyResult};
use super::plan::derive_parents;
use super::task::illegal;
use crate::flow::{TaskOffered, TaskStatus};
use crate::ids::{Attempt, Queue, TaskId};
use crate::run::TaskState;
use crate::time::Millis;

/// What an offer is called where it cannot follow.
const EVENT: &str = "an offer";

/// Folds the offer of a task by a decision that took `now` for the time.
///
/// # Errors
/// When the task cannot be offered.
pub fn apply_offer(state: &mut RunState, offer: &TaskOffered, now: Millis) -> ApplyResult {
    check(state, offer)?;
    let task = state.tasks.entry(offer.task.clone()).or_default();
    check_turn(task, offer)?;
    let never_begun = task.status == TaskStatus::Created && task.attempt == Attempt(0);
    let before = task.generation;
    queue(task, offer, now);
    trials::note_offer(task, offer);
    if never_begun {
        state.spending.free(&offer.task, before);
    }
    if !state.limits.budget.is_unlimited() {
        let (task, generation, budget) = (offer.task.clone(), offer.generation, offer.budget);
        state.spending.allotted.push(Allotment { task, generation, budget });
    }
    if state.status == RunStatus::Created {
        state.status = RunStatus::Processing;
    }
    derive_parents(state);
    Ok(())
}

/// Whether the run may offer this task.
fn check(state: &RunState, offer: &TaskOffered) -> ApplyResult {
    if offer.run != state.id {
        return Err(ApplyError::OtherRun { wanted: state.id, found: offer.run });
    }
    if state.status.is_ended() {
        return Err(ApplyError::RunEnded { run: state.id, event: EVENT });
    }
    let known = match &offer.task {
        TaskId::Leaf(index) if index.is_member() => state.members_in_work().any(|member| member == index),
        TaskId::Leaf(index) => state.plan.as_ref().is_some_and(|plan| plan.is_leaf(index)),
        TaskId::Reflect(index) => state.plan.as_ref().is_some_and(|plan| plan.tasks.contains_key(index)),
        TaskId::Settle(number) => state.conflicts.settling.contains_key(number),
        TaskId::DraftReview(number) => state.drafts.open().is_some_and(|(open, _)| open == *number),
        TaskId::Plan | TaskId::Refine(_) | TaskId::Write => true,
    };
    if known {
        return Ok(());
    }
    let cause = Box::new(ApplyError::UnknownTask { task: offer.task.clone() });
    Err(ApplyError::Event { event: EVENT, cause })
}

/// Whether it is the turn of this generation of the task.
fn check_turn(task: &TaskState, offer: &TaskOffered) -> ApplyResult {
    match task.status {
        TaskStatus::Created | TaskStatus::Queued => {}
        from @ (TaskStatus::Waiting
        | TaskStatus::Processing
        | TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Aborted
        | TaskStatus::Skipped
        | TaskStatus::Blocked
        | TaskStatus::Split) => return Err(illegal(&offer.task, from, TaskStatus::Queued)),
    }
    let (wanted, found) = (task.generation.next(), offer.generation);
    if found == wanted {
        Ok(())
    } else {
        Err(ApplyError::WrongGeneration { task: offer.task.clone(), wanted, found })
    }
}

/// Puts the task into the queue of the offer.
fn queue(task: &mut TaskState, offer: &TaskOffered, now: Millis) {
    let in_vain = if let (TaskStatus::Queued, Some(Queue::Agent(agent))) = (task.status, &task.queue) {
        Some(agent.clone())
    } else {
        None
    };
    task.status = TaskStatus::Queued;
    task.generation = offer.generation;
    task.continues = offer.continues;
    task.queue = Some(offer.queue.clone());
    task.offered_at = Some(now);
    task.deadline = Some(offer.deadline);
    task.agent = None;
    task.attempt = Attempt(0);
    task.lost = None;
    task.ack = None;
    task.alone = offer.alone;
    match in_vain {
        // Its queue has nobody else who could take it: what died of it counts on.
        Some(agent) if task.deaths.iter().any(|death| death.agent == agent) => {
            task.avoid(agent, "it was lost while it worked on it");
        }
        Some(agent) => task.avoid_idle(agent, "it was asked and did not take it"),
        // It is tried alone because of what died of it.
        None if offer.alone => {}
        None => {
            task.last_step = 0;
            task.deaths.clear();
        }
    }
}
