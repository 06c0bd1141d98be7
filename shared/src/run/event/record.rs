//! What stands in the record: entries, and the decisions among them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{AgentEvent, AgentKey, Input, RunEvent};
use crate::flow::{Goal, Placement, Specialty, Step, TaskOffered};
use crate::ids::{AgentId, Queue, RunId, Seq};
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

impl RecordEvent {
    /// The changes of the run's state; none if it is not a decision.
    #[must_use]
    pub fn events(&self) -> &[RunEvent] {
        if let Self::Decided(decided) = self { &decided.events } else { &[] }
    }

    /// The goal of the run that it creates.
    #[must_use]
    pub fn goal(&self) -> Option<&Goal> {
        if let Self::Decided(decided) = self { decided.goal() } else { None }
    }

    /// The step of a task that it records.
    #[must_use]
    pub fn step(&self) -> Option<&Step> {
        if let Self::Agent(_, event) = self { event.step() } else { None }
    }

    /// The offer in it.
    #[must_use]
    pub fn into_offer(self) -> Option<TaskOffered> {
        match self {
            Self::Decided(decided) => decided.offer.map(|offer| *offer),
            Self::Offered(offer) => Some(offer),
            Self::Agent(..) => None,
        }
    }
}

/// A decision: its inputs, and the events that follow from them. It stands at the head of every batch that
/// an orchestrator writes; several offers follow in the same batch, a single one stands inside.
///
/// Replay feeds the inputs back with `now` and `capacity`: no other clock or randomness reaches a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The newest position that orchestrators had written about the run before: what its write was fenced by. A record
    /// in which that is missing has lost it. 0 for the first decision.
    pub after: Seq,
    /// Offers that each queue could still take when this was decided.
    #[serde(default)]
    pub capacity: BTreeMap<Queue, u32>,
    /// What the roles are for that users defined, where that made a difference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub specialists: Vec<Specialty>,
    /// To whom tasks go, where not simply to whoever of their role is free.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<Placement>,
    /// How many offers follow in this batch.
    pub offers: u32,
    /// Whether the decision goes on in the next batch. The batches of such a chain name the same inputs;
    /// only the last of them closes these, so that a chain that was cut off can be decided anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// What follows, apart from the offers.
    pub events: Vec<RunEvent>,
    /// The only offer of this decision; it comes after the events. Decision and offer are then one message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<Box<TaskOffered>>,
}

impl Decided {
    /// The goal of the run that it creates.
    #[must_use]
    pub fn goal(&self) -> Option<&Goal> {
        self.events.iter().find_map(|event| match event {
            RunEvent::RunCreated(created) => Some(&*created.goal),
            _ => None,
        })
    }

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
            || self.events.iter().any(|event| matches!(event, RunEvent::RunCreated(_)))
    }
}
