//! Questions to people, and their answers.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::form::CallForm;
use super::people::People;
use crate::ids::{QuestionId, TaskId, TaskIndex};

/// Longest text of a question or an answer, in bytes.
pub const MAX_QUESTION_BYTES: usize = 16 * 1024;

/// Most choices of one question.
pub const MAX_CHOICES: usize = 20;

/// Choice of an approval: continue.
pub const APPROVE: &str = "approve";

/// Choice of an approval: do not continue.
pub const REJECT: &str = "reject";

/// Choice of an approval: continue with the edited plan or the edited arguments.
pub const EDIT: &str = "edit";

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

    /// Reads an answer. If the question has choices, the answer is one of them: by its number, by its text, or by a text that
    /// only one choice starts with. Case does not matter.
    ///
    /// # Errors
    /// The fault of the answer, with the choices.
    pub fn read(&self, text: &str) -> Result<String, String> {
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
        let wanted = text.to_lowercase();
        let same = |choice: &&String| choice.trim().to_lowercase() == wanted;
        // `1890` means `1890 (1, 2)`: in a conflict, each choice names the tasks that gave the value.
        let starts = |choice: &&String| choice.trim().to_lowercase().starts_with(&format!("{wanted} "));
        let by_text = || self.choices.iter().find(same);
        let by_start = || {
            let mut found = self.choices.iter().filter(starts);
            found.next().filter(|_| found.next().is_none())
        };
        by_number.or_else(by_text).or_else(by_start).cloned().ok_or_else(|| {
            let choices = (1..).zip(&self.choices).map(|(number, choice)| format!("{number}: {choice}"));
            format!("{text:?} is none of the choices ({})", choices.collect::<Vec<_>>().join("; "))
        })
    }
}

/// What a question is about, and so what its answer is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// A task waits for the answer: it is the observation of its step.
    #[strum(to_string = "task {0}")]
    Task(TaskId),
    /// Whether a task may make a call of a tool.
    #[strum(to_string = "a call of task {0}")]
    Call(TaskId),
    /// What the goal means, before there is a plan.
    #[strum(to_string = "the goal")]
    Goal,
    /// Whether the plan is to be carried out.
    #[strum(to_string = "the plan")]
    Plan,
    /// Whether to go on after a task that is a chosen milestone.
    #[strum(to_string = "milestone {0}")]
    Milestone(TaskIndex),
    /// Whether to go on after a severe failure.
    #[strum(to_string = "the failure of {0}")]
    Failure(TaskIndex),
    /// Whether a step of the run's blueprint may begin.
    #[strum(to_string = "step {0}")]
    Step(String),
    /// What holds where results contradict each other.
    #[strum(to_string = "conflict {0}")]
    Conflict(u32),
}

impl About {
    /// Whether it is a question of going on or not, which is approved or rejected.
    #[must_use]
    pub const fn is_approved(&self) -> bool {
        !matches!(self, Self::Task(_) | Self::Goal | Self::Conflict(_))
    }

    /// Choices of an approval, in the order of their numbers; none if it is not an approval. A plan and the arguments of a call
    /// can also be edited.
    #[must_use]
    pub fn approval_choices(&self) -> Vec<String> {
        let all = [APPROVE, REJECT, EDIT];
        let count = match self {
            Self::Plan | Self::Call(_) => 3,
            Self::Milestone(_) | Self::Failure(_) | Self::Step(_) => 2,
            Self::Task(_) | Self::Goal | Self::Conflict(_) => 0,
        };
        all.iter().take(count).map(|&choice| choice.to_owned()).collect()
    }

    /// Whether the run ends if no person approves in time. A call is then not made, a step of a blueprint not started, and after
    /// too many failures no further task is started.
    #[must_use]
    pub fn needs_approval_to_continue(&self, people: &People) -> bool {
        match self {
            Self::Plan | Self::Milestone(_) => true,
            Self::Failure(_) | Self::Step(_) => people.has_policy(),
            Self::Task(_) | Self::Call(_) | Self::Goal | Self::Conflict(_) => false,
        }
    }

    /// Whether nothing more is offered until it is answered.
    #[must_use]
    pub const fn holds_the_run(&self) -> bool {
        matches!(self, Self::Goal | Self::Plan | Self::Milestone(_) | Self::Failure(_))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_choice_by_number_text_or_unique_start() {
        let choices = ["1890 (1, 2)", "1900 (3)", "yes", "Yes, later"].map(str::to_owned).to_vec();
        let question = Question { choices: choices.clone(), ..Question::new("?") };
        let table = [("1890", Some(0)), ("2", Some(1)), (" YES ", Some(2)), ("yes, later", Some(3))];
        let none = ["19", "ye", "sure", "да", "off", "0", "5", "", "no"].map(|text| (text, None));
        for (text, expected) in table.into_iter().chain(none) {
            assert_eq!(question.read(text).ok(), expected.map(|at: usize| choices[at].clone()), "{text}");
        }
        assert_eq!(Question::new("?").read(" any text "), Ok("any text".to_owned()));
    }
}
