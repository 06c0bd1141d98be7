//! Reviews of the report's draft, as text.

use muster_shared::run::{DraftReviewEnd, RunState};

use super::figures;

/// Longest remark in a list, in characters.
const LONGEST: usize = 300;

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
                lines.push(format!("{number}. {}", review.followed_by(*revise)));
                let remarks = review.lines().into_iter();
                lines.extend(remarks.map(|line| format!("   - {}", figures::one_line(&line, LONGEST))));
            }
        }
    }
    lines.join("\n")
}
