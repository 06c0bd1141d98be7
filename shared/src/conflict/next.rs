//! What comes next in settling a conflict: the steps of the policy, one after the other.

use std::collections::BTreeMap;

use super::compare::Tolerance;
use super::side::Side;
use super::verdict::{ConflictVerdict, as_said, by_authority, by_confidence, by_majority, by_methods};
use crate::flow::{ClaimValue, ConflictStep};
use crate::ids::TaskIndex;

/// How a side came to its value, as it says when it is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// What it claims now; nothing when it stays silent on that.
    pub value: Option<ClaimValue>,
    /// How it came to it.
    pub method: String,
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// What the sides say of their methods.
    Words(BTreeMap<TaskIndex, Word>),
    /// What whoever was asked says holds, and why; nothing when no answer came of it.
    Value(Option<(ClaimValue, String)>),
}

/// What is known of a conflict besides its sides.
#[derive(Debug, Clone, Copy)]
pub struct ConflictFacts<'a> {
    /// The steps, in order.
    pub policy: &'a [ConflictStep],
    /// Largest difference of numbers that agree.
    pub tolerance: Tolerance,
    /// Which sources count more, best first.
    pub authority: &'a [String],
    /// What came of the steps that ask somebody.
    pub answers: &'a BTreeMap<ConflictStep, Answer>,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Somebody is to be asked.
    Ask(ConflictStep),
    /// It is settled.
    Settled(ConflictVerdict),
    /// No step of the policy settles it.
    Unsettled,
}

/// The next step of the policy, or what follows from those that were taken. The order of the sides does not matter.
#[must_use]
pub fn next(sides: &[Side], known: &ConflictFacts<'_>) -> Next {
    for step in known.policy {
        match take(sides, *step, known) {
            StepResult::Verdict(verdict) => return Next::Settled(verdict),
            StepResult::ToAsk => return Next::Ask(*step),
            StepResult::Nothing => {}
        }
    }
    Next::Unsettled
}

/// Whether all sides are of one task, which found them in different documents: it has looked at both already.
fn are_of_one(sides: &[Side]) -> bool {
    sides.iter().all(|side| sides.first().is_some_and(|first| first.task == side.task))
}

enum StepResult {
    Verdict(ConflictVerdict),
    ToAsk,
    Nothing,
}

fn take(sides: &[Side], step: ConflictStep, known: &ConflictFacts<'_>) -> StepResult {
    let tolerance = known.tolerance;
    let verdict = match step {
        ConflictStep::Majority => by_majority(sides, tolerance),
        ConflictStep::Confidence => by_confidence(sides, tolerance),
        ConflictStep::Authority => by_authority(sides, known.authority, tolerance),
        ConflictStep::Methods => match known.answers.get(&step) {
            Some(Answer::Words(words)) => by_methods(sides, words, tolerance),
            Some(Answer::Value(_)) => None,
            None if sides.iter().all(|side| !side.claim.method.is_empty()) || are_of_one(sides) => None,
            None => return StepResult::ToAsk,
        },
        ConflictStep::Arbiter | ConflictStep::Verify | ConflictStep::Person => match known.answers.get(&step)
        {
            Some(Answer::Value(Some((value, why)))) => as_said(sides, value, (step, why.clone()), tolerance),
            Some(Answer::Value(None) | Answer::Words(_)) => None,
            None => return StepResult::ToAsk,
        },
    };
    verdict.map_or(StepResult::Nothing, StepResult::Verdict)
}
