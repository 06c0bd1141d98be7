//! Tasks that go to whoever bids best.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use crate::flow::{Auction, Award, Bid};
use crate::ids::{AgentId, TaskId, TaskIndex};
use crate::run::apply::phase::require;
use crate::run::apply::task::executable;
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::state::{Phase, RunState};
use crate::time::Millis;

/// Agents are asked to bid for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct AuctionOpened {
    /// The task.
    pub task: TaskIndex,
    /// Which auction of it: the generation that it is for.
    pub number: u32,
    /// When it is over, with or without bids.
    pub closes: Millis,
}

impl Payload for AuctionOpened {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.to_task_id())
    }

    fn text(&self, _: Words<'_>) -> String {
        format!("agents are asked to bid for {}", self.task)
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        require(run, &[Phase::Executing])?;
        let (number, closes) = (self.number, self.closes);
        let auction = Auction { number, opened_at: now, closes, bids: Vec::new(), award: None };
        let found = executable(run, &self.task.to_task_id())?;
        found.auction = Some(Box::new(auction));
        Ok(())
    }
}

/// The auction of a task is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskAwarded {
    /// The task.
    pub task: TaskIndex,
    /// Which auction of it.
    pub number: u32,
    /// The bids that came in time.
    pub bids: Vec<Bid>,
    /// Whose bid won; nobody's when the task is given out as any other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<AgentId>,
    /// Why, one line for each bid.
    pub reasons: Vec<String>,
}

impl Payload for TaskAwarded {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.to_task_id())
    }

    fn text(&self, _: Words<'_>) -> String {
        let whose = self.to.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string);
        format!("{} is awarded to {whose}: {}", self.task, self.reasons.join("; "))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        let found = auction(run, &self.task).filter(|auction| auction.number == self.number);
        let found = found.ok_or_else(|| ApplyError::NoSuchAuction { task: self.task.clone() })?;
        found.bids.clone_from(&self.bids);
        let (to, reasons) = (self.to.clone(), self.reasons.clone());
        found.award = Some(Award { to, at: now, reasons, kept: None });
        Ok(())
    }
}

/// It shows whether an agent held its bid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct BidHeld {
    /// The task.
    pub task: TaskIndex,
    /// The agent.
    pub agent: AgentId,
    /// What it had promised, in milliseconds.
    pub promised_ms: u64,
    /// What it took, in milliseconds.
    pub took_ms: u64,
    /// Whether that is within what bids may be overrun by.
    pub kept: bool,
}

impl Payload for BidHeld {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.to_task_id())
    }

    fn text(&self, _: Words<'_>) -> String {
        let Self { task, agent, promised_ms, took_ms, kept } = self;
        let how = if *kept { "held" } else { "did not hold" };
        format!("{agent} {how} its bid for {task}: {took_ms} ms, promised {promised_ms} ms")
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        if let Some(tally) = run.tally(&self.agent) {
            let count = if self.kept { &mut tally.bids_kept } else { &mut tally.bids_broken };
            *count = count.saturating_add(1);
        }
        let award = auction(run, &self.task).and_then(|auction| auction.award.as_mut());
        let award = award.filter(|award| award.to.as_ref() == Some(&self.agent));
        award.ok_or_else(|| ApplyError::NoSuchAuction { task: self.task.clone() })?.kept = Some(self.kept);
        Ok(())
    }
}

fn auction<'a>(run: &'a mut RunState, task: &TaskIndex) -> Option<&'a mut Auction> {
    run.planned_mut(task)?.auction.as_deref_mut()
}
