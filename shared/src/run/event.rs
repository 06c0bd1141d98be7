//! Events: what stands in the record.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::fork::{Inherited, Origin};
use crate::flow::{
    Goal, Outcome, Plan, Reflection, RefusedOperation, Report, RunLimits, Step, TaskOffered, Usage,
};
use crate::ids::{AgentId, Attempt, Generation, Queue, Role, RunId, Seq, TaskId, TaskIndex};
use crate::time::Millis;

/// One message of the record, with the place and time the broker gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its place.
    pub seq: Seq,
    /// When the broker stored it.
    pub at: Millis,
    /// The run it belongs to.
    pub run: RunId,
    /// What it says.
    pub event: RecordEvent,
}

/// What a message of the record says, by its author.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "entries are folded one at a time and not kept")]
pub enum RecordEvent {
    /// `run.<run>.decided`: an orchestrator decided. With an offer inside, `run.<run>.task.<queue>.<task>`: then it is
    /// at the same time a queue entry.
    Decided(Decided),
    /// `run.<run>.task.<queue>.<task>`: part of the decision before it, and a queue entry.
    Offered(TaskOffered),
    /// `evt.<run>.<role>.<agent>.<task>.<gen>.<kind>`: an agent reports.
    Agent(AgentKey, AgentEvent),
}

/// A decision: its inputs, and the events that follow from them. It stands at the head of every batch that
/// an orchestrator writes; several offers follow in the same batch, a single one stands inside.
///
/// Replay feeds the inputs back with `now` and `capacity`: no other clock or randomness reaches a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decided {
    /// Names the batch, so that an author can find out whether an ambiguous write landed.
    pub batch: Uuid,
    /// Which orchestrator decided.
    pub by: AgentId,
    /// What was decided upon, in order.
    pub inputs: Vec<Input>,
    /// The time that was taken for now.
    pub now: Millis,
    /// The highest position of the record that the decision took into account.
    pub basis: Seq,
    /// Offers that each queue could still take when this was decided.
    #[serde(default)]
    pub capacity: BTreeMap<Queue, u32>,
    /// How many offers follow in this batch.
    pub offers: u32,
    /// Whether the decision goes on in the next batch. The batches of such a chain name the same inputs;
    /// only the last of them closes these, so that a chain that was cut off can be decided anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// What follows, apart from the offers.
    pub events: Vec<RunEvent>,
    /// The only offer of this decision; it comes after the events. Decision and offer are then one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Box<TaskOffered>>,
}

impl Decided {
    /// The decision with these offers, and those of them that have to follow it as messages of their own. A single
    /// offer goes inside, unless the decision tells the run's secret: agents read what is in a queue.
    #[must_use]
    pub fn with_offers(mut self, mut offers: Vec<TaskOffered>) -> (Self, Vec<TaskOffered>) {
        if offers.len() == 1 && !self.tells_secret() {
            self.offer = offers.pop().map(Box::new);
        }
        self.offers = u32::try_from(offers.len()).unwrap_or(u32::MAX);
        (self, offers)
    }

    /// Whether the run's secret stands in the decision.
    #[must_use]
    pub fn tells_secret(&self) -> bool {
        self.inputs.iter().any(|input| matches!(input, Input::Goal { .. } | Input::Fork { .. }))
            || self.events.iter().any(|event| matches!(event, RunEvent::RunCreated { .. }))
    }
}

/// What a run decides upon. What comes from outside the record is copied into it here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// A goal was submitted.
    Goal {
        /// The goal.
        goal: Box<Goal>,
        /// Limits in force.
        limits: RunLimits,
        /// The run's secret: 32 random bytes in hexadecimal, from which fence nonces are derived.
        secret: String,
        /// The version of the run's events: the newest that every orchestrator at work knows.
        #[serde(
            default = "super::first_event_version",
            skip_serializing_if = "super::is_first_event_version"
        )]
        event_version: u32,
    },
    /// A run is to go on from where another one stood.
    Fork {
        /// Where that was.
        from: Origin,
        /// What is taken over.
        state: Box<Inherited>,
        /// The goal.
        goal: Box<Goal>,
        /// Limits in force.
        limits: RunLimits,
        /// The new run's own secret, see [`Input::Goal`].
        secret: String,
        /// See [`Input::Goal`].
        #[serde(
            default = "super::first_event_version",
            skip_serializing_if = "super::is_first_event_version"
        )]
        event_version: u32,
    },
    /// A goal that cannot be worked on. The run is created and fails at once, so that the asker reads why.
    Refuse {
        /// The goal, cut short if it is too long.
        goal: Box<Goal>,
        /// Limits in force.
        limits: RunLimits,
        /// Why, and what to do.
        reason: String,
        /// Whether the goal is in order and there is only too much to do now.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        busy: bool,
    },
    /// An agent's event in the record.
    Agent {
        /// Its place.
        seq: Seq,
    },
    /// Queues can take more offers (see [`Decided::capacity`]).
    Capacity,
    /// A deadline may have passed.
    Timer,
    /// An agent is gone without a word: it died, or it was cut off for so long that it counts as dead.
    AgentLost {
        /// The agent.
        agent: AgentId,
        /// How it is known.
        reason: String,
        /// The last step in the record of those of its tasks for which that makes a difference.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        steps: BTreeMap<TaskId, u32>,
    },
    /// A person or a program asks the run to stop.
    Cancel {
        /// Why.
        reason: String,
        /// Who.
        by: String,
        /// Tells it from others like it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Uuid>,
    },
    /// Somebody asks that nothing more be offered for now.
    Pause {
        /// Who, and why.
        request: Request,
    },
    /// Somebody asks that the run go on.
    Resume {
        /// Who, and why.
        request: Request,
        /// Time for the run from now on, in milliseconds; its deadline stays when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline_ms: Option<u64>,
    },
    /// Somebody asks that a task and all below it be left out.
    Skip {
        /// The task.
        task: TaskIndex,
        /// Who, and why.
        request: Request,
    },
    /// Somebody asks that a task be done again.
    Redo {
        /// The task.
        task: TaskIndex,
        /// Who, and why.
        request: Request,
    },
    /// Somebody changes a goal.
    Edit {
        /// The task whose goal it is; the run's own when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskIndex>,
        /// The goal as it is to be.
        goal: String,
        /// Who, and why.
        request: Request,
    },
}

/// Who asks something of a run, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Request {
    /// Tells it from others like it: one that is given out twice is done once.
    pub id: Uuid,
    /// Who.
    pub by: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

impl Input {
    /// What tells a request from others like it; nothing for what nobody asked for.
    #[must_use]
    pub const fn request(&self) -> Option<Uuid> {
        match self {
            Self::Goal { .. }
            | Self::Fork { .. }
            | Self::Refuse { .. }
            | Self::Agent { .. }
            | Self::Capacity
            | Self::Timer
            | Self::AgentLost { .. } => None,
            Self::Cancel { id, .. } => *id,
            Self::Pause { request }
            | Self::Resume { request, .. }
            | Self::Skip { request, .. }
            | Self::Redo { request, .. }
            | Self::Edit { request, .. } => Some(request.id),
        }
    }
}

/// A change of the run's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run exists. Always the first event.
    RunCreated {
        /// The goal.
        goal: Box<Goal>,
        /// Limits in force.
        limits: RunLimits,
        /// The version of the events of this run.
        event_version: u32,
        /// The run's secret, in hexadecimal.
        secret: String,
        /// When it must be finished.
        deadline: Millis,
    },
    /// The run goes on from where another one stood. Comes with its creation only.
    RunForked {
        /// Where that was.
        from: Origin,
        /// What was taken over.
        state: Box<Inherited>,
    },
    /// The planner's plan was refused.
    PlanRefused {
        /// Why, one line each.
        reasons: Vec<String>,
    },
    /// There is a plan.
    PlanAdopted {
        /// The plan.
        plan: Plan,
        /// What was repaired in the draft, one line each.
        repairs: Vec<String>,
    },
    /// An agent started a task.
    TaskStarted {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// The agent.
        agent: AgentId,
        /// Which try.
        attempt: Attempt,
        /// Where the queue's acknowledgement goes, to hand the task on when the agent dies.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        ack: String,
        /// The last step of the tries before it; work goes on after it.
        #[serde(default, skip_serializing_if = "is_zero")]
        after_step: u32,
    },
    /// The agent that had a task was lost. The task goes to another within the same generation.
    TaskOrphaned {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// Which try was lost.
        attempt: Attempt,
        /// The agent.
        agent: AgentId,
        /// How the loss is known.
        reason: String,
        /// The last step known to be in the record.
        #[serde(default, skip_serializing_if = "is_zero")]
        last_step: u32,
    },
    /// The agent that had a task handed it over in good order.
    TaskReleased {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// The agent.
        agent: AgentId,
        /// Which try.
        attempt: Attempt,
    },
    /// A task that agents kept dying of is given to nobody any more: it failed for good.
    TaskQuarantined {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// What speaks against it.
        evidence: Evidence,
    },
    /// A task ended well.
    TaskCompleted {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// Where its outcome stands.
        outcome: Seq,
    },
    /// A try of a task failed; it will be offered again.
    TaskRetried {
        /// The task.
        task: TaskId,
        /// The generation that failed.
        generation: Generation,
        /// Where its outcome stands, if there is one.
        outcome: Option<Seq>,
        /// Why.
        reason: String,
    },
    /// A task failed for good.
    TaskFailed {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// Where its outcome stands, if there is one.
        outcome: Option<Seq>,
        /// Why.
        reason: String,
    },
    /// A task cannot start because one it needs gave nothing.
    TaskBlocked {
        /// The task.
        task: TaskIndex,
        /// Why.
        reason: String,
    },
    /// A task was cut off.
    TaskAborted {
        /// The task.
        task: TaskId,
        /// Why.
        reason: String,
    },
    /// A task was left out by decision.
    TaskSkipped {
        /// The task.
        task: TaskIndex,
        /// Why.
        reason: String,
    },
    /// A task was put down where it stands, to be offered again: the next generation goes on from there.
    TaskParked {
        /// The task.
        task: TaskId,
        /// The generation that was put down.
        generation: Generation,
    },
    /// A task that was begun, or had ended, is to be done again from its beginning.
    TaskReopened {
        /// The task.
        task: TaskId,
        /// Why; whoever does it is told.
        reason: String,
    },
    /// Nothing is offered until the run is resumed.
    RunPaused {
        /// Who asked for it, and why.
        reason: String,
    },
    /// The run goes on.
    RunResumed {
        /// Who asked for it, and why.
        reason: String,
        /// When it must be finished, if that changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Millis>,
    },
    /// A goal was changed.
    GoalEdited {
        /// The task whose goal it is; the run's own when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskIndex>,
        /// The goal as it stands now.
        goal: String,
        /// Who changed it, and why.
        reason: String,
    },
    /// What somebody asked of the run cannot be done. Nothing else changes.
    RequestRefused {
        /// The request.
        id: Uuid,
        /// Why, and what to do.
        reason: String,
    },
    /// What was learnt from a task.
    Reflected {
        /// The task.
        task: TaskIndex,
        /// What was learnt.
        reflection: Reflection,
    },
    /// Somebody asks for a change of plan. Wishes are collected until the refinement is offered.
    RefinementWanted {
        /// Which refinement of the run, from 1.
        number: u32,
        /// Who asks, and why.
        reason: String,
    },
    /// The plan was changed.
    PlanRefined {
        /// Which refinement of the run, from 1.
        number: u32,
        /// What was changed, one line each.
        changes: Vec<String>,
        /// What was refused.
        refused: Vec<RefusedOperation>,
        /// The plan as it stands now.
        plan: Plan,
    },
    /// The report is being written.
    WritingBegan,
    /// The run ended well.
    RunCompleted {
        /// The answer.
        report: Report,
    },
    /// The run failed.
    RunFailed {
        /// Why, and what to do.
        reason: String,
    },
    /// The run was stopped.
    RunAborted {
        /// What stopped it.
        why: StopReason,
        /// In words.
        reason: String,
        /// What there was to report when it was stopped. Put together by rule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Box<Report>>,
    },
}

impl RunEvent {
    /// Whether nothing more happens in the run after this.
    #[must_use]
    pub const fn ends_run(&self) -> bool {
        matches!(self, Self::RunCompleted { .. } | Self::RunFailed { .. } | Self::RunAborted { .. })
    }

    /// The version of the run's events, if this one creates it.
    #[must_use]
    pub const fn version(&self) -> Option<u32> {
        if let Self::RunCreated { event_version, .. } = self { Some(*event_version) } else { None }
    }

    /// The name of the event, as it stands in the record.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunCreated { .. } => "run_created",
            Self::RunForked { .. } => "run_forked",
            Self::PlanRefused { .. } => "plan_refused",
            Self::PlanAdopted { .. } => "plan_adopted",
            Self::TaskStarted { .. } => "task_started",
            Self::TaskOrphaned { .. } => "task_orphaned",
            Self::TaskReleased { .. } => "task_released",
            Self::TaskQuarantined { .. } => "task_quarantined",
            Self::TaskCompleted { .. } => "task_completed",
            Self::TaskRetried { .. } => "task_retried",
            Self::TaskFailed { .. } => "task_failed",
            Self::TaskBlocked { .. } => "task_blocked",
            Self::TaskAborted { .. } => "task_aborted",
            Self::TaskSkipped { .. } => "task_skipped",
            Self::TaskParked { .. } => "task_parked",
            Self::TaskReopened { .. } => "task_reopened",
            Self::RunPaused { .. } => "run_paused",
            Self::RunResumed { .. } => "run_resumed",
            Self::GoalEdited { .. } => "goal_edited",
            Self::RequestRefused { .. } => "request_refused",
            Self::Reflected { .. } => "reflected",
            Self::RefinementWanted { .. } => "refinement_wanted",
            Self::PlanRefined { .. } => "plan_refined",
            Self::WritingBegan => "writing_began",
            Self::RunCompleted { .. } => "run_completed",
            Self::RunFailed { .. } => "run_failed",
            Self::RunAborted { .. } => "run_aborted",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Why a task is in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Evidence {
    /// The agents that died of it, in order.
    pub agents: Vec<AgentId>,
    /// The last step in the record; 0 when there is none.
    pub last_step: u32,
    /// In words.
    pub reason: String,
}

/// What stopped a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Somebody cancelled it.
    Cancelled,
    /// Its deadline passed.
    DeadlinePassed,
    /// Its budget was used up.
    BudgetExhausted,
    /// There was too much to do: it was not taken up at all.
    Refused,
}

/// Who writes about which generation of which task: the variable part of an agent's subject.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentKey {
    /// The agent's role.
    pub role: Role,
    /// The agent.
    pub agent: AgentId,
    /// The task.
    pub task: TaskId,
    /// The generation.
    pub generation: Generation,
}

/// What an agent reports of the task it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentEvent {
    /// It started.
    Started(Started),
    /// It is about to call a tool whose effect cannot be taken back.
    ToolStarted(ToolStarted),
    /// It took a step.
    Step(Step),
    /// It hands the task over in good order.
    Released(Released),
    /// The task ended.
    Outcome(Outcome),
}

/// The last token of an agent's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// See [`AgentEvent::Started`].
    Started,
    /// See [`AgentEvent::ToolStarted`].
    Tool,
    /// See [`AgentEvent::Step`].
    Step,
    /// See [`AgentEvent::Released`].
    Released,
    /// See [`AgentEvent::Outcome`].
    Outcome,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Started, Self::Tool, Self::Step, Self::Released, Self::Outcome];
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Started => "started",
            Self::Tool => "tool",
            Self::Step => "step",
            Self::Released => "released",
            Self::Outcome => "outcome",
        })
    }
}

impl FromStr for EventKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| format!("{text:?} is not a kind of agent event"))
    }
}

impl AgentEvent {
    /// The kind, as it stands in the subject.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::Started(_) => EventKind::Started,
            Self::ToolStarted(_) => EventKind::Tool,
            Self::Step(_) => EventKind::Step,
            Self::Released(_) => EventKind::Released,
            Self::Outcome(_) => EventKind::Outcome,
        }
    }
}

/// An agent started a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Started {
    /// Which try of this generation, from 1.
    pub attempt: Attempt,
    /// Where the queue's acknowledgement goes, so that an orchestrator can hand the task on when the agent dies.
    pub ack: String,
    /// The process.
    #[serde(default)]
    pub pid: u32,
    /// The machine.
    #[serde(default)]
    pub host: String,
    /// The last step that an earlier attempt journaled; work goes on after it.
    #[serde(default)]
    pub after_step: u32,
}

/// A tool whose effect cannot be taken back is about to be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolStarted {
    /// The step as far as it is known: the model's answer is journaled with it.
    pub step: Step,
    /// `run/task/gen/step`, for tools that can tell a repetition by it.
    pub idempotency_key: String,
}

/// A task is handed over in good order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Released {
    /// Why.
    pub reason: String,
    /// Whether the generation ends with this: nobody takes it over, the next one goes on from its last step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// What was used and has not been counted: all that the generation used when it is parked, else what was used for
    /// the step being taken, which no step holds.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub usage: Usage,
}
