//! What rules find wrong with a result: whether it is complete, consistent and within its constraints. Pure.

use muster_shared::expected;
use muster_shared::flow::{
    Check, Ending, Fault, Observation, ObservationStatus, PlanTask, Product, Step, TaskResult, Work,
};

use super::super::decide::StepContext;
use super::super::history::History;
use super::brief;
use crate::roles::Submission;

/// What stands for something that was never written.
const PLACEHOLDERS: [&str; 6] = ["TODO", "TBD", "FIXME", "lorem ipsum", "[insert", "<insert"];
/// Most faults of one check that are told.
const MAX_TOLD: usize = 5;

/// What of the expected output a result does not hold that is said to be the whole of it.
pub(super) fn unmet(history: &History, submission: &Submission, case: &StepContext<'_>) -> Vec<Fault> {
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

pub(super) fn faults_of(submission: &Submission, case: &StepContext<'_>) -> Vec<Fault> {
    match (&case.offer.work, &submission.product) {
        (Work::Execute { task, .. }, Some(Product::Result(result))) => {
            let mut faults = VerifyFaults::default();
            complete(task, submission.ending, result, case, &mut faults);
            consistent(result, &mut faults);
            constrained(&result.conclusion, &mut faults);
            faults.0
        }
        (Work::Write { .. }, Some(Product::Report(report))) => {
            let mut faults = VerifyFaults::default();
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
    let is_open = result.unanswered.iter().any(|open| says_not_done(open));
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
