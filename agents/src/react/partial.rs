//! How a task ends that does not end by itself: with the best there is, marked as unfinished, and nothing claimed
//! beyond it. Pure.

use muster_shared::flow::response::BEFORE_A_RESULT;
use muster_shared::flow::{Ending, Observation, ObservationStatus, Product, TaskOffered, TaskResult};
use muster_shared::text::within_bytes;

use super::decide::{NO_THOUGHT, StepContext};
use super::history::History;
use super::limits::AtLimit;
use super::lookup::as_far_as_it_stands;
use super::verify::failed_verification;
use crate::roles::{Submission, rules_for};

/// What stands before the conclusion of a task that did not end by itself.
pub(crate) const UNFINISHED: &str = "Unfinished: ";

/// The best there is when the steps are used up.
pub(super) fn best_partial(history: &History, case: &StepContext<'_>) -> Submission {
    let most = case.limits.max_steps;
    if case.limits.by_budget {
        let reason = format!("all {most} steps that it may take were taken {BEFORE_A_RESULT}");
        return best_so_far(history, case.offer, reason).ending(Ending::BudgetExhausted);
    }
    let reason = format!("the limit of {most} steps was reached {BEFORE_A_RESULT}");
    match case.limits.at_limit {
        AtLimit::Partial => best_so_far(history, case.offer, reason),
        AtLimit::Escalate => escalated(history, case, reason),
    }
}

/// A person has to look. Only a leaf is escalated: nobody could go on from half a plan or half a report.
pub(super) fn escalated(history: &History, case: &StepContext<'_>, reason: String) -> Submission {
    let so_far = best_so_far(history, case.offer, reason);
    match case.offer.work.leaf() {
        Some(_) => so_far.ending(Ending::Escalate),
        None => so_far,
    }
}

/// What was learnt until the task was cut short, with nothing claimed beyond it.
pub(super) fn best_so_far(history: &History, offer: &TaskOffered, reason: String) -> Submission {
    let succeeded = |seen: &Observation| seen.status == ObservationStatus::Success;
    let learnt = history.steps().iter().any(|step| step.observations().any(succeeded));
    let thought =
        history.steps().iter().rev().map(|step| step.thought.text.as_str()).find(|text| *text != NO_THOUGHT);
    if let Some(submission) = last_submitted(history, offer) {
        let product = submission.product.map(|product| unfinished(product, &reason));
        return Submission { ending: Ending::DonePartial, reason, product };
    }
    match (offer.work.leaf(), thought) {
        (Some(task), Some(thought)) if learnt => Submission {
            ending: Ending::DonePartial,
            product: Some(Product::Result(TaskResult {
                conclusion: format!("{UNFINISHED}{reason}. The last thought was: {thought}"),
                unanswered: vec![task.goal.clone()],
                ..TaskResult::default()
            })),
            reason,
        },
        _ => Submission::without_product(Ending::GaveUp, reason),
    }
}

fn unfinished(product: Product, reason: &str) -> Product {
    match product {
        Product::Result(result) => {
            let conclusion = format!("{UNFINISHED}{reason}. {}", result.conclusion);
            let conclusion = within_bytes(&conclusion, TaskResult::MAX_CONCLUSION_BYTES);
            Product::Result(TaskResult { conclusion, ..result })
        }
        other => other,
    }
}

/// The last result that was submitted and did not pass verification: better than none.
fn last_submitted(history: &History, offer: &TaskOffered) -> Option<Submission> {
    let step = history.steps().iter().rev().find(|step| failed_verification(step))?;
    let submission = rules_for(&offer.work).submission(offer, &step.action.arguments).ok()?;
    Some(as_far_as_it_stands(history, submission, step, offer))
}
