//! What follows where no action came of an answer: it is asked for again, taken as it is, or the task ends. Pure.

use muster_shared::flow::response::{DECLINED, NO_ANSWER_USABLE};
use muster_shared::flow::{Action, Ending, Note, Thought};
use muster_shared::text::first_line;
use serde_json::Value;

use super::consult::ConsultQuestion;
use super::decide::{ChosenAction, NextStep, StepContext, again, conclude};
use super::history::History;
use super::lookup;
use super::parse::ParseFailure;
use super::partial::escalated;
use super::prose::{is_long, taken_as_text};
use super::submit::{ModelAnswer, ask_again};
use crate::roles::Submission;

/// The request in other words, for a model that declined it.
const REPHRASED: &str = "you declined. Put otherwise: nothing is asked of you but one next step of ordinary work on the \
                         task above, with the actions you were given; people answer for what is done with it. Take the \
                         step that you can take";
/// A smaller request, for a model that declined twice.
const SMALLER: &str = "you declined again. Do only the part of the task that you can do: submit it with `done_partial`, \
                       and name in `unanswered` what you leave out and in `reason` why. If there is no such part, submit \
                       with `escalate` and say in `reason` what a person has to decide";

/// Longest refusal that is told, in characters.
const SAID: usize = 300;

/// What follows from an answer that cannot be read.
pub(super) fn decide_on_failure(
    history: &History,
    answer: &ModelAnswer,
    failure: &ParseFailure,
    asked: u32,
    case: &StepContext<'_>,
) -> NextStep {
    if *failure == ParseFailure::NoAction
        && let Some(next) = taken_as_text(history, &answer.said, asked, case)
    {
        return next;
    }
    if asked < case.limits.max_asks {
        return again(ask_again(&[failure.to_string()]));
    }
    match given_up_asking(answer, failure, asked, case) {
        GivenUp::Concluded(submission) => lookup::of_prose(history, answer.said.trim(), submission, case),
        GivenUp::InDoubt(chosen) => NextStep::Consult { chosen, question: ConsultQuestion::Declined },
    }
}

/// A model that declines is asked in other words, then for a smaller part; then a person has to look. The same request
/// is never repeated: it would be declined again.
pub(super) fn decide_on_refusal(
    history: &History,
    said: &str,
    asked: u32,
    case: &StepContext<'_>,
) -> NextStep {
    let note = Note::Declined { times: asked };
    if asked < case.limits.max_asks {
        let reason = if asked == 1 { REPHRASED } else { SMALLER };
        return NextStep::AskAgain { reason: ask_again(&[reason.to_owned()]), notes: vec![note] };
    }
    let reason = format!("{DECLINED}, also in other words and for a smaller part: {said}");
    NextStep::Conclude { submission: escalated(history, case, reason), notes: vec![note] }
}

/// What becomes of a step that no answer led to.
enum GivenUp {
    Concluded(Submission),
    /// A few words would be taken as the result, and may be a refusal: the model decides.
    InDoubt(ChosenAction),
}

fn given_up_asking(
    answer: &ModelAnswer,
    failure: &ParseFailure,
    asked: u32,
    case: &StepContext<'_>,
) -> GivenUp {
    let prose = answer.said.trim();
    let concluded = match failure {
        ParseFailure::NoAction if prose.is_empty() => unusable(asked, &failure.to_string()),
        ParseFailure::NoAction => match taken_as_it_is(prose, asked, case) {
            Some(_) if case.has_model && !is_long(prose) => {
                let thought = Thought { text: prose.to_owned(), ..Thought::default() };
                let action = Action { name: Action::SUBMIT.to_owned(), arguments: Value::Null };
                return GivenUp::InDoubt(ChosenAction {
                    thought,
                    action,
                    more: Vec::new(),
                    notes: Vec::new(),
                });
            }
            Some(submission) => submission,
            None => unusable(asked, &failure.to_string()),
        },
        _ => unusable(asked, &failure.to_string()),
    };
    GivenUp::Concluded(concluded)
}

/// Prose as the result, in a role that takes it.
pub(super) fn taken_as_it_is(prose: &str, asked: u32, case: &StepContext<'_>) -> Option<Submission> {
    let product = (case.rules.from_prose?)(case.offer, prose);
    let reason =
        format!("the model wrote plain text {asked} times instead of submitting; it was taken as it is");
    Some(Submission { ending: Ending::DonePartial, reason, product: Some(product) })
}

/// How the task ends with a few words of prose, once it is known whether they decline it.
pub(super) fn in_prose(history: &History, prose: &str, declined: bool, case: &StepContext<'_>) -> NextStep {
    let asked = case.limits.max_asks;
    if declined {
        return declines(history, prose, asked, case);
    }
    let taken = taken_as_it_is(prose, asked, case);
    match taken {
        Some(submission) => lookup::of_prose(history, prose, submission, case),
        None => conclude(unusable(asked, &ParseFailure::NoAction.to_string())),
    }
}

pub(super) fn unusable(asked: u32, why: &str) -> Submission {
    let times = if asked == 1 { "once".to_owned() } else { format!("{asked} times") };
    let reason = format!(
        "the model was asked {times} and {NO_ANSWER_USABLE}: {why}. A model that follows a schema better, or may \
         answer at more length, helps: choose one with --model or in the settings"
    );
    Submission::without_product(Ending::ModelFailed, reason)
}

/// The task was declined: a person has to look.
fn declines(history: &History, said: &str, times: u32, case: &StepContext<'_>) -> NextStep {
    let reason = format!("{DECLINED}: {}", first_line(said, SAID));
    let notes = vec![Note::Declined { times }];
    NextStep::Conclude { submission: escalated(history, case, reason), notes }
}
