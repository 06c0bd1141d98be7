//! What rules find wrong with a result: whether it is complete and consistent. Only fields are compared, not prose. Pure.

use muster_shared::flow::{Check, Ending, Fault, PlanTask, Product, TaskResult, Work};

use super::super::decide::StepContext;
use super::brief;
use crate::roles::Submission;

/// Most faults of one check that are told.
const MAX_TOLD: usize = 5;

pub(super) fn faults_of(submission: &Submission, case: &StepContext<'_>) -> Vec<Fault> {
    match (&case.offer.work, &submission.product) {
        (Work::Execute { task, .. }, Some(Product::Result(result))) => {
            let mut faults = VerifyFaults::default();
            complete(task, submission.ending, result, &mut faults);
            consistent(result, &mut faults);
            faults.0
        }
        // Plans, reflections, refinements, reports and reviews are checked by rules of their own.
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

fn complete(task: &PlanTask, ending: Ending, result: &TaskResult, faults: &mut VerifyFaults) {
    if result.conclusion.is_empty() {
        let why = "`conclusion` is empty: later tasks read it, so say in a few sentences what came out";
        faults.add(Check::Completeness, why.to_owned());
    }
    if ending == Ending::Done && result.unanswered.iter().any(|open| open.trim() == task.goal.trim()) {
        faults.add(Check::Completeness, "the task itself is named as unanswered".to_owned());
    }
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
