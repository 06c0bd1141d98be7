//! Tasks: what is offered to agents, and the states they pass through.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::blueprints::BlueprintBrief;
use super::budget::Budget;
use super::child::Background;
use super::conversation::Turn;
use super::draft_review::{DraftReview, Revision};
use super::goal::CorpusRef;
use super::group::Membership;
use super::limits::RunLimits;
use super::outcome::{Ending, StepDigest, TaskResult};
use super::peer::Information;
use super::plan::{Plan, PlanDraft, PlanTask};
use super::query::TaskQuery;
use super::reflection::Reflection;
use super::report::Report;
use super::specialist::Specialty;
use super::wait::Answered;
use crate::ids::{Generation, Queue, RunId, TaskId, TaskIndex};
use crate::time::Millis;
use crate::wire::Encoding;

/// The state of a task (R3).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// In the plan, or put down; not offered.
    Created,
    /// Put down until what it waits for is there. In nobody's hands and not offered meanwhile.
    Waiting,
    /// Offered; nobody has started it as far as the run has decided.
    Queued,
    /// An agent works on it.
    Processing,
    /// It ended well.
    Completed,
    /// It failed for good.
    Failed,
    /// It was cut off by a deadline or a cancellation.
    Aborted,
    /// Somebody decided to leave it out. Not a failure.
    Skipped,
    /// It cannot start because a task it needs failed.
    Blocked,
    /// It was split into smaller tasks.
    Split,
}

impl TaskStatus {
    /// Whether nothing more will happen to the task by itself.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        match self {
            Self::Created | Self::Waiting | Self::Queued | Self::Processing => false,
            Self::Completed | Self::Failed | Self::Aborted | Self::Skipped | Self::Blocked | Self::Split => {
                true
            }
        }
    }

    /// Whether a task with this state is in a queue or in an agent's hands, or some of those below it are.
    #[must_use]
    pub const fn is_in_work(self) -> bool {
        match self {
            Self::Queued | Self::Processing => true,
            Self::Created
            | Self::Waiting
            | Self::Completed
            | Self::Failed
            | Self::Aborted
            | Self::Skipped
            | Self::Blocked
            | Self::Split => false,
        }
    }

    /// Whether a task was offered or has ended, so that there is something to do again.
    #[must_use]
    pub const fn was_begun(self) -> bool {
        match self {
            Self::Created | Self::Split => false,
            Self::Waiting
            | Self::Queued
            | Self::Processing
            | Self::Completed
            | Self::Failed
            | Self::Aborted
            | Self::Skipped
            | Self::Blocked => true,
        }
    }

    /// The mark of a leaf in the progress tree (R8): not started, in work, done, or ended otherwise.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Created | Self::Queued => "[ ]",
            Self::Processing | Self::Waiting => "[-]",
            Self::Completed | Self::Split => "[x]",
            Self::Failed | Self::Aborted | Self::Skipped | Self::Blocked => "[~]",
        }
    }
}

/// An offer of a task. Its record entry is at the same time its queue entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskOffered {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// Which offer of it, from 1.
    pub generation: Generation,
    /// Where it waits.
    pub queue: Queue,
    /// What is to be done.
    pub work: Work,
    /// The person's own words.
    pub goal: String,
    /// The role to play, in the person's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role_name: String,
    /// The earlier runs that the goal follows, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<Turn>,
    /// The run's documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corpus: Option<CorpusRef>,
    /// Model to use instead of the agent's own setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Limits of the run.
    pub limits: RunLimits,
    /// The most that this generation of the task may use.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// When the task's time is up.
    pub deadline: Millis,
    /// The first of the earlier generations whose steps this one goes on from; every one between belongs to it too.
    /// Nothing when the task is begun from its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Generation>,
    /// What came of what the task waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Box<Answered>>,
    /// What other tasks told it so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Information>,
    /// Whether whoever does it may ask its peers: the orchestrators at work understand it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_ask_peers: bool,
    /// The tasks that handed it over, one to the next, the first of them first (O4).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<TaskIndex>,
    /// Tools that failed it before: whoever does it sees them only where it has no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// Whether whoever does it should have nothing else in hand: agents died of it, or of what they did beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// What the run is told of the work that it is a part of, if it belongs to a task of another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Box<Background>>,
    /// Guards fences in prompts: unguessable to documents, the same for every step and attempt.
    pub nonce: String,
    /// How events of this run are encoded.
    #[serde(default)]
    pub encoding: Encoding,
}

/// What is to be done, by kind. Carries all that the agent needs to know of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Split the goal into a plan.
    Plan {
        /// Why an earlier plan of this run was refused.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<String>,
        /// Roles that leaves may be given to.
        roles: Vec<String>,
        /// What earlier runs with a like goal taught.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lessons: Vec<String>,
        /// What those of them are for that users defined.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        specialists: Vec<Specialty>,
        /// The tools that a task may be narrowed to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
        /// The blueprints that a task may be done by.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blueprints: Vec<BlueprintBrief>,
        /// A plan that is to be improved from what earlier runs taught, instead of a new one (P6).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draft: Option<Box<Plan>>,
        /// What is left of the run is to be planned anew (P5).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replan: Option<Box<ReplanBrief>>,
        /// What people answered to the planner's questions: question and answer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        answers: Vec<(String, String)>,
        /// The plan that was refused last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused_plan: Option<Box<PlanDraft>>,
        /// What else the plan is held against.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_to: Option<Box<HeldTo>>,
    },
    /// Do a leaf.
    Execute {
        /// The leaf; references in its goal are resolved.
        task: PlanTask,
        /// Results of the tasks it depends on.
        inputs: Vec<LeafRef>,
        /// Goals of the tasks above it, outermost first.
        parents: Vec<String>,
        /// The progress tree, as text.
        progress: String,
        /// Lessons from tasks that ended before.
        #[serde(default)]
        lessons: Vec<String>,
        /// How an earlier generation of this task failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_before: Option<String>,
        /// What this task gave before it was opened again, to be checked rather than found anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        earlier: Option<Box<TaskResult>>,
        /// Tasks it depends on that gave nothing: index, name, and why. It goes on without them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<(TaskIndex, String, String)>,
        /// Whether its agent may say that what is left of the goal has to be planned.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_plan: bool,
        /// The committee or group that it is done in, by whoever is a member.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<Box<Membership>>,
    },
    /// Reflect on a leaf that ended.
    Reflect {
        /// The leaf.
        index: TaskIndex,
        /// The leaf as planned.
        task: PlanTask,
        /// How it ended.
        ending: Ending,
        /// Why, in a sentence.
        reason: String,
        /// What it gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<TaskResult>,
        /// What it did.
        steps: Vec<StepDigest>,
        /// The progress tree, as text.
        progress: String,
        /// Whether a sentence or two will do.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        brief: bool,
        /// What a change of plan is held against, where one may be brought with the reflection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refine: Option<Box<RefineBrief>>,
    },
    /// Change the plan.
    Refine {
        /// The plan as it stands.
        plan: Plan,
        /// The progress tree, as text.
        progress: String,
        /// What the reflections ask for.
        reasons: Vec<String>,
        /// Reflections so far.
        reflections: Vec<(TaskIndex, Reflection)>,
        /// Results so far.
        results: Vec<LeafRef>,
        /// Operations that may be used.
        operations_left: u32,
        /// Roles that new tasks may be given to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        roles: Vec<String>,
        /// What those of them are for that users defined.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        specialists: Vec<Specialty>,
        /// The tools that a new task may be narrowed to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
        /// The blueprints that a new task may be done by.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blueprints: Vec<BlueprintBrief>,
        /// What else the operations are held against.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_to: Option<Box<HeldTo>>,
    },
    /// Write the report.
    Write {
        /// What every leaf gave, in order.
        results: Vec<LeafRef>,
        /// Leaves that gave nothing: index, name, and why.
        failed: Vec<(TaskIndex, String, String)>,
        /// What the reflections found uncovered in the end.
        uncovered: Vec<String>,
        /// Leaves whose results were made from one that has changed since, and how.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stale: Vec<(TaskIndex, String)>,
        /// Where results contradict each other, and what became of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<ConflictBrief>,
        /// The draft that is to be written again, and what was said of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<Box<Revision>>,
    },
    /// Review the draft of the report.
    DraftReview {
        /// The draft.
        draft: Box<Report>,
        /// What every leaf gave, in order.
        results: Vec<LeafRef>,
        /// Leaves that gave nothing: index, name, and why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<(TaskIndex, String, String)>,
        /// What the reflections found uncovered in the end.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        uncovered: Vec<String>,
        /// Where results contradict each other, and what became of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<ConflictBrief>,
        /// What was said of the draft before this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        earlier: Option<Box<DraftReview>>,
    },
}

/// What a plan, or a change of one, is held against besides the limits, roles and tools that an offer names: whoever
/// makes it can look by the same rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct HeldTo {
    /// How far the tasks of the plan are, as a change of it sees them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<TaskIndex, TaskStatus>,
    /// The keys of the shared context that have a value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
}

/// What whoever reflects is told of the plan, to change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RefineBrief {
    /// The plan as it stands.
    pub plan: Plan,
    /// Operations that may be used.
    pub operations_left: u32,
    /// Roles that new tasks may be given to.
    pub roles: Vec<String>,
    /// The tools that a new task may be narrowed to.
    pub tools: Vec<String>,
    /// The blueprints that a new task may be done by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blueprints: Vec<BlueprintBrief>,
    /// What else the operations are held against.
    pub held_to: HeldTo,
}

/// What a writer is told of results that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ConflictBrief {
    /// What they are about.
    pub subject: String,
    /// Who claimed what, one line each.
    pub claimed: Vec<String>,
    /// What holds, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// How that is known, or why it is not.
    pub why: String,
}

/// What a planner is told of a plan that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReplanBrief {
    /// The plan as it stands.
    pub plan: Plan,
    /// The progress tree, as text.
    pub progress: String,
    /// Why what is left is to be planned anew.
    pub reasons: Vec<String>,
    /// What the leaves that ended well gave.
    pub results: Vec<LeafRef>,
    /// What was learnt in this run.
    pub lessons: Vec<String>,
    /// The index of the first new task.
    pub first: TaskIndex,
    /// How many more times a plan may be made after this.
    pub left: u32,
    /// Whether nothing failed: one agent began with the whole goal, and asks for a plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked_for: bool,
}

/// A leaf and what it gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeafRef {
    /// The leaf.
    pub index: TaskIndex,
    /// Its name.
    pub name: String,
    /// Its goal.
    pub goal: String,
    /// What it was for, in the form that rules read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<TaskQuery>,
    /// What it gave.
    pub result: TaskResult,
}
