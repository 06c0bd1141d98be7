//! What the model is asked apart from the conversation, each time with a strict schema, and what follows from its word:
//! whether it reasons in circles, whether a result holds, and the actions that are thought
//! rather than done. Pure.

mod wording;

use muster_shared::flow::{ModelCall, Note, Observation, ObservationStatus, SpinLevel, Step};
use muster_shared::text::first_line;
use serde_json::Value;

use super::decide::{ChosenAction, NextStep, StepContext, in_prose, tool_call};
use super::history::History;
use super::loop_detection::follow;
use super::parse::parse_whole_document;
use super::verify::{Verify, judged};
use crate::tools::actions;

pub use wording::ask;

/// Longest thought, and longest observation, that is shown with a question, in characters.
const SHOWN: usize = 600;

/// What the model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsultQuestion {
    /// Whether the same reasoning is behind the last steps.
    Reasoning,
    /// Whether a result holds.
    Verify(Verify),
    /// What an action is about that is thought rather than done.
    Act,
    /// Whether a few words without any action decline the task.
    Declined,
}

/// A question in words.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsultRequest {
    /// Names its purpose in the record.
    pub purpose: &'static str,
    /// How to answer.
    pub system: String,
    /// The question itself.
    pub text: String,
    /// The form of the answer.
    pub schema: Value,
}

/// What is said in place of an answer that never came. Why it did not is in the log only: a replay is told the same.
pub const NO_ANSWER: &str = "the model did not answer";
/// How often a question is put before it counts as not answered.
pub const MAX_ASKED: usize = 2;

/// What calls that are in hand already said to a question; nothing when it is still to be put.
#[must_use]
pub fn said_before(calls: &[ModelCall], asked: &ConsultRequest) -> Option<Result<Value, String>> {
    let put: Vec<&ModelCall> =
        calls.iter().filter(|call| call.aside && call.template.name == asked.purpose).collect();
    let last = put.last()?;
    let said = parse_whole_document::<Value>(&last.answer, &asked.schema, last.cut);
    match said {
        Ok(said) => Some(Ok(said)),
        Err(failure) if put.len() >= MAX_ASKED => Some(Err(failure.to_string())),
        Err(_) => None,
    }
}

/// What follows from the model's word on what it was asked about this action, or from its silence.
#[must_use]
pub fn consulted(
    history: &History,
    mut chosen: ChosenAction,
    question: ConsultQuestion,
    said: Result<Value, String>,
    case: &StepContext<'_>,
) -> NextStep {
    match question {
        ConsultQuestion::Reasoning => match said {
            Ok(said) if said["same"] == true => {
                let why = said["why"].as_str().unwrap_or_default();
                let told = format!(
                    "Your last steps go by the same reasoning, and gave nothing new: {}. `{}` was not run. Take another \
                     approach, or submit.",
                    first_line(why, SHOWN),
                    chosen.action.name
                );
                follow(history, chosen, SpinLevel::SameReasoning, told, case)
            }
            // In doubt the model goes on: the limits hold all the same.
            _ => {
                chosen.notes.push(Note::Reconsidered);
                tool_call(chosen, case)
            }
        },
        ConsultQuestion::Verify(asked) => judged(history, chosen, asked, said, case),
        ConsultQuestion::Declined => {
            let declined = said.is_ok_and(|said| said["declined"] == true);
            in_prose(history, &chosen.thought.text, declined, case)
        }
        ConsultQuestion::Act => {
            let (status, content) = match said {
                Ok(said) => (ObservationStatus::Success, actions::in_words(&chosen.action, &said)),
                Err(why) => (
                    ObservationStatus::Error,
                    format!(
                        "`{}` gave nothing: {why}. Ask for less, or go on without it.",
                        chosen.action.name
                    ),
                ),
            };
            let observation = Observation { status, content, millis: 0, truncated: false, cached: None };
            NextStep::Observe { chosen, observation }
        }
    }
}

/// Whether the last steps look as if the same reasoning were behind them: nothing new was learnt, and the thoughts are
/// made of the same words. Only then the model is asked.
pub(super) fn reasons_alike(history: &History, chosen: &ChosenAction, case: &StepContext<'_>) -> bool {
    const AT_LEAST: usize = 2;
    let in_vain = history.in_vain();
    let settled =
        |step: &Step| step.notes.iter().any(|note| matches!(note, Note::Spin { .. } | Note::Reconsidered));
    case.has_model
        && case.limits.stale_after > 0
        && in_vain.len() >= AT_LEAST
        && !chosen.notes.contains(&Note::Reconsidered)
        && !in_vain.iter().rev().take(AT_LEAST).any(settled)
        && in_vain.iter().rev().take(AT_LEAST).all(|step| alike(&step.thought.text, &chosen.thought.text))
}

/// Whether two thoughts share most of their words.
fn alike(one: &str, other: &str) -> bool {
    const SHARED: f64 = 0.7;
    let words = |text: &str| -> std::collections::BTreeSet<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (one, other) = (words(one), words(other));
    let (shared, all) = (one.intersection(&other).count(), one.union(&other).count());
    #[expect(clippy::cast_precision_loss, reason = "a thought has few words")]
    let share = shared as f64 / all.max(1) as f64;
    all > 0 && share >= SHARED
}

#[cfg(test)]
#[path = "consult_tests.rs"]
mod tests;
