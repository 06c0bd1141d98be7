//! What a run decides upon.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{AgentEvent, Request, SignedOrder};
use crate::flow::{Bid, Goal, Guarded, RunLimits};
use crate::ids::{AgentId, Generation, RunId, Seq, TaskId, TaskIndex};
use crate::run::ChildEnd;
use crate::run::fork::{Inherited, Origin};
use crate::track_record::Tally;

/// What a run decides upon. What comes from outside the record is copied into it here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
        /// What runs with a like goal taught.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lessons: Vec<String>,
        /// Who signed it, where goals are signed.
        #[serde(skip_serializing_if = "Option::is_none")]
        signed: Option<Box<SignedOrder>>,
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
        #[serde(skip_serializing_if = "Option::is_none")]
        signed: Option<Box<SignedOrder>>,
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
        #[serde(default, skip_serializing_if = "crate::is_default")]
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
    /// Somebody asks something of the run.
    Request(Request),
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
    /// Guards were asked, and this is what they said.
    GuardsSaid {
        /// Which question of the run.
        number: u32,
        /// Where the outcome stands that they were asked about, if it was one.
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Seq>,
        /// What they said.
        said: Guarded,
    },
    /// A trial was withdrawn elsewhere: by a person, or by what other runs found.
    TrialWithdrawn {
        /// The trial.
        trial: String,
        /// Why.
        reason: String,
    },
}

impl Input {
    /// What an agent's entry in the record is to whoever decides upon it.
    #[must_use]
    pub fn of_agent(seq: Seq, event: &AgentEvent) -> Self {
        if let AgentEvent::Unreadable(unreadable) = event {
            Self::Unreadable { seq, why: unreadable.why.clone() }
        } else {
            Self::Agent { seq }
        }
    }

    /// The entry of an agent that a decision on this input closes: nothing more is made of it after that.
    #[must_use]
    pub const fn closes(&self) -> Option<Seq> {
        match self {
            Self::Agent { seq } | Self::Unreadable { seq, .. } => Some(*seq),
            Self::GuardsSaid { outcome, .. } => *outcome,
            Self::Goal { .. }
            | Self::Fork { .. }
            | Self::Refuse { .. }
            | Self::Capacity
            | Self::Timer
            | Self::ChildEnded { .. }
            | Self::ContractBroken { .. }
            | Self::Bids { .. }
            | Self::AgentLost { .. }
            | Self::Silent { .. }
            | Self::TrialWithdrawn { .. }
            | Self::Request(_) => None,
        }
    }

    /// What tells a request from others like it; nothing for what nobody asked for.
    #[must_use]
    pub const fn request(&self) -> Option<Uuid> {
        if let Self::Request(request) = self { request.own_id() } else { None }
    }
}
