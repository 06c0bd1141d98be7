//! What became of the drafts of a run's report, where a reviewer looks at them before one is delivered.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::{DraftReview, Report};
use crate::time::Millis;

/// What became of the drafts of a run's report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct DraftHistory {
    /// The reviews, in order: the first one has the number 1.
    pub reviews: Vec<ReviewOfDraft>,
    /// How many of them were of drafts that came to nothing, because what they were made of changed.
    pub before: usize,
    /// The newest draft: delivered when there is no better one. Nothing before the first, and while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Box<Report>>,
}

/// One review of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ReviewOfDraft {
    /// Until when it is waited for.
    pub until: Millis,
    /// How it ended; nothing while it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<DraftReviewEnd>,
}

/// How the review of a draft ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DraftReviewEnd {
    /// The reviewer said something.
    Reviewed {
        /// What.
        review: DraftReview,
        /// Whether the report is written again.
        revise: bool,
    },
    /// It did not take place, or nothing came of it; why.
    Missed(String),
}

impl DraftHistory {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The review that goes on, and its number.
    #[must_use]
    pub fn open(&self) -> Option<(u32, &ReviewOfDraft)> {
        let last = self.reviews.last().filter(|review| review.end.is_none())?;
        Some((self.number(), last))
    }

    /// The number of the newest review; 0 before the first.
    #[must_use]
    pub fn number(&self) -> u32 {
        u32::try_from(self.reviews.len()).unwrap_or(u32::MAX)
    }

    /// The reviews of the report as it is being written now.
    #[must_use]
    pub fn current(&self) -> &[ReviewOfDraft] {
        self.reviews.get(self.before..).unwrap_or_default()
    }

    /// How often the report was written again upon remarks.
    #[must_use]
    pub fn rounds(&self) -> usize {
        let revised = |review: &&ReviewOfDraft| {
            matches!(review.end, Some(DraftReviewEnd::Reviewed { revise: true, .. }))
        };
        self.current().iter().filter(revised).count()
    }

    /// What was said last of the report as it is being written now.
    #[must_use]
    pub fn last_said(&self) -> Option<&DraftReview> {
        self.current().iter().rev().find_map(|review| match review.end.as_ref()? {
            DraftReviewEnd::Reviewed { review, .. } => Some(review),
            DraftReviewEnd::Missed(_) => None,
        })
    }
}
