//! Auctions: agents bid for a task, and the best bid gets it (O1). After the contract net protocol (Smith, 1980): a call
//! for proposals, bids within a time limit, one award.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, Role, RunId, TaskId};
use crate::settings;
use crate::time::Millis;

/// A call for proposals: who wants to do this task, and at what price?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CallForProposals {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// Which auction of it; a bid names it.
    pub number: u32,
    /// The role that it is for.
    pub role: Role,
    /// A few words that name it.
    pub name: String,
    /// What is to be achieved.
    pub goal: String,
    /// Capabilities or tools that are needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// How long bids are taken, in milliseconds from now.
    pub window_ms: u64,
}

impl CallForProposals {
    /// Longest goal that is told, in characters.
    pub const MAX_GOAL: usize = 2_000;
}

/// An agent's answer to a call: what it takes to do the task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Bid {
    /// The agent.
    pub agent: AgentId,
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// Which auction of it.
    pub number: u32,
    /// How long it will take from the award on, in milliseconds.
    pub millis: u64,
    /// What it will cost, in millionths of a US dollar.
    #[serde(default)]
    pub cost_micros: u64,
    /// How sure the agent is that the result will be good, in percent.
    pub confidence: u8,
    /// Why, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Bid {
    /// Longest note, in characters.
    pub const MAX_NOTE: usize = 200;

    /// The same within its limits: what comes from the bus may be of any length.
    #[must_use]
    pub fn within_limits(mut self) -> Self {
        self.note = self.note.trim().chars().take(Self::MAX_NOTE).collect();
        self.confidence = self.confidence.min(100);
        self
    }
}

settings! {
    [default]
    /// How auctions are held.
    #[derive(Copy, PartialEq, Eq)]
    #[cfg_attr(test, derive(JsonSchema))]
    pub const struct AuctionRules {
        /// How much time counts against cost when bids are compared, in percent.
        pub time_weight: u8 = 50 => bounded(0, 100),
    }
}

/// The auction of a task, as its run knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Auction {
    /// Which auction of the task, from 1.
    pub number: u32,
    /// When it was opened.
    pub opened_at: Millis,
    /// When it is over, with or without bids.
    pub closes: Millis,
    /// The bids; empty while it is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bids: Vec<Bid>,
    /// How it ended; nothing while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub award: Option<Award>,
}

/// How an auction ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Award {
    /// Whose bid won; nobody's when the task is given out as any other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<AgentId>,
    /// When.
    pub at: Millis,
    /// Why, one line for each bid.
    pub reasons: Vec<String>,
    /// Whether what was done held the bid; nothing while that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
}
