//! How an agent's part in a task ends: the outcome, and what is said to the queue.

use std::time::Duration;

use muster_bus::Record;
use muster_shared::flow::{Action, Ending, ModelCall, Outcome, Step, TaskOffered, Usage};
use muster_shared::run::{AgentEvent, Released};

use super::history::{History, digest, usage_of};
use super::journal::{Journal, JournalError, JournalOpening, Starter};
use crate::roles::Submission;

/// How an agent's part in a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseOutcome {
    /// The outcome is in the record.
    Closed,
    /// Another agent has the task.
    Lost,
    /// It is to be given to another agent.
    Released,
    /// It was put down: the run offers it again when it goes on.
    Parked,
    /// The record could not be written; another agent should try.
    Unwritten,
}

/// Writes the outcome of a task whose agent broke.
///
/// # Errors
/// See [`JournalError`].
pub async fn close_broken(
    record: Record,
    offer: &TaskOffered,
    starter: &Starter,
    patience: Duration,
    reason: String,
) -> Result<CloseOutcome, JournalError> {
    let again = Starter { delivered: starter.delivered.saturating_add(1), ..starter.clone() };
    let (mut journal, history) = match Journal::open(record, offer, &again, patience).await? {
        JournalOpening::Ours(opened) => *opened,
        JournalOpening::Closed => return Ok(CloseOutcome::Closed),
    };
    let submission = Submission::without_product(Ending::AgentFailed, reason);
    let outcome = outcome_of(&history, submission, None, Usage::default());
    journal.append(&AgentEvent::Outcome(outcome.into())).await.map(|()| CloseOutcome::Closed)
}

/// An outcome too large for the record is replaced by one that says so: a task must end.
pub(super) async fn write_outcome(
    journal: &mut Journal,
    outcome: Outcome,
) -> Result<CloseOutcome, JournalError> {
    let event = AgentEvent::Outcome(outcome.into());
    match (journal.append(&event).await, event) {
        (Err(JournalError::TooLarge { bytes, most }), AgentEvent::Outcome(outcome)) => {
            let reason =
                format!("the result has {bytes} bytes, {most} is the most: ask for less in one task");
            let usage = outcome.usage;
            let event = Outcome { reason, usage, ..Outcome::of_fault() };
            journal.append(&AgentEvent::Outcome(event.into())).await.map(|()| CloseOutcome::Closed)
        }
        (written, _) => written.map(|()| CloseOutcome::Closed),
    }
}

/// What an agent does that cannot write.
pub(super) fn verdict_of(error: &JournalError, offer: &TaskOffered) -> CloseOutcome {
    match error {
        JournalError::Lost | JournalError::Closed => {
            tracing::info!(run = %offer.run, task = %offer.task, "another agent has the task");
            CloseOutcome::Lost
        }
        JournalError::TooLarge { .. } | JournalError::Bus(_) => {
            tracing::warn!(run = %offer.run, task = %offer.task, %error, "the record could not be written");
            CloseOutcome::Unwritten
        }
    }
}

/// The outcome of a task, with all that its steps used.
#[must_use]
pub fn outcome_of(history: &History, submission: Submission, last: Option<Step>, wasted: Usage) -> Outcome {
    let mut steps = history.digests();
    let mut usage = history.usage();
    usage += wasted;
    if let Some(last) = &last {
        steps.push(digest(last));
        usage += usage_of(last);
    }
    let Submission { ending, reason, product } = submission;
    // What was submitted stands in the product; the step need not hold it a second time.
    let last_step = last.map(|step| Box::new(without_arguments(step, product.is_some())));
    Outcome { ending, reason, product, last_step, steps, usage, contract_violation: None }
}

/// What is said when a task is handed over, with what was used and nobody has counted: calls that gave no answer, and those
/// that no step holds. Of a task that is put down all that its steps used is counted too.
#[must_use]
pub fn with_usage(released: Released, history: &History, pending: &[ModelCall], wasted: Usage) -> Released {
    let mut usage = wasted;
    if released.parked {
        usage += history.usage();
    }
    for call in pending {
        usage += call.usage;
    }
    Released { usage, ..released }
}

fn without_arguments(mut step: Step, in_product: bool) -> Step {
    if in_product && step.action.name == Action::SUBMIT {
        step.action.arguments = serde_json::Value::Null;
    }
    step
}
