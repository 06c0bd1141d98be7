//! Verification of a result before it is accepted: rules check typed facts, a model compares statements with their lines. Proven
//! faults are corrected or left out; doubts are answered by the author once. Pure.

mod doubts;
mod rules;

use muster_shared::flow::response::{NOT_CHECKED, NOT_LOOKED_UP};
use muster_shared::flow::{Action, Check, Ending, Fault, Note, Step, Verifier, Work};
use muster_shared::text::first_line;
use serde_json::Value;

pub(super) use self::doubts::edit;
use self::doubts::{compared, disputed, doubts_in, is_due};
use self::rules::faults_of;
use super::consult::ConsultQuestion;
use super::decide::{ChosenAction, NextStep, StepContext};
use super::history::History;
use super::limits::Verification;
use super::lookup::{self, Judged, Looked};
use super::loop_detection::refused;
use crate::roles::Submission;

/// Most faults of one answer of a model, and the longest reason of one, in characters.
const MOST_FAULTS: usize = 20;
const LONGEST_WHY: usize = 600;

/// Next step after a submission: a look-up, a question to the model, a refusal, or the end of the task.
pub(super) fn verified(
    history: &History,
    chosen: ChosenAction,
    submission: Submission,
    case: &StepContext<'_>,
) -> NextStep {
    if submission.product.is_none() || !submission.ending.is_success() {
        return NextStep::Submit { chosen, submission };
    }
    let places = match lookup::look(history, &chosen.notes, &submission, case.offer) {
        Looked::ToAsk(asked) => {
            let shows = !questions(case).is_empty() || doubts::is_on(case);
            return NextStep::LookUp { chosen, asked, shows };
        }
        Looked::Known(places) => places,
    };
    if is_due(history, &chosen, &places, case) {
        return NextStep::Consult { chosen, question: ConsultQuestion::Verify(Verify::Cited) };
    }
    checked_by_rules(history, chosen, submission, &places, case)
}

fn checked_by_rules(
    history: &History,
    mut chosen: ChosenAction,
    submission: Submission,
    places: &Judged,
    case: &StepContext<'_>,
) -> NextStep {
    let as_submitted = submission.clone();
    let submission = lookup::corrected(submission, places);
    let mut faults = faults_of(&submission, case);
    // Statements with a proven fault are left out and named; that makes no part.
    let is_part = case.has_model && !faults.is_empty();
    faults.extend(places.faults());
    let holds = faults.is_empty() && doubts_in(&chosen.notes).is_empty();
    chosen.notes.push(Note::Verified { by: Verifier::Rules, faults: faults.clone() });
    if !holds && (!faults.is_empty() || may_be_mended(history, case)) {
        return settle(
            history,
            chosen,
            as_submitted,
            &Shortcomings { faults: &faults, places, is_part },
            case,
        );
    }
    match questions(case).first() {
        Some(first) => NextStep::Consult { chosen, question: ConsultQuestion::Verify(*first) },
        None => finish(history, chosen, submission),
    }
}

/// Submits, and counts the doubted statements that the author kept.
fn finish(history: &History, mut chosen: ChosenAction, submission: Submission) -> NextStep {
    chosen.notes.extend(disputed(history, &chosen));
    NextStep::Submit { submission: said_if_unchecked(submission, &chosen), chosen }
}

/// What follows from the model's verdict on one link of the chain.
pub(super) fn judged(
    history: &History,
    mut chosen: ChosenAction,
    asked: Verify,
    said: Result<Value, String>,
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
    if asked == Verify::Cited {
        chosen.notes.extend(compared(said, &places));
        return checked_by_rules(history, chosen, submission, &places, case);
    }
    let as_submitted = submission.clone();
    let submission = lookup::corrected(submission, &places);
    let faults = match said.map(|said| faults_in(&said)) {
        Ok(faults) => faults,
        // Without a verdict the result counts as one that nobody vouched for, and says so.
        Err(why) => {
            let why = brief(&format!("no verdict on its {} was given: {why}", asked.check().as_str()));
            let submission = as_unchecked(submission, &why);
            chosen.notes.push(Note::NotChecked { why });
            return finish(history, chosen, submission);
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
    finish(history, chosen, submission)
}

/// The faults that a model names.
fn faults_in(said: &Value) -> Vec<Fault> {
    let named = said["faults"].as_array().into_iter().flatten();
    let fault = |fault: &Value| {
        let check = fault["check"].as_str().unwrap_or_default();
        // An unknown name of a check does not make the fault invalid.
        let check =
            Check::ALL.into_iter().find(|known| known.as_str() == check).unwrap_or(Check::Constraints);
        Fault { check, why: first_line(fault["why"].as_str().unwrap_or_default(), LONGEST_WHY) }
    };
    named.map(fault).take(MOST_FAULTS).collect()
}

/// One question to the model about a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// The cited statements, each compared with its lines.
    Cited,
    /// All links of the chain at once.
    Whole,
    /// One of them.
    One(Check),
}

impl Verify {
    /// The check that stands for it.
    const fn check(self) -> Check {
        match self {
            Self::Cited | Self::Whole => Check::Correctness,
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
        Verification::Off | Verification::Cited => Vec::new(),
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
        let observation = refused(told(faults, &chosen, places));
        return NextStep::Refuse { chosen, observation };
    }
    let submission = if is_part { as_partial(submission, faults) } else { submission };
    let submission = lookup::left_out(submission, places);
    finish(history, chosen, submission)
}

/// Faults, doubts and moved citations of a submission, for its author.
fn told(faults: &[Fault], chosen: &ChosenAction, places: &Judged) -> String {
    let mut parts = Vec::new();
    if !faults.is_empty() {
        let lines: String = faults.iter().map(|fault| format!("- {fault}\n")).collect();
        parts.push(format!(
            "Your result is not accepted yet:\n{lines}Correct it and submit again; with `amends`, only the changed fields. Leave out \
             what you cannot correct: name it in `unanswered` and end with done_partial."
        ));
    }
    parts.extend(doubts::listed(&chosen.notes, places));
    let moves = places.moves();
    if !moves.is_empty() {
        parts.push(format!(
            "Citations that move to the line that contains their quote: {}.",
            moves.join("; ")
        ));
    }
    parts.join("\n\n")
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

/// Whether the step is a submission that was sent back with faults or doubts.
pub(super) fn failed_verification(step: &Step) -> bool {
    let has_faults = |note: &Note| match note {
        Note::Verified { faults, .. } => !faults.is_empty(),
        Note::Doubted { doubts } => !doubts.is_empty(),
        _ => false,
    };
    step.action.name == Action::SUBMIT && step.notes.iter().any(has_faults)
}

/// A result with open faults is partial. The reason names the checks only: the notes of the step have the details.
pub(super) fn as_partial(mut submission: Submission, faults: &[Fault]) -> Submission {
    let mut checks: Vec<&str> = faults.iter().map(|fault| fault.check.as_str()).collect();
    checks.sort_unstable();
    checks.dedup();
    let why = format!("verification found open points of {}", checks.join(", "));
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
