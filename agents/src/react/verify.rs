//! The chain of verification (W8): before a result counts, rules look whether it is complete, consistent, correct and
//! within its constraints. What does not hold is to be mended; what is not mended is said. Pure.

mod before;
mod numbers;

use muster_shared::expected;
use muster_shared::flow::response::{NOT_CHECKED, NOT_LOOKED_UP};
use muster_shared::flow::{
    Action, Check, Citation, Ending, Fault, Finding, Note, Observation, ObservationStatus, PlanTask, Product,
    Step, TaskResult, Unchecked, Verifier, Work,
};

use self::before::{correct, correct_report};
use self::numbers::{fault_of_numbers, may_ask_about_numbers, with_numbers_marked};
use super::consult::ConsultQuestion;
use super::decide::{ChosenAction, NextStep, StepContext};
use super::history::History;
use super::limits::Verification;
use super::lookup::{self, Judged, Looked};
use super::loop_detection::refused;
use crate::roles::Submission;

/// What stands for something that was never written.
const PLACEHOLDERS: [&str; 6] = ["TODO", "TBD", "FIXME", "lorem ipsum", "[insert", "<insert"];
/// Most faults of one check that are told.
const MAX_TOLD: usize = 5;

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
    let places = match places(history, &chosen, &submission, case) {
        Looked::ToAsk(asked) => {
            return NextStep::LookUp { chosen, asked, shows: !questions(case).is_empty() };
        }
        Looked::Known(places) => places,
    };
    let as_submitted = submission.clone();
    let submission = lookup::corrected(submission, &places);
    let mut faults = faults_of(history, &submission, case);
    faults.extend(places.faults());
    let numbers = numbers::unknown(&submission, case);
    if may_ask_about_numbers(history, case) {
        faults.extend(fault_of_numbers(&numbers));
    }
    let submission = with_numbers_marked(submission, &numbers);
    let unmet = unmet(history, &submission, case);
    // Rules of citations look for slips of a model. What was expected is asked of whoever did the task.
    let is_part = case.has_model || !unmet.is_empty() || !places.faults().is_empty();
    faults.extend(unmet);
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
    let places = match places(history, &chosen, &submission, case) {
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
            chosen.notes.push(Note::NotChecked { what: Unchecked::Result, why });
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
        Work::Plan { .. } | Work::Reflect { .. } | Work::Refine { .. } | Work::DraftReview { .. } => {
            (false, false)
        }
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

/// What is known of the places that a result cites; in records of before they were looked up, nothing.
fn places(
    history: &History,
    chosen: &ChosenAction,
    submission: &Submission,
    case: &StepContext<'_>,
) -> Looked {
    if case.limits.checks == 0 {
        return Looked::Known(Judged::nothing());
    }
    lookup::look(history, &chosen.notes, submission, case.offer)
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

/// What of the expected output a result does not hold that is said to be the whole of it.
fn unmet(history: &History, submission: &Submission, case: &StepContext<'_>) -> Vec<Fault> {
    let (Some(task), Some(Product::Result(result)), Ending::Done) =
        (case.offer.work.leaf(), &submission.product, submission.ending)
    else {
        return Vec::new();
    };
    let files = files_written(history, case);
    let unmet = expected::unmet(&task.expected_output, result, files.as_deref()).into_iter();
    unmet.take(MAX_TOLD).map(|why| Fault { check: Check::Constraints, why }).collect()
}

/// The files that this task read or wrote in the workspace; nothing where it writes them in ways that are not seen here.
fn files_written(history: &History, case: &StepContext<'_>) -> Option<Vec<String>> {
    const IN_WORKSPACE: &str = "workspace.";
    case.toolset.find("workspace.write")?;
    let good =
        |seen: Option<&Observation>| seen.is_some_and(|seen| seen.status == ObservationStatus::Success);
    let acts = history.steps().iter().flat_map(Step::acts);
    let done = acts.filter(|(action, seen)| action.name.starts_with(IN_WORKSPACE) && good(*seen));
    Some(done.filter_map(|(action, _)| action.arguments["path"].as_str().map(str::to_owned)).collect())
}

fn faults_of(history: &History, submission: &Submission, case: &StepContext<'_>) -> Vec<Fault> {
    match (&case.offer.work, &submission.product) {
        (Work::Execute { task, inputs, .. }, Some(Product::Result(result))) => {
            let mut faults = VerifyFaults::default();
            complete(task, submission.ending, result, case, &mut faults);
            consistent(result, &mut faults);
            let known: Vec<&Citation> =
                inputs.iter().flat_map(|leaf| citations(&leaf.result.findings)).collect();
            if case.limits.checks == 0 {
                correct(history, case.offer, result, &known, &mut faults);
            }
            constrained(&result.conclusion, &mut faults);
            faults.0
        }
        (Work::Write { results, .. }, Some(Product::Report(report))) => {
            let mut faults = VerifyFaults::default();
            if case.limits.checks == 0 {
                let known = results.iter().flat_map(|leaf| citations(&leaf.result.findings));
                correct_report(report, &known.map(|citation| citation.path.as_str()).collect(), &mut faults);
            }
            constrained(&report.body, &mut faults);
            faults.0
        }
        // Plans, reflections, refinements and reviews are checked by rules of their own.
        (
            Work::Plan { .. }
            | Work::Execute { .. }
            | Work::Reflect { .. }
            | Work::Refine { .. }
            | Work::Write { .. }
            | Work::DraftReview { .. },
            _,
        ) => Vec::new(),
    }
}

#[derive(Default)]
struct VerifyFaults(Vec<Fault>);

impl VerifyFaults {
    fn add(&mut self, check: Check, why: String) {
        if self.0.iter().filter(|fault| fault.check == check).count() < MAX_TOLD {
            self.0.push(Fault { check, why });
        }
    }
}

fn complete(
    task: &PlanTask,
    ending: Ending,
    result: &TaskResult,
    case: &StepContext<'_>,
    faults: &mut VerifyFaults,
) {
    if result.conclusion.is_empty() {
        let why = "`conclusion` is empty: later tasks read it, so say in a few sentences what came out";
        faults.add(Check::Completeness, why.to_owned());
    }
    let not_done = || result.unanswered.iter().any(|open| says_not_done(open));
    let is_open = if case.limits.checks == 0 { !result.unanswered.is_empty() } else { not_done() };
    if case.has_model && ending == Ending::Done && is_open {
        let why = format!(
            "`ending` is done, and yet unanswered is: {}. Answer it, or end with done_partial",
            result.unanswered.join("; ")
        );
        faults.add(Check::Completeness, why);
    }
    if ending == Ending::Done && result.unanswered.iter().any(|open| open.trim() == task.goal.trim()) {
        faults.add(Check::Completeness, "the task itself is named as unanswered".to_owned());
    }
}

/// Whether what is unanswered was not done, rather than looked for and not found.
fn says_not_done(open: &str) -> bool {
    const NOT_DONE: [&str; 16] = [
        "did not get to",
        "didn't get to",
        "not attempted",
        "not yet done",
        "was not done",
        "were not done",
        "ran out of",
        "no time",
        "not enough time",
        "out of steps",
        "no steps left",
        "was skipped",
        "were skipped",
        "not started",
        "still to be done",
        "left undone",
    ];
    let open = open.to_lowercase();
    NOT_DONE.iter().any(|words| open.contains(words))
}

fn consistent(result: &TaskResult, faults: &mut VerifyFaults) {
    for finding in &result.findings {
        if finding.verified && finding.citations.is_empty() {
            let why = format!("{:?} is marked as verified and cites no place", brief(&finding.text));
            faults.add(Check::Consistency, why);
        }
        if result.unanswered.iter().any(|open| open.trim() == finding.text.trim()) {
            let why = format!("{:?} is both found and unanswered", brief(&finding.text));
            faults.add(Check::Consistency, why);
        }
    }
}

fn constrained(text: &str, faults: &mut VerifyFaults) {
    for placeholder in PLACEHOLDERS {
        let stands = text
            .split(|c: char| c.is_whitespace())
            .any(|word| word.trim_end_matches([':', '.']) == placeholder)
            || placeholder.starts_with(['[', '<', 'l']) && text.to_lowercase().contains(placeholder);
        if stands {
            faults.add(Check::Constraints, format!("it holds {placeholder:?} where words should stand"));
        }
    }
}

fn citations(findings: &[Finding]) -> impl Iterator<Item = &Citation> {
    findings.iter().flat_map(|finding| &finding.citations)
}

fn brief(text: &str) -> String {
    muster_shared::text::first_line(text, 80)
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
