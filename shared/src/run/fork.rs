//! What a run begins with that was forked from another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::conflicts::{ConflictState, Settling};
use super::drafts::DraftHistory;
use super::group::Group;
use super::peers::PeerTalk;
use super::planning::PlanHistory;
use super::state::{Phase, RunState, RunStatus, TaskState};
use crate::blueprint::StepOutcome;
use crate::flow::{Plan, Reflection, RefusedOperation, TaskStatus};
use crate::ids::{Attempt, RunId, Seq, TaskId, TaskIndex};

/// Where a forked run came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Origin {
    /// The run.
    pub run: RunId,
    /// The last entry of its record that counts.
    pub at: Seq,
}

/// What a forked run takes over: the plan and all that had ended. It shares no entry of the record with its origin,
/// and has a secret, a deadline and a count of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Inherited {
    /// What it goes on with.
    pub phase: Phase,
    /// The plan as it stood.
    pub plan: Option<Plan>,
    /// What had become of the steps of its blueprint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub expansion: BTreeMap<String, StepOutcome>,
    /// Why plans had been refused.
    pub refused_plans: Vec<Vec<String>>,
    /// Its tasks. What was in work is to be offered again, from its beginning.
    pub tasks: BTreeMap<TaskId, TaskState>,
    /// What had been learnt.
    pub reflections: BTreeMap<TaskIndex, Reflection>,
    /// What each refinement was to be for.
    #[serde(deserialize_with = "crate::number_keys::read")]
    pub wanted: BTreeMap<u32, Vec<String>>,
    /// Changes of plan.
    pub refinements: Vec<(Vec<String>, Vec<RefusedOperation>)>,
    /// Tasks that members had done, and what came of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<TaskIndex, Group>,
    /// What runs before it had taught.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<String>,
    /// Tasks whose results were made from one that had changed since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stale: BTreeMap<TaskIndex, String>,
    /// Results that contradicted each other.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::number_keys::read"
    )]
    pub conflicts: BTreeMap<u32, ConflictState>,
    /// Small tasks that helped to settle that.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::number_keys::read"
    )]
    pub settling: BTreeMap<u32, Settling>,
    /// What became of its plans.
    #[serde(default, skip_serializing_if = "PlanHistory::is_empty")]
    pub planning: PlanHistory,
    /// What its tasks had asked and told each other.
    #[serde(default, skip_serializing_if = "PeerTalk::is_empty")]
    pub peers: PeerTalk,
    /// What had become of the drafts of its report.
    #[serde(default, skip_serializing_if = "DraftHistory::is_empty")]
    pub drafts: DraftHistory,
}

impl Inherited {
    /// What can be taken over from a run as it stands; nothing when it has ended.
    #[must_use]
    pub fn of(run: &RunState) -> Option<Self> {
        if run.status.is_ended() {
            return None;
        }
        let tasks = run.tasks.iter().map(|(id, task)| (id.clone(), taken_over(task)));
        Some(Self {
            phase: run.phase,
            plan: run.plan.clone(),
            expansion: run.expansion.clone(),
            refused_plans: run.refused_plans.clone(),
            tasks: tasks.collect(),
            reflections: run.reflections.clone(),
            wanted: run.wanted.clone(),
            refinements: run.refinements.clone(),
            groups: run.groups.clone(),
            lessons: run.lessons.clone(),
            stale: run.stale.clone(),
            conflicts: run.conflicts.clone(),
            settling: run.settling.clone(),
            planning: run.planning.clone(),
            peers: run.peers.clone(),
            drafts: run.drafts.clone(),
        })
    }

    /// Whether it can be given to this run: one that has only just been created.
    #[must_use]
    pub fn fits(run: &RunState) -> bool {
        run.status == RunStatus::Created && run.plan.is_none() && run.tasks.is_empty()
    }

    /// Gives it to a run.
    pub(super) fn give_to(&self, run: &mut RunState, from: Origin) {
        let Self {
            phase,
            plan,
            expansion,
            refused_plans,
            tasks,
            reflections,
            wanted,
            refinements,
            groups,
            lessons,
            stale,
            conflicts,
            settling,
            planning,
            peers,
            mut drafts,
        } = self.clone();
        // A review that goes on has the time of the new run.
        for review in drafts.reviews.iter_mut().filter(|review| review.end.is_none()) {
            review.until = run.deadline;
        }
        *run = RunState {
            phase,
            plan,
            expansion,
            refused_plans,
            tasks,
            reflections,
            wanted,
            refinements,
            groups,
            lessons,
            stale,
            conflicts,
            settling,
            planning,
            peers,
            drafts,
            forked: Some(from),
            ..run.clone()
        };
    }
}

/// A task as a fork has it: ended as it was, else not offered yet. Steps that were taken stand in another record.
fn taken_over(task: &TaskState) -> TaskState {
    match task.status {
        TaskStatus::Created | TaskStatus::Queued | TaskStatus::Processing => TaskState {
            status: TaskStatus::Created,
            queue: None,
            offered_at: None,
            deadline: None,
            agent: None,
            attempt: Attempt(0),
            continues: None,
            waiting: None,
            answered: None,
            deaths: Vec::new(),
            ..task.clone()
        },
        TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Aborted
        | TaskStatus::Skipped
        | TaskStatus::Blocked
        | TaskStatus::Split => task.clone(),
    }
}
