//! The state of one task of a run.

use std::sync::Arc;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::responses::Answers;
use crate::flow::{
    Answered, Auction, Outcome, Reflection, RunLimits, TaskResult, TaskStatus, TaskTrial, Wait,
};
use crate::ids::{AgentId, Attempt, Generation, Queue, RunId, Seq, TaskIndex};
use crate::time::Millis;

/// The state of one task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskState {
    /// Its state.
    pub status: TaskStatus,
    /// The newest offer of it; 0 before the first.
    pub generation: Generation,
    /// Where the newest offer waits.
    pub queue: Option<Queue>,
    /// When the newest offer was decided.
    pub offered_at: Option<Millis>,
    /// When the newest offer's time is up.
    pub deadline: Option<Millis>,
    /// Who works on it.
    pub agent: Option<AgentId>,
    /// Which try of the newest generation.
    pub attempt: Attempt,
    /// Where the acknowledgement of the newest try goes. Kept when that try is lost.
    pub ack: Option<String>,
    /// The last step of the newest generation that a decision knows of.
    pub last_step: u32,
    /// Agents that were lost with the newest generation since that step.
    pub deaths: Vec<Death>,
    /// Who had the newest generation and was lost last. What others wrote before that was written while it had the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// How it ended; kept of the newest generation that ended.
    pub outcome: Option<Arc<Outcome>>,
    /// Result before it was opened again, if its agent is shown that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<TaskResult>>,
    /// Why its earlier generations failed, or why it was skipped, blocked or aborted.
    pub reasons: Vec<String>,
    /// How many generations failed since it was planned or reopened.
    pub failures: u32,
    /// The first of the earlier generations whose steps the next one goes on from; every one since belongs to it.
    pub continues: Option<Generation>,
    /// What it waits for, while its state says that it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// What came of what it waited for last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<Box<Answered>>,
    /// Who ended it, with the outcome that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<AgentId>,
    /// Agents that it should rather not go to again, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoid: Vec<Avoided>,
    /// Whether the newest offer is to be done by an agent that has nothing else in hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// Whether it was a person who left it out, when it was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped_by_person: bool,
    /// What was learnt from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reflection: Option<Box<Reflection>>,
    /// The task that it was handed over by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handed_over_by: Option<TaskIndex>,
    /// Its newest auction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auction: Option<Box<Auction>>,
    /// How its failures were answered since it was last opened.
    #[serde(default, skip_serializing_if = "Answers::is_empty")]
    pub answers: Answers,
    /// The trial that it takes part in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<Box<TaskTrial>>,
}

impl TaskState {
    /// Most agents that are remembered as not to be asked again.
    pub const MOST_AVOIDED: usize = 16;

    /// Remembers that the task should rather not go to this agent again, and why. Of many, the latest are kept.
    pub fn avoid(&mut self, agent: AgentId, reason: &str) {
        self.keep_from(Avoided { agent, reason: reason.to_owned(), idle: false });
    }

    /// The same of an agent that failed the task, or did not start it: the task waits for another agent, even if that one
    /// is busy.
    pub fn avoid_idle(&mut self, agent: AgentId, reason: &str) {
        self.keep_from(Avoided { agent, reason: reason.to_owned(), idle: true });
    }

    /// Counts a try that failed.
    pub(super) fn note_failure(&mut self, reason: &str) {
        self.failures = self.failures.saturating_add(1);
        self.reasons.push(reason.to_owned());
    }

    fn keep_from(&mut self, avoided: Avoided) {
        self.avoid.retain(|known| known.agent != avoided.agent);
        if self.avoid.len() >= Self::MOST_AVOIDED {
            self.avoid.remove(0);
        }
        self.avoid.push(avoided);
    }

    /// Whether agents died of it so often that it is to be tried alone: some of them had other tasks in hand, and only
    /// then is it certain which of all it was.
    #[must_use]
    pub fn is_suspect(&self, limits: &RunLimits) -> bool {
        let enough = usize::try_from(limits.max_deaths.saturating_sub(1).max(1)).unwrap_or(usize::MAX);
        limits.max_deaths > 0 && self.deaths.len() >= enough && self.deaths.iter().any(Death::had_company)
    }

    /// Whether it is certain that agents die of it: as many died as may, and the last of them, or all but one, had nothing
    /// else in hand. Where it cannot be tried alone, twice as many are proof enough.
    #[must_use]
    pub fn is_deadly(&self, limits: &RunLimits) -> bool {
        let most = usize::try_from(limits.max_deaths).unwrap_or(usize::MAX);
        let alone = |death: &Death| !death.had_company();
        let count = self.deaths.iter().filter(|death| alone(death)).count();
        let proven = self.deaths.last().is_some_and(alone)
            || count >= self.deaths.len().saturating_sub(1).max(1)
            || self.deaths.len() >= most.saturating_mul(2);
        most > 0 && self.deaths.len() >= most && proven
    }

    /// Whether it waits for somebody who has nothing else in hand and was not offered so yet.
    #[must_use]
    pub fn is_to_be_alone(&self, limits: &RunLimits) -> bool {
        let handed_on = self.status == TaskStatus::Queued && self.attempt > Attempt(0);
        handed_on && !self.alone && self.is_suspect(limits)
    }

    /// Puts it down until something is there.
    pub fn wait(&mut self, waiting: Waiting) {
        self.status = TaskStatus::Waiting;
        self.waiting = Some(waiting);
    }

    /// Ends its wait, if it waits, and gives what it waited for.
    pub fn end_wait(&mut self) -> Option<Waiting> {
        if self.status == TaskStatus::Waiting {
            self.status = TaskStatus::Created;
        }
        self.waiting.take()
    }

    /// Opens it again, from its beginning.
    pub fn begin_anew(&mut self) {
        self.end_wait();
        self.status = TaskStatus::Created;
        self.agent = None;
        self.outcome = None;
        self.continues = None;
        self.failures = 0;
    }

    /// Whether it was offered or has ended, so that there is something to do again. A suspended task was.
    #[must_use]
    pub const fn was_begun(&self) -> bool {
        match self.status {
            TaskStatus::Split => false,
            TaskStatus::Created => self.generation.0 > 0,
            _ => true,
        }
    }

    /// Forgets what was tried for it: that does not count when it is done again from its beginning.
    pub fn forget_answers(&mut self) {
        self.answers = Answers::default();
    }

    /// It is in work from now on, and its members do it.
    pub fn begin_with_members(&mut self, generation: Generation, now: Millis) {
        self.status = TaskStatus::Processing;
        self.generation = generation;
        self.queue = None;
        self.offered_at = Some(now);
        self.deadline = None;
        self.agent = None;
        self.attempt = Attempt(0);
        self.ack = None;
        self.last_step = 0;
        self.deaths.clear();
    }

    /// Its state as the plan sees it: one that waits has begun and is not to be offered.
    #[must_use]
    pub const fn status_in_plan(&self) -> TaskStatus {
        match self.status {
            TaskStatus::Waiting => TaskStatus::Processing,
            status @ (TaskStatus::Created
            | TaskStatus::Queued
            | TaskStatus::Processing
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Aborted
            | TaskStatus::Skipped
            | TaskStatus::Blocked
            | TaskStatus::Split) => status,
        }
    }
}

/// An agent that a task should rather not go to again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Avoided {
    /// The agent.
    pub agent: AgentId,
    /// Why, in a few words: `it failed it`.
    pub reason: String,
    /// Whether it failed the task or did not start it: it is free, and would take what waits for its role.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idle: bool,
}

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Waiting {
    /// The step that is begun.
    pub step: u32,
    /// What is waited for.
    pub wait: Wait,
    /// Since when.
    pub since: Millis,
    /// The run whose end is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_run: Option<RunId>,
    /// The task of the plan whose end is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_task: Option<TaskIndex>,
}

/// An agent that was lost while it had a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Death {
    /// The agent.
    pub agent: AgentId,
    /// Which try of the generation that was.
    pub attempt: Attempt,
    /// The last step in the record when it was lost, as far as that is known.
    pub step: u32,
    /// How many other tasks the agent had in hand: any of them may have been its death.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub beside: u32,
}

/// Who had a task, and lost it by a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Lost {
    /// The agent.
    pub agent: AgentId,
    /// Where the decision stands. [`Lost::NOW`] while it is being made.
    pub at: Seq,
}

impl Lost {
    /// The place of a decision that is being made: all that it hears was written before it.
    pub const NOW: Seq = Seq(u64::MAX);

    /// Whether what an agent wrote at this position was written while another one had the task.
    #[must_use]
    pub fn had_it_then(&self, agent: &AgentId, seq: Seq) -> bool {
        seq < self.at && self.agent != *agent
    }
}

impl Death {
    /// Whether the agent had other tasks in hand.
    #[must_use]
    pub const fn had_company(&self) -> bool {
        self.beside > 0
    }
}
