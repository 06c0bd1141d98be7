//! Plans and changes of plans that would be refused are mended where they were made: what is wrong comes back as an
//! observation to the same conversation, with what was submitted in sight. Pure.

use muster_shared::flow::{Action, Check, Fault, Note, Observation, Verifier, Work};
use serde_json::Value;

use super::decide::{ChosenAction, StepContext};
use super::history::History;
use super::loop_detection::refused;
use crate::roles::{Submission, patch, problems};

/// Most problems that are told at once.
const MOST_TOLD: usize = 12;

/// What a submission says as a whole, where it brings changes to the plan that was submitted before; nothing where it
/// says all itself.
///
/// # Errors
/// What cannot be made of them.
pub(super) fn whole(
    history: &History,
    arguments: &Value,
    case: &StepContext<'_>,
) -> Result<Option<Value>, Vec<String>> {
    let Work::Plan { refused_plan, .. } = &case.offer.work else { return Ok(None) };
    let Some(changes) = patch::of(arguments) else { return Ok(None) };
    let submitted = history.steps().iter().rev().find(|step| step.action.name == Action::SUBMIT);
    let before = match (submitted, refused_plan) {
        (Some(step), _) => step.action.arguments.clone(),
        // It holds only texts, numbers and lists.
        (None, Some(plan)) => serde_json::to_value(plan).unwrap_or_default(),
        (None, None) => {
            return Err(vec!["there is no plan yet that `patch` could change: give `tasks`".to_owned()]);
        }
    };
    patch::patched(&before, changes).map(Some)
}

/// What is told of a submission that would be refused; nothing where it would be taken, where no step is left to mend it,
/// or where no model could.
pub(super) fn told(
    history: &History,
    chosen: &mut ChosenAction,
    submission: &Submission,
    case: &StepContext<'_>,
) -> Option<Observation> {
    if !case.has_model || history.next_step() >= case.limits.max_steps {
        return None;
    }
    let wrong = problems(case.offer, submission);
    if wrong.is_empty() {
        return None;
    }
    let fault = |why: &String| Fault { check: Check::Constraints, why: why.clone() };
    chosen.notes.push(Note::Verified {
        by: Verifier::Rules,
        faults: wrong.iter().take(MOST_TOLD).map(fault).collect(),
    });
    let (what, how) = match &case.offer.work {
        Work::Plan { .. } => (
            "The plan cannot be carried out yet",
            "Mend it: submit `patch` with changes to this plan, or the whole plan.",
        ),
        Work::Refine { .. } => (
            "These operations would be refused, and are not done",
            "Submit all operations again, with these mended or left out; `exit` alone leaves the plan as it is.",
        ),
        Work::Reflect { .. } => (
            "These operations would be refused",
            "Submit the reflection again with these mended, or without `operations`.",
        ),
        _ => return None,
    };
    let lines: Vec<String> = wrong.iter().take(MOST_TOLD).map(|why| format!("- {why}")).collect();
    let more = wrong.len().saturating_sub(MOST_TOLD);
    let more = if more > 0 { format!("\n- and {more} more") } else { String::new() };
    Some(refused(format!("{what}:\n{}{more}\n{how}", lines.join("\n"))))
}

#[cfg(test)]
#[path = "mend_tests.rs"]
mod tests;
