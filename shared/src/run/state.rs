//! The state of a run: what folding its record gives.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::conflicts::{ConflictState, Settling};
use super::drafts::DraftHistory;
use super::event::{AgentEvent, AgentKey, Input, StopReason};
use super::fork::Origin;
use super::group::Group;
use super::peers::PeerTalk;
use super::planning::PlanHistory;
use super::responses::ResponseHistory;
use crate::blueprint::StepOutcome;
use crate::flow::{
    About, Answered, Auction, Budget, Goal, OnTimeout, Outcome, Plan, Question, Reflection, RefusedOperation,
    Reply, Report, RunLimits, TaskStatus, Usage, Wait,
};
use crate::ids::{AgentId, Attempt, Generation, QuestionId, Queue, RunId, Seq, TaskId, TaskIndex};
use crate::time::Millis;
use crate::track_record::Tally;

/// The state of a run (R3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It exists; nothing was offered yet.
    Created,
    /// It is being worked on.
    Processing,
    /// It ended with a report.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped.
    Aborted(StopReason),
}

impl RunStatus {
    /// Whether nothing more will happen.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        match self {
            Self::Created | Self::Processing => false,
            Self::Completed | Self::Failed | Self::Aborted(_) => true,
        }
    }
}

/// What a run is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Making the plan.
    Planning,
    /// Doing the leaves, reflecting on them, refining the plan.
    Executing,
    /// Writing the report.
    Writing,
    /// Nothing any more.
    Ended,
}

/// The state of a run. Only [`apply`](super::apply()) changes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunState {
    /// The run.
    pub id: RunId,
    /// Its state.
    pub status: RunStatus,
    /// What it is busy with.
    pub phase: Phase,
    /// Where it came from, if it was forked from another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Origin>,
    /// What was asked.
    pub goal: Goal,
    /// Limits in force.
    pub limits: RunLimits,
    /// The version of its events.
    pub event_version: u32,
    /// Its secret, in hexadecimal. Never shown.
    #[serde(skip)]
    pub secret: String,
    /// When it was created.
    pub created_at: Millis,
    /// When it ended.
    pub ended_at: Option<Millis>,
    /// When it must be finished.
    pub deadline: Millis,
    /// Since when it has been busy with its phase. Time during which it was paused does not count.
    pub phase_since: Millis,
    /// Whether nothing is offered for now, and why.
    pub paused: Option<Paused>,
    /// The latest requests that were decided upon: none is carried out twice.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub requests: VecDeque<Uuid>,
    /// What earlier runs with a like goal taught.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<String>,
    /// The plan as it stands.
    pub plan: Option<Plan>,
    /// What became of the steps of its blueprint, as far as that is decided.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub expansion: BTreeMap<String, StepOutcome>,
    /// Why plans were refused.
    pub refused_plans: Vec<Vec<String>>,
    /// Every task that was planned or offered.
    pub tasks: BTreeMap<TaskId, TaskState>,
    /// Tasks that were given to several members, and what came of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<TaskIndex, Group>,
    /// What was learnt, by leaf.
    pub reflections: BTreeMap<TaskIndex, Reflection>,
    /// What each refinement is to be for, by its number.
    pub wanted: BTreeMap<u32, Vec<String>>,
    /// Changes of plan: what was changed, and what was refused.
    pub refinements: Vec<(Vec<String>, Vec<RefusedOperation>)>,
    /// What people were asked, and what they answered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<QuestionId, QuestionState>,
    /// Runs that were begun for tasks of this one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub children: BTreeMap<RunId, Child>,
    /// Tasks that were handed over, and the task that each was handed over by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub delegated: BTreeMap<TaskIndex, TaskIndex>,
    /// What its tasks asked and told each other.
    #[serde(default, skip_serializing_if = "PeerTalk::is_empty")]
    pub peers: PeerTalk,
    /// Tasks whose results were made from one that has changed since, and what that was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stale: BTreeMap<TaskIndex, String>,
    /// What was done about failures.
    #[serde(default, skip_serializing_if = "ResponseHistory::is_empty")]
    pub responses: ResponseHistory,
    /// Results that contradict each other, and what became of that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conflicts: BTreeMap<u32, ConflictState>,
    /// Small tasks outside the plan that help to settle conflicts, by their number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settling: BTreeMap<u32, Settling>,
    /// What became of its plans.
    #[serde(default, skip_serializing_if = "PlanHistory::is_empty")]
    pub planning: PlanHistory,
    /// What the work of its agents came to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tallies: BTreeMap<AgentId, Tally>,
    /// The auctions of its tasks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub auctions: BTreeMap<TaskIndex, Auction>,
    /// What became of the drafts of its report.
    #[serde(default, skip_serializing_if = "DraftHistory::is_empty")]
    pub drafts: DraftHistory,
    /// What its tasks used.
    pub usage: Usage,
    /// What was set aside for generations of tasks whose usage is not known yet, where the run has a budget.
    pub allotted: Vec<Allotment>,
    /// The answer.
    pub report: Option<Report>,
    /// Why it failed or was stopped.
    pub reason: Option<String>,
    /// The highest position folded.
    pub folded: Seq,
    /// The last position that an orchestrator wrote: what its next write compares with.
    pub decided: Seq,
    /// The time that the last decision took for now.
    pub decided_at: Millis,
    /// The batch written last, and how many of its offers are still to come.
    pub batch: Option<(Uuid, u32)>,
    /// Events of agents that no decision has named yet.
    #[serde(skip)]
    pub pending: BTreeMap<Seq, (AgentKey, AgentEvent)>,
    /// What agents were seen doing. For people only: no decision reads it.
    #[serde(skip)]
    pub seen: BTreeMap<TaskId, Seen>,
}

impl RunState {
    /// Most agents whose work is counted.
    pub const MOST_TALLIES: usize = 512;

    /// What agents wrote that no decision has named, as inputs of one.
    pub fn undecided(&self) -> impl Iterator<Item = Input> {
        self.pending.iter().map(|(seq, (_, event))| Input::of_agent(*seq, event))
    }

    /// What the work of an agent came to, to be counted on; nothing when too many agents are counted already.
    pub fn tally(&mut self, agent: &AgentId) -> Option<&mut Tally> {
        if !self.tallies.contains_key(agent) && self.tallies.len() >= Self::MOST_TALLIES {
            return None;
        }
        Some(self.tallies.entry(agent.clone()).or_default())
    }

    /// The states of all planned tasks, as the rules in [`plan`](crate::plan) want them: one that waits is in work.
    #[must_use]
    pub fn statuses(&self) -> Statuses {
        let leaf = |(task, state): (&TaskId, &TaskState)| match task {
            TaskId::Leaf(index) if !index.is_member() => Some((index.clone(), state.status_in_plan())),
            TaskId::Leaf(_)
            | TaskId::Plan
            | TaskId::Reflect(_)
            | TaskId::Refine(_)
            | TaskId::Settle(_)
            | TaskId::Write
            | TaskId::DraftReview(_) => None,
        };
        self.tasks.iter().filter_map(leaf).collect()
    }

    /// The agent that was seen to have taken an offer (and perhaps to have done it), though no decision names it yet.
    /// For people only.
    #[must_use]
    pub fn seen_with(&self, task: &TaskId) -> Option<&AgentId> {
        let offered = self.tasks.get(task).filter(|state| state.status == TaskStatus::Queued)?;
        let seen = self.seen.get(task).filter(|seen| seen.generation == offered.generation)?;
        seen.agent.as_ref()
    }

    /// Whether a task that no decision has ended yet is done all the same, by the outcome in the record, and whether it
    /// went well. For people only.
    #[must_use]
    pub fn seen_ended(&self, task: &TaskId) -> Option<bool> {
        let open = |state: &&TaskState| matches!(state.status, TaskStatus::Queued | TaskStatus::Processing);
        let state = self.tasks.get(task).filter(open)?;
        let seen = self.seen.get(task).filter(|seen| seen.generation == state.generation && seen.ended)?;
        Some(seen.well)
    }

    /// What ended tasks used, and what those that no decision has ended yet were seen to use. The one figure that people
    /// are told.
    #[must_use]
    pub fn used(&self) -> Usage {
        let mut used = self.usage;
        for (task, seen) in &self.seen {
            let in_work = self.tasks.get(task).is_some_and(|state| state.status == TaskStatus::Processing);
            if in_work || self.seen_with(task).is_some() {
                used += seen.usage;
            }
        }
        used
    }

    /// The questions that wait for an answer.
    pub fn open_questions(&self) -> impl Iterator<Item = (QuestionId, &QuestionState)> {
        self.questions.iter().filter(|(_, state)| state.is_open()).map(|(id, state)| (*id, state))
    }

    /// Whether nothing more is offered until somebody has answered.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.open_questions().any(|(_, state)| state.about.holds_the_run())
    }

    /// The state of a planned task.
    #[must_use]
    pub fn planned(&self, index: &TaskIndex) -> Option<&TaskState> {
        self.tasks.get(&TaskId::Leaf(index.clone()))
    }
}

/// Why and since when nothing is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Paused {
    /// Since when.
    pub since: Millis,
    /// Who asked for it, and why.
    pub reason: String,
}

/// The states of planned tasks by index. A task that is missing counts as not offered yet.
pub type Statuses = BTreeMap<TaskIndex, TaskStatus>;

/// The state of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// How it ended; kept of the newest generation that ended.
    pub outcome: Option<Outcome>,
    /// Why its earlier generations failed, or why it was skipped, blocked or aborted.
    pub reasons: Vec<String>,
    /// How many generations failed since it was planned or reopened.
    pub failures: u32,
    /// The first of the earlier generations whose steps the next one goes on from; every one since belongs to it.
    pub continues: Option<Generation>,
    /// What it waits for. It is in nobody's hands and not offered meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// What came of what it waited for last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Box<Answered>>,
    /// Who ended it, with the outcome that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
}

impl TaskState {
    /// Most agents that are remembered as not to be asked again.
    pub const MOST_AVOIDED: usize = 16;

    /// Remembers that the task should rather not go to this agent again, and why. Of many, the latest are kept.
    pub fn avoid(&mut self, agent: AgentId, reason: &str) {
        self.keep_from(Avoided { agent, reason: reason.to_owned(), idle: false });
    }

    /// The same of an agent that was asked and did nothing: rather than to it, the task goes to one that is busy.
    pub fn avoid_idle(&mut self, agent: AgentId, reason: &str) {
        self.keep_from(Avoided { agent, reason: reason.to_owned(), idle: true });
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

    /// Whether it was offered or has ended, so that there is something to do again.
    #[must_use]
    pub const fn was_begun(&self) -> bool {
        self.status.was_begun() || self.waiting.is_some()
    }

    /// Its state as the plan sees it: one that waits has begun and is not to be offered.
    #[must_use]
    pub const fn status_in_plan(&self) -> TaskStatus {
        if self.waiting.is_some() { TaskStatus::Processing } else { self.status }
    }

    /// A task that was planned and not offered yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            status: TaskStatus::Created,
            generation: Generation(0),
            queue: None,
            offered_at: None,
            deadline: None,
            agent: None,
            attempt: Attempt(0),
            ack: None,
            last_step: 0,
            deaths: Vec::new(),
            outcome: None,
            reasons: Vec::new(),
            failures: 0,
            continues: None,
            waiting: None,
            answered: None,
            ended_by: None,
            avoid: Vec::new(),
            alone: false,
            skipped_by_person: false,
        }
    }
}

/// An agent that a task should rather not go to again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Avoided {
    /// The agent.
    pub agent: AgentId,
    /// Why, in a few words: `it failed it`.
    pub reason: String,
    /// Whether it was asked and did nothing: it is free, and whoever is free takes what waits for its role.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idle: bool,
}

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Waiting {
    /// The step that is begun.
    pub step: u32,
    /// What is waited for.
    pub wait: Wait,
    /// Since when.
    pub since: Millis,
    /// The run whose end is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_run: Option<RunId>,
    /// The task of the plan whose end is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_task: Option<TaskIndex>,
}

/// A run that was begun for a task (R6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Child {
    /// The task.
    pub task: TaskId,
    /// Its generation that asked for the run.
    pub generation: Generation,
    /// The goal of the run.
    pub goal: Box<Goal>,
    /// When word of it was asked for last.
    pub asked_at: Millis,
    /// How it ended; nothing while nothing is known of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Box<ChildEnd>>,
}

/// How a run ended that was begun for a task of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChildEnd {
    /// How.
    pub status: RunStatus,
    /// Why it failed or was stopped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Its report, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
}

/// A question of the run, answered or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QuestionState {
    /// What its answer is for.
    pub about: About,
    /// The question.
    pub question: Question,
    /// When it was asked.
    pub asked_at: Millis,
    /// Who is asked now; whoever looks after the run when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_of: Option<String>,
    /// How many people were asked before who did not answer.
    #[serde(default)]
    pub passed_on: u32,
    /// When the time for the answer is up.
    pub expires: Millis,
    /// What follows then.
    pub on_timeout: OnTimeout,
    /// How it ended; nothing while it waits for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<QuestionEnd>,
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionEnd {
    /// It was answered, or its default was taken.
    Answered(Reply),
    /// Nobody needed the answer any more; why.
    Withdrawn(String),
}

impl QuestionState {
    /// Whether it waits for an answer.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.end.is_none()
    }
}

/// An agent that was lost while it had a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Death {
    /// The agent.
    pub agent: AgentId,
    /// Which try of the generation that was.
    pub attempt: Attempt,
    /// The last step in the record when it was lost, as far as that is known.
    pub step: u32,
    /// How many other tasks the agent had in hand: any of them may have been its death.
    #[serde(default, skip_serializing_if = "is_none_beside")]
    pub beside: u32,
}

impl Death {
    /// Whether the agent had other tasks in hand.
    #[must_use]
    pub const fn had_company(&self) -> bool {
        self.beside > 0
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_none_beside(count: &u32) -> bool {
    *count == 0
}

impl Default for TaskState {
    fn default() -> Self {
        Self::new()
    }
}

/// A part of the run's budget that was set aside for one generation of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Allotment {
    /// The task.
    pub task: TaskId,
    /// Its generation.
    pub generation: Generation,
    /// The most that it may use.
    pub budget: Budget,
}

/// What an agent was seen doing with a task, decided upon or not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Seen {
    /// The generation that this is about.
    pub generation: Generation,
    /// The agent.
    pub agent: Option<AgentId>,
    /// The last step journaled.
    pub step: u32,
    /// What the steps used so far.
    pub usage: Usage,
    /// The last action, in brief.
    pub doing: String,
    /// Whether the outcome is in the record.
    pub ended: bool,
    /// Whether it went well then.
    #[serde(default)]
    pub well: bool,
}
