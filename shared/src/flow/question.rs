//! Questions to people, and their answers.

use std::fmt;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::form::CallForm;
use super::verdict::{self, Verdict};
use crate::ids::{QuestionId, TaskId, TaskIndex};

/// Longest text of a question or an answer, in bytes.
pub const MAX_QUESTION_BYTES: usize = 16 * 1024;

/// Most choices of one question.
pub const MAX_CHOICES: usize = 20;

/// What a person is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Question {
    /// The question itself.
    pub text: String,
    /// Why it is asked, and what hangs on it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Answers to choose from; any text will do when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// What is taken for the answer when nobody gives one in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Who is asked; whoever looks after the run when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Time for the answer, in milliseconds; that of the run's limits when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
    /// What follows when nobody answers in time; that of the run's limits when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
    /// What a call of a tool asks for, where it is such a question: only that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Box<CallForm>>,
}

impl Question {
    /// A question that any text answers.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The place of the choice that is meant by a text, if it is clear which: by its number, by its words, or by any wording of
    /// yes or no where these are to be chosen from.
    #[must_use]
    pub fn meant(&self, text: &str) -> Option<usize> {
        let number = text.trim().trim_start_matches('#').trim_end_matches(['.', ')', ':']);
        let by_number = number.parse::<usize>().ok().and_then(|n| self.choices.get(n.checked_sub(1)?));
        let same = |wanted: &str| {
            let mut found = self.choices.iter().filter(|choice| verdict::plain(choice) == wanted);
            found.next().filter(|_| found.next().is_none())
        };
        // `1890` for `1890 (1, 2)`: where results contradict each other, choices name who says so.
        let begins_so = |wanted: &str| {
            let begins = |choice: &&String| {
                let choice = verdict::plain(choice);
                choice.strip_prefix(wanted).is_some_and(|rest| rest.starts_with(' '))
            };
            let mut found = self.choices.iter().filter(begins);
            found.next().filter(|_| !wanted.is_empty() && found.next().is_none())
        };
        let wanted = verdict::plain(text);
        let by_words = || same(&wanted).or_else(|| begins_so(&wanted));
        let by_verdict = || match verdict::read(text) {
            Verdict::Yes => same("yes"),
            Verdict::No => same("no"),
            Verdict::Stop | Verdict::Change(_) | Verdict::Unclear => None,
        };
        let meant = by_number.or_else(by_words).or_else(by_verdict)?;
        self.choices.iter().position(|choice| choice == meant)
    }

    /// The answer that a text gives: one of the choices by its number or its very words where there are choices.
    ///
    /// # Errors
    /// What is wrong with it, and what to say instead.
    pub fn read_exactly(&self, text: &str) -> Result<String, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the answer is empty".to_owned());
        }
        if text.len() > MAX_QUESTION_BYTES {
            return Err(format!("the answer has {} bytes, {MAX_QUESTION_BYTES} is the most", text.len()));
        }
        if self.choices.is_empty() {
            return Ok(text.to_owned());
        }
        let by_number =
            text.parse::<usize>().ok().and_then(|number| self.choices.get(number.checked_sub(1)?));
        let by_words =
            || self.choices.iter().find(|choice| choice.trim().to_lowercase() == text.to_lowercase());
        by_number.or_else(by_words).cloned().ok_or_else(|| {
            let choices = (1..).zip(&self.choices).map(|(number, choice)| format!("{number}: {choice}"));
            format!("{text:?} is none of the choices ({})", choices.collect::<Vec<_>>().join("; "))
        })
    }
}

/// What a question is about, and so what its answer is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// A task waits for the answer: it is the observation of its step.
    Task(TaskId),
    /// Whether a task may make a call of a tool.
    Call(TaskId),
    /// What the goal means, before there is a plan.
    Goal,
    /// Whether the plan is to be carried out.
    Plan,
    /// Whether to go on after a task that is a chosen milestone.
    Milestone(TaskIndex),
    /// Whether to go on after a severe failure.
    Failure(TaskIndex),
    /// Whether a step of the run's blueprint may begin.
    Step(String),
    /// What holds where results contradict each other.
    Conflict(u32),
}

impl About {
    /// Whether it is a question of going on or not, which is approved or rejected.
    #[must_use]
    pub const fn is_approved(&self) -> bool {
        !matches!(self, Self::Task(_) | Self::Goal | Self::Conflict(_))
    }

    /// Whether nothing more is offered until it is answered.
    #[must_use]
    pub const fn holds_the_run(&self) -> bool {
        matches!(self, Self::Goal | Self::Plan | Self::Milestone(_) | Self::Failure(_))
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(task) => write!(f, "task {task}"),
            Self::Call(task) => write!(f, "a call of task {task}"),
            Self::Goal => f.write_str("the goal"),
            Self::Plan => f.write_str("the plan"),
            Self::Milestone(task) => write!(f, "milestone {task}"),
            Self::Failure(task) => write!(f, "the failure of {task}"),
            Self::Step(step) => write!(f, "step {step}"),
            Self::Conflict(id) => write!(f, "conflict {id}"),
        }
    }
}

/// What follows when nobody answers in time.
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
pub enum OnTimeout {
    /// Go on with the question's default; without one, it counts as not answered.
    #[default]
    Proceed,
    /// Stop the run.
    Abort,
    /// Ask the next person of the run's limits; go on with the default after the last.
    AskAnother,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Reply {
    /// The question.
    pub question: QuestionId,
    /// What was answered; nothing when nobody did and there was no default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Who answered; nobody when the default was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}
