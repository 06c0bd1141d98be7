//! The chain of verification (W8): before a result counts, rules look whether it is complete, consistent, correct and
//! within its constraints. What does not hold is to be mended; what is not mended is said. Pure.

mod numbers;
mod rules;

use muster_shared::flow::response::{NOT_CHECKED, NOT_LOOKED_UP};
use muster_shared::flow::{Action, Check, Ending, Fault, Note, Step, Verifier, Work};

use self::numbers::{fault_of_numbers, may_ask_about_numbers, with_numbers_marked};
use self::rules::faults_of;
use super::consult::ConsultQuestion;
use super::decide::{ChosenAction, NextStep, StepContext};
use super::history::History;
use super::limits::Verification;
use super::lookup::{self, Judged, Looked};
use super::loop_detection::refused;
use crate::roles::Submission;

/// What follows from a result that was submitted: it counts, is to be mended, or the model is asked about it first.
pub(super) fn verified(
    history: &History,
    mut chosen: ChosenAction,
    submission: Submission,
    case: &StepContext<'_>,
) -> NextStep {
    if submission.product.is_none() || !submission.ending.is_success() {
        return NextStep::Submit { chosen, submission };
    }
    let places = match lookup::look(history, &chosen.notes, &submission, case.offer) {
        Looked::ToAsk(asked) => {
            return NextStep::LookUp { chosen, asked, shows: !questions(case).is_empty() };
        }
        Looked::Known(places) => places,
    };
    let as_submitted = submission.clone();
    let submission = lookup::corrected(submission, &places);
    let mut faults = faults_of(&submission, case);
    faults.extend(places.faults());
    let numbers = numbers::unknown(&submission, case);
    if may_ask_about_numbers(history, case) {
        faults.extend(fault_of_numbers(&numbers));
    }
    let submission = with_numbers_marked(submission, &numbers);
    // Rules of citations look for slips of a model.
    let is_part = case.has_model || !places.faults().is_empty();
    let holds = faults.is_empty();
    chosen.notes.push(Note::Verified { by: Verifier::Rules, faults: faults.clone() });
    if !holds {
        return settle(
            history,
            chosen,
            as_submitted,
            &Shortcomings { faults: &faults, places: &places, is_part },
            case,
        );
    }
    match questions(case).first() {
        Some(first) => NextStep::Consult { chosen, question: ConsultQuestion::Verify(*first) },
        None => NextStep::Submit { submission: said_if_unchecked(submission, &chosen), chosen },
    }
}

/// What follows from the model's verdict on one link of the chain.
pub(super) fn judged(
    history: &History,
    mut chosen: ChosenAction,
    asked: Verify,
    said: Result<Vec<Fault>, String>,
    case: &StepContext<'_>,
) -> NextStep {
    let submission = match case.rules.submission(case.offer, &chosen.action.arguments) {
        Ok(submission) => submission,
        Err(faults) => {
            return NextStep::Refuse { chosen, observation: refused(faults.join("; ")) };
        }
    };
    let places = match lookup::look(history, &chosen.notes, &submission, case.offer) {
        Looked::Known(places) => places,
        // Looked up before the model was asked.
        Looked::ToAsk(_) => Judged::nothing(),
    };
    let as_submitted = submission.clone();
    let submission = lookup::corrected(submission, &places);
    let unknown = numbers::unknown(&submission, case);
    let submission = said_if_unchecked(with_numbers_marked(submission, &unknown), &chosen);
    let faults = match said {
        Ok(faults) => faults,
        // Without a verdict the result counts as one that nobody vouched for, and says so.
        Err(why) => {
            let why = brief(&format!("no verdict on its {} was given: {why}", asked.check().as_str()));
            let submission = as_unchecked(submission, &why);
            chosen.notes.push(Note::NotChecked { why });
            return NextStep::Submit { chosen, submission };
        }
    };
    if !faults.is_empty() {
        chosen.notes.push(Note::Verified { by: Verifier::Model, faults: faults.clone() });
        return settle(
            history,
            chosen,
            as_submitted,
            &Shortcomings { faults: &faults, places: &places, is_part: true },
            case,
        );
    }
    let next = questions(case).into_iter().skip_while(|question| *question != asked).nth(1);
    if let Some(next) = next {
        return NextStep::Consult { chosen, question: ConsultQuestion::Verify(next) };
    }
    chosen.notes.push(Note::Verified { by: Verifier::Model, faults: Vec::new() });
    NextStep::Submit { chosen, submission }
}

/// One question to the model about a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// All links of the chain at once.
    Whole,
    /// One of them.
    One(Check),
}

impl Verify {
    /// The check that stands for it.
    const fn check(self) -> Check {
        match self {
            Self::Whole => Check::Correctness,
            Self::One(check) => check,
        }
    }
}

/// What the model is asked about a result, by settings and by what hangs on it.
fn questions(case: &StepContext<'_>) -> Vec<Verify> {
    let (leaf, critical) = match &case.offer.work {
        Work::Execute { task, .. } => (true, task.critical),
        Work::Write { .. } => (true, false),
        _ => (false, false),
    };
    if !leaf || !case.has_model {
        return Vec::new();
    }
    match case.limits.verification {
        Verification::Off => Vec::new(),
        Verification::Critical if !critical => Vec::new(),
        Verification::Critical | Verification::Brief => vec![Verify::Whole],
        Verification::Full => Check::ALL.map(Verify::One).to_vec(),
    }
}

/// What does not hold of a result.
struct Shortcomings<'a> {
    faults: &'a [Fault],
    /// What is known of the places that it cites.
    places: &'a Judged,
    /// Whether what is left counts as a part only.
    is_part: bool,
}

/// What does not hold is mended while revisions and steps are left. Then it counts as far as it goes.
fn settle(
    history: &History,
    chosen: ChosenAction,
    submission: Submission,
    found: &Shortcomings<'_>,
    case: &StepContext<'_>,
) -> NextStep {
    let Shortcomings { faults, places, is_part } = *found;
    if may_be_mended(history, case) {
        let mut told = "Your result was verified before it counts, and does not hold yet:\n".to_owned();
        faults.iter().for_each(|fault| told.push_str(&format!("- {fault}\n")));
        told.push_str(
            "Mend it and submit again; with `amends`, only what changes. What cannot be mended, leave out: name it in `unanswered` and end \
             with done_partial.",
        );
        return NextStep::Refuse { chosen, observation: refused(told) };
    }
    let submission = if is_part { as_partial(submission, faults) } else { submission };
    let submission = lookup::without_false(submission, places);
    let unknown = numbers::unknown(&submission, case);
    let submission = with_numbers_marked(submission, &unknown);
    NextStep::Submit { submission: said_if_unchecked(submission, &chosen), chosen }
}

/// Whether a result that does not hold is sent back.
fn may_be_mended(history: &History, case: &StepContext<'_>) -> bool {
    let revisions = history.steps().iter().filter(|step| failed_verification(step)).count();
    let may_revise = revisions < usize::try_from(case.limits.max_revisions).unwrap_or(usize::MAX);
    case.has_model && may_revise && history.next_step() < case.limits.max_steps
}

/// A result whose places could not be looked up says so.
fn said_if_unchecked(submission: Submission, chosen: &ChosenAction) -> Submission {
    match lookup::not_looked_up(&chosen.notes) {
        Some(why) => with_reason(submission, format!("{NOT_LOOKED_UP}: {why}")),
        None => submission,
    }
}

/// Whether a result was submitted in this step that did not hold.
pub(super) fn failed_verification(step: &Step) -> bool {
    step.action.name == Action::SUBMIT
        && step.notes.iter().any(|note| matches!(note, Note::Verified { faults, .. } if !faults.is_empty()))
}

/// A result that does not hold in every point counts as a part, and says why.
pub(super) fn as_partial(mut submission: Submission, faults: &[Fault]) -> Submission {
    let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
    let why = format!("verification found, and it was not mended: {}", faults.join("; "));
    submission.reason =
        if submission.reason.is_empty() { why } else { format!("{}; {why}", submission.reason) };
    if submission.ending == Ending::Done {
        submission.ending = Ending::DonePartial;
    }
    submission
}

/// A result that was to be verified, and was not, says so.
fn as_unchecked(submission: Submission, why: &str) -> Submission {
    with_reason(submission, format!("{NOT_CHECKED}: {why}"))
}

fn with_reason(mut submission: Submission, said: String) -> Submission {
    submission.reason =
        if submission.reason.is_empty() { said } else { format!("{}; {said}", submission.reason) };
    submission
}

fn brief(text: &str) -> String {
    muster_shared::text::first_line(text, 80)
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
