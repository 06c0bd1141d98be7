//! The state of a run: what folding its record gives.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::children::Child;
use super::conflicts::Conflicts;
use super::control::Control;
use super::drafts::DraftHistory;
use super::event::{AgentEvent, AgentKey, Input, StopReason};
use super::fork::Origin;
use super::group::Group;
use super::guarding::Guarding;
use super::peers::PeerTalk;
use super::planning::Planning;
use super::questions::QuestionState;
use super::refining::Refining;
use super::responses::ResponseHistory;
use super::spending::Spending;
use super::task_state::TaskState;
use super::trials::Trials;
use crate::flow::{
    Auction, DraftReviewPolicy, Goal, Plan, PlanTask, Reflection, RefusedOperation, Report, RunLimits,
    TaskStatus, Usage, Writing,
};
use crate::ids::{AgentId, Generation, QuestionId, Role, RunId, Seq, TaskId, TaskIndex};
use crate::time::Millis;
use crate::track_record::Tally;

/// The state of a run (R3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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
        !matches!(self, Self::Created | Self::Processing)
    }
}

/// What a run is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RunState {
    /// The run.
    pub id: RunId,
    /// Its state.
    pub status: RunStatus,
    /// What it is busy with.
    pub phase: Phase,
    /// Where it came from, if it was forked from another run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked: Option<Origin>,
    /// What was asked.
    pub goal: Goal,
    /// Limits in force.
    pub limits: RunLimits,
    /// Its secret, in hexadecimal. Never shown.
    #[serde(skip)]
    pub secret: String,
    /// When it was created.
    pub created_at: Millis,
    /// When it ended.
    pub ended_at: Option<Millis>,
    /// When it must be finished.
    pub deadline: Millis,
    /// What people have the run do.
    #[serde(default)]
    pub control: Control,
    /// The plan as it stands.
    pub plan: Option<Plan>,
    /// How the plan came about, and what became of those before it.
    #[serde(default)]
    pub planning: Planning,
    /// Changes of the plan in the light of what was learnt.
    #[serde(default)]
    pub refining: Refining,
    /// Every task that was planned or offered.
    pub tasks: BTreeMap<TaskId, TaskState>,
    /// Tasks that were given to several members, and what came of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<TaskIndex, Group>,
    /// What people were asked, and what they answered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<QuestionId, QuestionState>,
    /// Runs that were begun for tasks of this one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub children: BTreeMap<RunId, Child>,
    /// What its tasks asked and told each other.
    #[serde(default, skip_serializing_if = "PeerTalk::is_empty")]
    pub peers: PeerTalk,
    /// What was done about failures.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub responses: ResponseHistory,
    /// Results that contradict each other, and what became of that.
    #[serde(default)]
    pub conflicts: Conflicts,
    /// What the work of its agents came to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tallies: BTreeMap<AgentId, Tally>,
    /// What became of the drafts of its report.
    #[serde(default, skip_serializing_if = "DraftHistory::is_empty")]
    pub drafts: DraftHistory,
    /// What guards are asked about, and what they said.
    #[serde(default, skip_serializing_if = "Guarding::is_empty")]
    pub guarding: Guarding,
    /// Roles that its tasks need and of which no agent is online, each with the time when that was noticed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing_roles: BTreeMap<Role, Millis>,
    /// Trials that it takes part in.
    #[serde(default, skip_serializing_if = "Trials::is_empty")]
    pub trials: Trials,
    /// What was used, and what is set aside.
    #[serde(default)]
    pub spending: Spending,
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
    /// Child runs that wait for a person, as far as the observer follows them. For people only: no decision reads it.
    #[serde(skip)]
    pub asking_children: BTreeSet<RunId>,
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
        let leaf = |(task, state): (&TaskId, &TaskState)| {
            if let TaskId::Leaf(index) = task
                && !index.is_member()
            {
                Some((index.clone(), state.status_in_plan()))
            } else {
                None
            }
        };
        self.tasks.iter().filter_map(leaf).collect()
    }

    /// What ended tasks used, and what those that no decision has ended yet were seen to use. The one figure that people are
    /// told.
    #[must_use]
    pub fn used(&self) -> Usage {
        let mut used = self.spending.used;
        self.used_in_progress().for_each(|(_, usage)| used += usage);
        used
    }

    /// Reported usage of tasks that no decision has ended yet.
    pub fn used_in_progress(&self) -> impl Iterator<Item = (&TaskId, Usage)> {
        self.seen.iter().filter_map(|(task, seen)| {
            let found = self.tasks.get(task).filter(|found| found.generation == seen.generation)?;
            matches!(found.status, TaskStatus::Queued | TaskStatus::Processing).then_some((task, seen.usage))
        })
    }

    /// A task of the plan.
    #[must_use]
    pub fn plan_task(&self, index: &TaskIndex) -> Option<&PlanTask> {
        self.plan.as_ref()?.tasks.get(index)
    }

    /// The state of a planned task.
    #[must_use]
    pub fn planned(&self, index: &TaskIndex) -> Option<&TaskState> {
        self.tasks.get(&index.to_task_id())
    }

    /// The same, to be changed.
    pub(super) fn planned_mut(&mut self, index: &TaskIndex) -> Option<&mut TaskState> {
        self.tasks.get_mut(&index.to_task_id())
    }

    /// The states of planned tasks and of members, in order.
    pub fn leaves(&self) -> impl Iterator<Item = (&TaskIndex, &TaskState)> {
        self.tasks.iter().filter_map(|(task, state)| Some((task.as_leaf()?, state)))
    }

    /// What was learnt from tasks, in order.
    pub fn reflections(&self) -> impl Iterator<Item = (&TaskIndex, &Reflection)> {
        self.leaves().filter_map(|(index, state)| Some((index, state.reflection.as_deref()?)))
    }

    /// What was learnt from a task.
    #[must_use]
    pub fn reflection(&self, index: &TaskIndex) -> Option<&Reflection> {
        self.planned(index)?.reflection.as_deref()
    }

    /// What became of a refinement: what was changed, and what was refused; nothing when it was not carried out.
    #[must_use]
    pub fn refinement(&self, number: u32) -> Option<&(Vec<String>, Vec<RefusedOperation>)> {
        let completed = self.tasks.iter().filter(|(_, found)| found.status == TaskStatus::Completed);
        let by_refiners = completed
            .filter_map(|(task, _)| if let TaskId::Refine(number) = task { Some(*number) } else { None });
        // One that failed leaves nothing behind.
        let done: BTreeSet<u32> = by_refiners.chain(self.refining.by_reflection.iter().copied()).collect();
        self.refining.done.get(done.into_iter().position(|done| done == number)?)
    }

    /// The only task of the plan, where what it gives is to be the report. A blueprint says itself what its report has to
    /// have, and whoever reviews drafts wants one to be written.
    #[must_use]
    pub fn only_task(&self) -> Option<&TaskIndex> {
        let by_rule = self.limits.writer == Writing::UnlessSingle
            && self.limits.draft_review == DraftReviewPolicy::Off
            && self.goal.blueprint.is_none();
        let mut leaves = self.plan.as_ref().filter(|_| by_rule)?.leaves();
        let first = leaves.next().map(|(index, _)| index);
        first.filter(|_| leaves.next().is_none())
    }

    /// The newest auction of a task.
    #[must_use]
    pub fn auction(&self, index: &TaskIndex) -> Option<&Auction> {
        self.planned(index)?.auction.as_deref()
    }

    /// The task that a task was handed over by.
    #[must_use]
    pub fn handed_over_by(&self, index: &TaskIndex) -> Option<&TaskIndex> {
        self.planned(index)?.handed_over_by.as_ref()
    }
}

/// The states of planned tasks by index. A task that is missing counts as not offered yet.
pub type Statuses = BTreeMap<TaskIndex, TaskStatus>;

/// What an agent was seen doing with a task, decided upon or not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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
