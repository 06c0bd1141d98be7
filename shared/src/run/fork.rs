//! What a run begins with that was forked from another.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conflicts::{ConflictState, Conflicts, Settling};
use super::drafts::DraftHistory;
use super::event::Digest;
use super::group::Group;
use super::peers::PeerTalk;
use super::planning::{GivenUp, Iterated, PlanStage, Planning, Replan};
use super::refining::Refining;
use super::responses::Answers;
use super::state::{Phase, RunState, RunStatus};
use super::task_state::TaskState;
use crate::blueprint::StepOutcome;
use crate::flow::{Plan, Reflection, RefusedOperation, TaskStatus};
use crate::ids::{Attempt, RunId, Seq, TaskId, TaskIndex};

/// Where a forked run came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Origin {
    /// The run.
    pub run: RunId,
    /// The last entry of its record that counts.
    pub at: Seq,
    /// The hash of the last link there: the fork vouches for what it began with. Nothing of a record without a chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Digest>,
}

impl Origin {
    /// A run at an entry, before it is looked up which link stands there.
    #[must_use]
    pub const fn new(run: RunId, at: Seq) -> Self {
        Self { run, at, link: None }
    }
}

/// What a forked run takes over: the plan and all that had ended. It shares no entry of the record with its origin,
/// and has a secret, a deadline and a count of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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
    /// Those of them that came with a reflection.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub by_reflection: BTreeSet<u32>,
    /// Tasks that members had done, and what came of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<TaskIndex, Group>,
    /// What runs before it had taught.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<String>,
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
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub planning: InheritedPlanning,
    /// What its tasks had asked and told each other.
    #[serde(default, skip_serializing_if = "PeerTalk::is_empty")]
    pub peers: PeerTalk,
    /// What had become of the drafts of its report.
    #[serde(default, skip_serializing_if = "DraftHistory::is_empty")]
    pub drafts: DraftHistory,
}

/// What had become of the plans of the run that was forked, as it stands in the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct InheritedPlanning {
    /// The person's first words, where the goal was changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_goal: Option<String>,
    /// Why no planner was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// A plan that is to be improved from lessons of earlier runs before it is carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drafted: Option<Plan>,
    /// The lessons by which the plan was improved, and what was changed for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterated: Option<Iterated>,
    /// The parts of the goal that no task covers, as the planner states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
    /// Tasks that failed one after the other, since the last one that ended well or since the plan was made anew.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub failures_in_a_row: u32,
    /// How many plans had been refused when the planner was last asked for another thing.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub refused_before: usize,
    /// Why what is left is to be planned anew; empty when it is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wanted: Vec<String>,
    /// How often what was left was planned anew, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replans: Vec<Replan>,
    /// What there is to say of a run whose plans all failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up: Option<GivenUp>,
}

impl InheritedPlanning {
    /// The stage that it stands for. A draft and reasons for a new plan exclude each other.
    fn stage(drafted: Option<Plan>, wanted: Vec<String>, has_plan: bool) -> PlanStage {
        match drafted {
            Some(draft) => PlanStage::Improving(draft),
            None if !wanted.is_empty() => PlanStage::Replanning(wanted),
            None if has_plan => PlanStage::Adopted,
            None => PlanStage::Awaited,
        }
    }
}

impl From<&Planning> for InheritedPlanning {
    fn from(planning: &Planning) -> Self {
        Self {
            original_goal: planning.original_goal.clone(),
            skipped: planning.skipped.clone(),
            drafted: planning.first_draft().cloned(),
            iterated: planning.iterated.clone(),
            uncovered: planning.uncovered.clone(),
            failures_in_a_row: planning.failures_in_a_row,
            refused_before: planning.refused_before,
            wanted: planning.reasons_to_replan().to_vec(),
            replans: planning.replans.clone(),
            given_up: planning.given_up.clone(),
        }
    }
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
            expansion: run.planning.expansion.clone(),
            refused_plans: run.planning.refused.clone(),
            tasks: tasks.collect(),
            reflections: run.reflections().map(|(index, one)| (index.clone(), one.clone())).collect(),
            wanted: run.refining.wanted.clone(),
            refinements: run.refining.done.clone(),
            by_reflection: run.refining.by_reflection.clone(),
            groups: run.groups.clone(),
            lessons: run.planning.lessons.clone(),
            conflicts: run.conflicts.found.clone(),
            settling: run.conflicts.settling.clone(),
            planning: InheritedPlanning::from(&run.planning),
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
        let inherited = self.clone();
        run.forked = Some(from);
        run.phase = inherited.phase;
        run.planning = planning_of(&inherited);
        run.plan = inherited.plan;
        run.tasks = inherited.tasks;
        // What is said of a task that the plan has lost since is of no use.
        for (index, reflection) in inherited.reflections {
            if let Some(task) = run.planned_mut(&index) {
                task.reflection = Some(Box::new(reflection));
            }
        }
        run.refining = Refining {
            wanted: inherited.wanted,
            done: inherited.refinements,
            by_reflection: inherited.by_reflection,
        };
        run.groups = inherited.groups;
        run.conflicts = Conflicts { found: inherited.conflicts, settling: inherited.settling };
        run.peers = inherited.peers;
        run.drafts = inherited.drafts;
        // A review that goes on has the time of the new run.
        for review in run.drafts.reviews.iter_mut().filter(|review| review.end.is_none()) {
            review.until = run.deadline;
        }
    }
}

fn planning_of(inherited: &Inherited) -> Planning {
    let before = inherited.planning.clone();
    Planning {
        original_goal: before.original_goal,
        lessons: inherited.lessons.clone(),
        skipped: before.skipped,
        stage: InheritedPlanning::stage(before.drafted, before.wanted, inherited.plan.is_some()),
        refused: inherited.refused_plans.clone(),
        refused_before: before.refused_before,
        iterated: before.iterated,
        expansion: inherited.expansion.clone(),
        uncovered: before.uncovered,
        failures_in_a_row: before.failures_in_a_row,
        replans: before.replans,
        given_up: before.given_up,
    }
}

/// A task as a fork has it: ended as it was, else not offered yet. Steps that were taken stand in another record. What
/// was learnt from it stands beside the tasks; how it was given out is left behind.
fn taken_over(task: &TaskState) -> TaskState {
    let task = TaskState {
        reflection: None,
        handed_over_by: None,
        auction: None,
        answers: Answers::default(),
        ..task.clone()
    };
    if task.status.is_ended() {
        return task;
    }
    TaskState {
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
        lost: None,
        ..task
    }
}
