//! Reviews of the report's draft, as text.

use muster_shared::flow::{DraftReview, DraftVerdict};
use muster_shared::run::{DraftReviewEnd, RunEvent, RunState};

use super::figures;

/// Longest remark in a list, in characters.
const LONGEST: usize = 300;

/// An event about a review as a line of the timeline, with the remarks below it.
pub(super) fn event(event: &RunEvent, brief: impl Fn(&str) -> String) -> String {
    match event {
        RunEvent::DraftReviewBegun { number, .. } => {
            format!("the draft of the report is reviewed before it is delivered (review {number})")
        }
        RunEvent::DraftReviewed { number, review, revise } => {
            let lines = review.lines().into_iter().map(|line| format!("\n  remark: {}", brief(&line)));
            format!("review {number} of the draft: {}{}", verdict(review, *revise), lines.collect::<String>())
        }
        RunEvent::DraftReviewMissed { number, reason } => {
            format!("review {number} of the draft gave nothing: {}; the draft is delivered", brief(reason))
        }
        other => other.name().to_owned(),
    }
}

const fn verdict(review: &DraftReview, revise: bool) -> &'static str {
    match (review.verdict, revise) {
        (_, true) => "it is written again",
        (DraftVerdict::Accept, false) => "accepted",
        (DraftVerdict::Revise, false) => "changes are wanted, and it is delivered as it is",
    }
}

/// What reviewers said of the drafts of a run; empty when nobody reviewed any.
pub(super) fn section(state: &RunState) -> String {
    let mut lines = Vec::new();
    for (number, review) in (1..).zip(&state.drafts.reviews) {
        match &review.end {
            None => lines.push(format!("{number}. is going on")),
            Some(DraftReviewEnd::Missed(reason)) => {
                lines.push(format!("{number}. gave nothing: {}", figures::one_line(reason, LONGEST)));
            }
            Some(DraftReviewEnd::Reviewed { review, revise }) => {
                lines.push(format!("{number}. {}", verdict(review, *revise)));
                let remarks = review.lines().into_iter();
                lines.extend(remarks.map(|line| format!("   - {}", figures::one_line(&line, LONGEST))));
            }
        }
    }
    lines.join("\n")
}
