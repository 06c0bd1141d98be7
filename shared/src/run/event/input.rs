//! What a run decides upon.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::AgentEvent;
use crate::flow::{Bid, Goal, PlanDraft, RunLimits};
use crate::ids::{AgentId, Generation, QuestionId, RunId, Seq, TaskId, TaskIndex};
use crate::run::ChildEnd;
use crate::run::fork::{Inherited, Origin};
use crate::track_record::Tally;

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
            default = "crate::run::first_event_version",
            skip_serializing_if = "crate::run::is_first_event_version"
        )]
        event_version: u32,
        /// What runs with a like goal taught.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lessons: Vec<String>,
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
            default = "crate::run::first_event_version",
            skip_serializing_if = "crate::run::is_first_event_version"
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
    /// An agent's entry in the record that could not be read.
    Unreadable {
        /// Its place.
        seq: Seq,
        /// What was wrong with it, as whoever decided saw it: another build may see it otherwise.
        why: String,
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
        /// How many tasks of other runs it had in hand, as far as that is known.
        #[serde(default, skip_serializing_if = "is_zero")]
        elsewhere: u32,
    },
    /// An agent has written nothing about a task for so long that it counts as silent, though it may live.
    Silent {
        /// The task.
        task: TaskId,
        /// The generation that it works on.
        generation: Generation,
        /// The agent.
        agent: AgentId,
        /// For how long, in milliseconds.
        for_ms: u64,
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
    /// Somebody approves what the run asks about: its plan, or whether to go on.
    Approve {
        /// The plan as it is to be, if it was edited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Box<PlanDraft>>,
        /// Who, and why.
        request: Request,
    },
    /// Somebody rejects what the run asks about; the reason says what is to be different.
    Reject {
        /// Who, and why.
        request: Request,
    },
    /// A run that was begun for a task of this one has ended.
    ChildEnded {
        /// The run.
        child: RunId,
        /// How.
        end: Box<ChildEnd>,
    },
    /// The result in an outcome does not fit what its agent promises: comes before the outcome itself.
    ContractBroken {
        /// Where the outcome stands.
        outcome: Seq,
        /// What does not fit, one line each.
        faults: Vec<String>,
    },
    /// The time for bids for a task is over.
    Bids {
        /// The task.
        task: TaskIndex,
        /// Which auction of it.
        number: u32,
        /// The bids that came.
        bids: Vec<Bid>,
        /// What those who bid did in earlier runs, as far as that is known.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        track_records: BTreeMap<AgentId, Tally>,
    },
    /// Somebody answers a question of the run.
    Answer {
        /// The question.
        question: QuestionId,
        /// The answer, or one of the choices by its words or its number.
        text: String,
        /// Who, and why.
        request: Request,
    },
    /// Somebody writes a value of the shared context.
    SetContext {
        /// Its key.
        key: String,
        /// What it is.
        value: Value,
        /// The version that whoever writes it has seen; 0 when there was none.
        #[serde(default)]
        version: u32,
        /// Who, and why.
        request: Request,
    },
}

impl Input {
    /// What an agent's entry in the record is to whoever decides upon it.
    #[must_use]
    pub fn of_agent(seq: Seq, event: &AgentEvent) -> Self {
        match event {
            AgentEvent::Unreadable(unreadable) => Self::Unreadable { seq, why: unreadable.why.clone() },
            AgentEvent::Started(_)
            | AgentEvent::ToolStarted(_)
            | AgentEvent::Step(_)
            | AgentEvent::Released(_)
            | AgentEvent::Outcome(_) => Self::Agent { seq },
        }
    }

    /// What tells a request from others like it; nothing for what nobody asked for.
    #[must_use]
    pub const fn request(&self) -> Option<Uuid> {
        match self {
            Self::Goal { .. }
            | Self::Fork { .. }
            | Self::Refuse { .. }
            | Self::Agent { .. }
            | Self::Unreadable { .. }
            | Self::Capacity
            | Self::Timer
            | Self::AgentLost { .. }
            | Self::Silent { .. }
            | Self::ChildEnded { .. }
            | Self::ContractBroken { .. }
            | Self::Bids { .. } => None,
            Self::Cancel { id, .. } => *id,
            Self::Pause { request }
            | Self::Resume { request, .. }
            | Self::Skip { request, .. }
            | Self::Redo { request, .. }
            | Self::Edit { request, .. }
            | Self::Approve { request, .. }
            | Self::Reject { request }
            | Self::SetContext { request, .. }
            | Self::Answer { request, .. } => Some(request.id),
        }
    }
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}
