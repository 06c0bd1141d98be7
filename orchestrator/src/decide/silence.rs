//! Agents that have a task and say nothing about it. That a process lives does not show that it works: what counts is
//! what it writes.

use std::time::Duration;

use muster_shared::flow::{Ending, FailureKind, TaskStatus};
use muster_shared::ids::{AgentId, Generation, TaskId};
use muster_shared::run::{RunState, TaskState};

use super::auction;
use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::failure::{self, Failure};
use super::loss;

/// How often the time is doubled at most.
const MOST_DOUBLINGS: u32 = 6;

/// How long whoever has a task may write nothing about it; nothing for as long as the task's time lasts. Each try that
/// ended so doubles it: who is slow and writes no steps comes to an end, too.
#[must_use]
pub fn patience(run: &RunState, state: &TaskState) -> Option<Duration> {
    let limit = run.limits.silence_ms;
    let watched = run.control.paused.is_none() && !run.status.is_ended();
    let doubled = limit.saturating_mul(1u64 << state.failures.min(MOST_DOUBLINGS));
    (watched && limit > 0 && state.status == TaskStatus::Processing).then(|| Duration::from_millis(doubled))
}

/// Takes a task from an agent that fell silent, for another to go on with.
pub(super) fn fell_silent(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    generation: Generation,
    (agent, for_ms): (&AgentId, u64),
) {
    let Some(state) = decision.task(task) else { return };
    let has_it = state.status == TaskStatus::Processing && state.agent.as_ref() == Some(agent);
    if !has_it || state.generation != generation {
        return;
    }
    let held_in = loss::place_in_queue(state);
    auction::broken(decision, task);
    let reason = format!("{agent} wrote nothing about it for {} s", for_ms / 1000);
    decision.effect(Effect::CancelTask {
        task: task.clone(),
        generation,
        agent: Some(agent.clone()),
        reason: reason.clone(),
    });
    if let Some((queue, ack)) = held_in {
        decision.effect(Effect::Withdraw { task: task.clone(), queue, ack });
    }
    let (kind, ending) = (FailureKind::FellSilent, Ending::AgentFailed);
    failure::failed(decision, task, Failure { kind, ending, outcome: None, part: None, reason });
}
