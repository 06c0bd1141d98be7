//! What rules about language are asked, and how a question is found again in the record.

use std::collections::BTreeMap;

use muster_shared::conflict::{Near, Side, Tolerance};
use muster_shared::flow::{Claim, ClaimValue, Goal, ReadingRule, Specialty, TaskResult, View};
use muster_shared::ids::TaskIndex;
use muster_shared::plan::coverage::Contribution;
use muster_shared::run::ConflictState;

/// A question to a rule about language.
#[derive(Debug, Clone, Copy)]
pub enum ReadingQuestion<'a> {
    /// Is the goal small enough to be done without a plan, and of how many words is it?
    SmallGoal(&'a Goal),
    /// Why is the goal to be planned at once instead of being begun as one task?
    Separable {
        /// The goal.
        goal: &'a Goal,
        /// Who is there that users defined.
        specialists: &'a [Specialty],
    },
    /// Which parts of the goal does none of these texts speak of?
    Uncovered {
        /// The goal.
        goal: &'a str,
        /// What the plan says.
        texts: &'a [&'a str],
    },
    /// Which parts of the goal does a report not answer?
    Unanswered {
        /// The goal.
        goal: &'a str,
        /// What the report says.
        told: &'a [&'a str],
        /// What the tasks gave.
        contributions: &'a [Contribution<'a>],
    },
    /// What is the first of several parts of the goal?
    FirstPart {
        /// The goal.
        goal: &'a str,
    },
    /// What of the expected output does the result of a task not hold?
    Unmet {
        /// The task.
        task: &'a TaskIndex,
        /// What is expected.
        expected: &'a str,
        /// What was given.
        result: &'a TaskResult,
    },
    /// Which of these claims contradict each other?
    Contradictions {
        /// The claims.
        sides: &'a [Side],
        /// The conflicts that were found before.
        known: &'a BTreeMap<u32, ConflictState>,
        /// Which contradictions count.
        counts: Counts,
        /// How claims are read.
        tolerance: Tolerance,
    },
    /// Which of these claims may speak of the same in other words?
    Near {
        /// The claims.
        sides: &'a [Side],
        /// The pairs that a model was asked about before.
        asked: &'a [Near],
        /// How claims are read.
        tolerance: Tolerance,
    },
    /// Do two texts name one subject?
    SameSubject {
        /// One of them.
        one: &'a str,
        /// The other.
        other: &'a str,
    },
    /// Does a claim agree with a value?
    SameValue {
        /// Whose claim.
        side: &'a Side,
        /// The value.
        value: &'a ClaimValue,
        /// How claims are read.
        tolerance: Tolerance,
    },
    /// Does a claim contradict a value?
    OtherValue {
        /// The claim.
        claim: &'a Claim,
        /// The value.
        value: &'a ClaimValue,
        /// How claims are read.
        tolerance: Tolerance,
    },
    /// What does a text claim?
    Value {
        /// The text.
        text: &'a str,
    },
    /// Who of a group is of one mind, where not all are?
    Camps {
        /// What its members say.
        views: &'a [View],
        /// How claims are read.
        tolerance: Tolerance,
    },
    /// Is a word spoken with "an"?
    Article {
        /// The word.
        word: &'a str,
    },
    /// Which of these tools is meant by a name that is none?
    Tool {
        /// The name.
        name: &'a str,
        /// The tools.
        known: &'a [String],
    },
    /// How many telling words do results share with what is asked?
    SharedWords {
        /// What is asked.
        asked: &'a str,
        /// The results, by task.
        results: &'a [(&'a TaskIndex, String)],
    },
}

/// Which contradictions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Contradictions that were not found before between the same attempts.
    New,
    /// All contradictions.
    All,
}

impl ReadingQuestion<'_> {
    /// The rule that is asked.
    #[must_use]
    pub const fn rule(&self) -> ReadingRule {
        match self {
            Self::SmallGoal(_) => ReadingRule::SmallGoal,
            Self::Separable { .. } => ReadingRule::Separable,
            Self::Uncovered { .. } => ReadingRule::Uncovered,
            Self::Unanswered { .. } => ReadingRule::Unanswered,
            Self::FirstPart { .. } => ReadingRule::FirstPart,
            Self::Unmet { .. } => ReadingRule::Unmet,
            Self::Contradictions { .. } => ReadingRule::Contradictions,
            Self::Near { .. } => ReadingRule::Near,
            Self::SameSubject { .. } => ReadingRule::SameSubject,
            Self::SameValue { .. } => ReadingRule::SameValue,
            Self::OtherValue { .. } => ReadingRule::OtherValue,
            Self::Value { .. } => ReadingRule::Value,
            Self::Camps { .. } => ReadingRule::Camps,
            Self::Article { .. } => ReadingRule::Article,
            Self::Tool { .. } => ReadingRule::Tool,
            Self::SharedWords { .. } => ReadingRule::SharedWords,
        }
    }

    /// By what a question is told from others to the same rule in one decision. It stands in records, so that it never
    /// changes. Where a question can be told by who said what, it does not depend on how that is put together.
    #[must_use]
    pub fn digest(&self) -> u32 {
        let mut digest = Digest::default();
        match self {
            Self::SmallGoal(goal) | Self::Separable { goal, .. } => digest.add(&goal.text),
            Self::Uncovered { goal, .. } | Self::Unanswered { goal, .. } | Self::FirstPart { goal } => {
                digest.add(goal);
            }
            Self::Unmet { task, result, .. } => {
                digest.add(&task.to_string());
                digest.add(&result.conclusion);
            }
            Self::Value { text } => digest.add(text),
            Self::Contradictions { sides, counts, .. } => {
                digest.add(match counts {
                    Counts::New => "new",
                    Counts::All => "known",
                });
                sides.iter().for_each(|side| digest.add_side(side));
            }
            Self::Near { sides, .. } => sides.iter().for_each(|side| digest.add_side(side)),
            Self::SameSubject { one, other } => {
                digest.add(one);
                digest.add(other);
            }
            Self::SameValue { side, value, .. } => digest.add_claim(&side.claim, value),
            Self::OtherValue { claim, value, .. } => digest.add_claim(claim, value),
            Self::Camps { views, .. } => views.iter().for_each(|view| digest.add_view(view)),
            Self::Article { word } => digest.add(word),
            Self::Tool { name, .. } => digest.add(name),
            Self::SharedWords { asked, results } => {
                digest.add(asked);
                results.iter().for_each(|(task, _)| digest.add(&task.to_string()));
            }
        }
        digest.0
    }
}

/// FNV-1a in 32 bits.
#[derive(Debug, Clone, Copy)]
struct Digest(u32);

impl Default for Digest {
    fn default() -> Self {
        Self(0x811c_9dc5)
    }
}

impl Digest {
    fn add(&mut self, text: &str) {
        // No text holds this byte, so that it parts one from the next.
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }

    fn add_side(&mut self, side: &Side) {
        self.add(&side.task.to_string());
        self.add(&side.generation.0.to_string());
    }

    fn add_claim(&mut self, claim: &Claim, value: &ClaimValue) {
        self.add(&claim.subject);
        self.add(&claim.value.to_string());
        self.add(&value.to_string());
    }

    fn add_view(&mut self, view: &View) {
        self.add(&view.member.to_string());
        self.add(&view.conclusion);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records hold digests: another one finds nothing in them.
    #[test]
    fn digests_are_what_they_were() {
        let same = |one, other| ReadingQuestion::SameSubject { one, other };
        assert_eq!(ReadingQuestion::Value { text: "yes" }.digest(), 866_196_925);
        assert_ne!(same("ab", "c").digest(), same("a", "bc").digest());
    }
}
