//! What follows once places are looked up. Pure.

use muster_shared::flow::{Action, Thought};
use serde_json::Value;

use super::super::decide::{ChosenAction, NextStep, StepContext, taken_as_it_is};
use super::super::history::History;
use super::super::loop_detection::refused;
use super::super::verify::verified;
use super::{Looked, left_out, look};
use crate::roles::Submission;

/// What follows once the places are looked up, and the note of that stands with what was chosen.
#[must_use]
pub fn looked_up(history: &History, chosen: ChosenAction, case: &StepContext<'_>) -> NextStep {
    if chosen.action.arguments.is_null() {
        let prose = chosen.thought.text.clone();
        let taken = taken_as_it_is(&prose, case.limits.max_asks, case);
        return match taken {
            Some(submission) => concluded(history, chosen, submission, case),
            None => NextStep::Refuse { chosen, observation: refused(String::new()) },
        };
    }
    match case.rules.submission(case.offer, &chosen.action.arguments) {
        Ok(submission) => verified(history, chosen, submission, case),
        Err(faults) => NextStep::Refuse { chosen, observation: refused(faults.join("; ")) },
    }
}

/// What becomes of plain text that is taken for a result: what it cites is looked up too, and left out where it does not
/// stand.
pub(in crate::react) fn of_prose(
    history: &History,
    prose: &str,
    submission: Submission,
    case: &StepContext<'_>,
) -> NextStep {
    let thought = Thought { text: prose.to_owned(), ..Thought::default() };
    let action = Action { name: Action::SUBMIT.to_owned(), arguments: Value::Null };
    concluded(
        history,
        ChosenAction { thought, action, more: Vec::new(), notes: Vec::new() },
        submission,
        case,
    )
}

fn concluded(
    history: &History,
    chosen: ChosenAction,
    submission: Submission,
    case: &StepContext<'_>,
) -> NextStep {
    if !submission.ending.is_success() {
        return NextStep::Conclude { submission, notes: chosen.notes };
    }
    match look(history, &chosen.notes, &submission, case.offer) {
        Looked::ToAsk(asked) => NextStep::LookUp { chosen, asked, shows: false },
        Looked::Known(judged) => {
            NextStep::Conclude { submission: left_out(submission, &judged), notes: chosen.notes }
        }
    }
}
