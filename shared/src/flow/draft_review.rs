//! The review of a report's draft before it is delivered (O10).

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether somebody other than the writer looks at a report before it is delivered.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DraftReviewPolicy {
    /// The report is delivered as it was written.
    #[default]
    Off,
    /// A reviewer reads the draft and says what is wrong with it.
    On,
}

/// What a reviewer says of a draft.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct DraftReview {
    /// Whether the draft may be delivered as it is.
    pub verdict: DraftVerdict,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<DraftRemark>,
    /// Parts of the goal that it does not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<String>,
    /// Claims of it that the results do not support.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<String>,
}

/// Whether a draft may be delivered as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DraftVerdict {
    /// It may.
    #[default]
    Accept,
    /// It is to be written again.
    Revise,
}

/// One thing that is wrong with a draft.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct DraftRemark {
    /// Where: a heading, or the first words of a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// What is wrong there.
    pub text: String,
}

impl DraftReview {
    /// Most items of each kind that are kept.
    pub const MOST: usize = 20;
    /// Longest of them, in characters.
    pub const LONGEST: usize = 500;

    /// Whether the draft is to be written again, and it is said why.
    #[must_use]
    pub fn asks_for_changes(&self) -> bool {
        self.verdict == DraftVerdict::Revise && !self.lines().is_empty()
    }

    /// What follows from it, in words.
    #[must_use]
    pub const fn followed_by(&self, revise: bool) -> &'static str {
        match (self.verdict, revise) {
            (_, true) => "it is written again",
            (DraftVerdict::Accept, false) => "accepted",
            (DraftVerdict::Revise, false) => "changes are wanted, and it is delivered as it is",
        }
    }

    /// All that is said, one line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let remarks = self.remarks.iter().map(DraftRemark::line);
        let unanswered = self.unanswered.iter().map(|part| format!("not answered: {part}"));
        let unsupported =
            self.unsupported.iter().map(|claim| format!("not supported by the results: {claim}"));
        remarks.chain(unanswered).chain(unsupported).filter(|line| !line.is_empty()).collect()
    }

    /// The same with no more, and nothing longer, than is kept.
    #[must_use]
    pub fn bounded(self) -> Self {
        let texts = |all: Vec<String>| all.into_iter().take(Self::MOST).map(|text| cut(&text)).collect();
        let remark = |remark: DraftRemark| DraftRemark { place: cut(&remark.place), text: cut(&remark.text) };
        Self {
            verdict: self.verdict,
            remarks: self.remarks.into_iter().take(Self::MOST).map(remark).collect(),
            unanswered: texts(self.unanswered),
            unsupported: texts(self.unsupported),
        }
    }
}

impl DraftRemark {
    /// As a line.
    #[must_use]
    pub fn line(&self) -> String {
        if self.place.is_empty() { self.text.clone() } else { format!("{}: {}", self.place, self.text) }
    }
}

/// What a writer is told that writes a draft again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Revision {
    /// The draft as it was, without what is added to reports by rule.
    pub draft: String,
    /// What the reviewer said of it.
    pub review: DraftReview,
}

fn cut(text: &str) -> String {
    text.chars().take(DraftReview::LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_asked_for_only_with_reasons() {
        let remark = |text: &str| vec![DraftRemark { place: String::new(), text: text.into() }];
        for (verdict, remarks, unanswered, wanted) in [
            (DraftVerdict::Accept, remark("dull"), Vec::new(), false),
            (DraftVerdict::Revise, Vec::new(), Vec::new(), false),
            (DraftVerdict::Revise, remark(""), Vec::new(), false),
            (DraftVerdict::Revise, remark("wrong"), Vec::new(), true),
            (DraftVerdict::Revise, Vec::new(), vec!["who".to_owned()], true),
        ] {
            let review = DraftReview { verdict, remarks, unanswered, unsupported: Vec::new() };
            assert_eq!(review.asks_for_changes(), wanted, "{review:?}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let long = "é".repeat(2_000);
        let review = DraftReview {
            verdict: DraftVerdict::Revise,
            remarks: vec![DraftRemark { place: long.clone(), text: long.clone() }; 50],
            unanswered: vec![long.clone(); 50],
            unsupported: vec![long; 50],
        };
        let kept = review.bounded();
        assert_eq!(kept.lines().len(), 3 * DraftReview::MOST);
        assert!(kept.lines().iter().all(|line| line.chars().count() <= 2 * DraftReview::LONGEST + 40));
    }
}
