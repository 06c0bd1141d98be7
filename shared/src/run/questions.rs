//! What people are asked about a run, and what they answer.

use std::collections::BTreeSet;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::state::RunState;
use super::task_state::TaskState;
use crate::flow::{About, OnTimeout, Question, Reply, TaskStatus};
use crate::ids::{QuestionId, RunId, TaskId, TaskIndex};
use crate::time::Millis;

/// A question of the run, answered or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct QuestionState {
    /// What its answer is for.
    pub about: About,
    /// The question.
    pub question: Question,
    /// When it was asked.
    pub asked_at: Millis,
    /// Who is asked now; whoever looks after the run when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_of: Option<String>,
    /// How many people were asked before who did not answer.
    #[serde(default)]
    pub passed_on: u32,
    /// When the time for the answer is up.
    pub expires: Millis,
    /// What follows then.
    pub on_timeout: OnTimeout,
    /// Who approved so far, where more than one has to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<String>,
    /// Feedback to an approval, oldest first. The question stays open until a person makes a choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<String>,
    /// How it ended; nothing while it waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<QuestionEnd>,
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuestionEnd {
    /// It was answered, or its default was taken.
    Answered(Reply),
    /// Nobody needed the answer any more; why.
    Withdrawn(String),
}

impl QuestionState {
    /// Whether somebody approved already.
    #[must_use]
    pub fn is_approved_by(&self, name: &str) -> bool {
        self.approvals.iter().any(|one| one == name)
    }

    /// Whether it waits for an answer.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.end.is_none()
    }
}

impl RunState {
    /// The questions that wait for an answer.
    pub fn open_questions(&self) -> impl Iterator<Item = (QuestionId, &QuestionState)> {
        self.questions.iter().filter(|(_, state)| state.is_open()).map(|(id, state)| (*id, state))
    }

    /// Whoever approved the plan that is under review approved another one than it is now.
    pub(super) fn take_approvals_back(&mut self) {
        let asked = self.questions.values_mut().filter(|asked| asked.is_open() && asked.about == About::Plan);
        asked.for_each(|asked| asked.approvals.clear());
    }

    /// Whether nothing more is offered until somebody has answered.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.open_questions().any(|(_, state)| state.about.holds_the_run())
    }

    /// Whether it can only continue when a person has answered: nothing is in progress, and a question is open here or in a
    /// child run. For people only.
    #[must_use]
    pub fn waits_for_person(&self) -> bool {
        let is_above = |index: &TaskIndex| {
            self.plan.as_ref().is_some_and(|plan| plan.tasks.contains_key(index) && !plan.is_leaf(index))
        };
        let works = |(id, task): (&TaskId, &TaskState)| {
            matches!(task.status, TaskStatus::Queued | TaskStatus::Processing)
                && !self.is_shared(id)
                && !id.as_leaf().is_some_and(is_above)
        };
        let is_asked = self.open_questions().next().is_some() || !self.asking_children.is_empty();
        !self.status.is_ended() && is_asked && (self.is_held() || !self.tasks.iter().any(works))
    }
}

/// Notes in each of these runs which of its child runs wait for a person. Returns the runs for which this is new. For people only.
pub fn note_waiting(runs: &mut [&mut RunState]) -> BTreeSet<RunId> {
    let mut changed = BTreeSet::new();
    loop {
        let asking: BTreeSet<RunId> =
            runs.iter().filter(|run| run.waits_for_person()).map(|run| run.id).collect();
        let before = changed.len();
        for run in runs.iter_mut() {
            let own = run.children.keys().filter(|child| asking.contains(child)).copied().collect();
            if run.asking_children != own {
                run.asking_children = own;
                changed.insert(run.id);
            }
        }
        // What changed in a run may change the one that it was begun for, and no other.
        if changed.len() == before {
            return changed;
        }
    }
}
