//! What follows from numbers of a report that come from no result. Pure.

use muster_shared::flow::{Check, Fault, Note, Product, Step};

use super::super::decide::StepContext;
use super::super::history::History;
use super::super::lookup;
use super::may_be_mended;
use crate::roles::Submission;

/// What stands before them.
const FROM_NO_RESULT: &str = "numbers that stand in no result";

/// Numbers of a report that come from no result. Rules take theirs from nowhere else.
pub(super) fn unknown(submission: &Submission, case: &StepContext<'_>) -> Vec<String> {
    match &submission.product {
        Some(Product::Report(report)) if case.has_model => lookup::not_from_results(report, case.offer),
        _ => Vec::new(),
    }
}

/// Whoever wrote a report is told once of numbers that come from no result.
pub(super) fn may_ask_about_numbers(history: &History, case: &StepContext<'_>) -> bool {
    let told = |step: &Step| {
        step.notes.iter().any(|note| {
            matches!(note, Note::Verified { faults, .. } if faults.iter().any(|fault| fault.why.starts_with(FROM_NO_RESULT)))
        })
    };
    may_be_mended(history, case) && !history.steps().iter().any(told)
}

pub(super) fn fault_of_numbers(numbers: &[String]) -> Option<Fault> {
    let listed: Vec<String> = numbers.iter().map(|number| format!("{number:?}")).collect();
    let why = format!(
        "{FROM_NO_RESULT}: {}. Take the number as a result gives it, say how it follows, or leave it out",
        listed.join("; ")
    );
    (!numbers.is_empty()).then_some(Fault { check: Check::Correctness, why })
}

pub(super) fn with_numbers_marked(submission: Submission, numbers: &[String]) -> Submission {
    let Submission { ending, reason, product } = submission;
    let product = product.map(|product| match product {
        Product::Report(report) => Product::Report(lookup::marked(report, numbers)),
        other => other,
    });
    Submission { ending, reason, product }
}
