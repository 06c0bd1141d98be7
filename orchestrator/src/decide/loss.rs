//! What follows when an agent is lost: its tasks go to others at once, and a task that has killed too many agents goes
//! to nobody any more.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::flow::{Ending, FailureKind, TaskStatus};
use muster_shared::ids::{AgentId, Generation, Queue, Seq, TaskId};
use muster_shared::run::event::{RunFailed, TaskOrphaned, TaskQuarantined, TaskReleased};
use muster_shared::run::{AgentEvent, AgentKey, Evidence, RunState, TaskState};

use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::response::{self, Circumstances};
use super::{draft_review, failure, outcome, peers, replan};

/// An agent that is gone, and what its tasks had come to.
pub(super) struct Loss<'a> {
    pub(super) agent: &'a AgentId,
    /// How it is known.
    pub(super) reason: &'a str,
    /// The last step in the record of those of its tasks for which that makes a difference.
    pub(super) steps: &'a BTreeMap<TaskId, u32>,
    /// How many tasks of other runs it had in hand.
    pub(super) elsewhere: u32,
}

/// Hands on what the agent had. Of a task that it does not hold any more, nothing follows.
pub(super) fn agent_lost(decision: &mut DecisionBuilder<'_>, loss: &Loss<'_>) {
    let Some(run) = decision.open() else { return };
    let held = run.tasks.iter().filter(|(_, state)| holds(state, loss.agent));
    let held: Vec<TaskId> = held.map(|(task, _)| task.clone()).collect();
    let others = u32::try_from(held.len().saturating_sub(1)).unwrap_or(u32::MAX);
    for task in held {
        orphan(decision, &task, others.saturating_add(loss.elsewhere), loss);
    }
}

fn holds(state: &TaskState, agent: &AgentId) -> bool {
    state.status == TaskStatus::Processing && state.agent.as_ref() == Some(agent)
}

/// Takes a task from the agent, which had so many others beside it.
fn orphan(decision: &mut DecisionBuilder<'_>, task: &TaskId, others: u32, loss: &Loss<'_>) {
    let Some(run) = decision.open() else { return };
    let Some(state) = run.tasks.get(task) else { return };
    let (generation, attempt, held_in) = (state.generation, state.attempt, place_in_queue(state));
    decision.emit(TaskOrphaned {
        task: task.clone(),
        generation,
        attempt,
        agent: loss.agent.clone(),
        reason: loss.reason.to_owned(),
        last_step: loss.steps.get(task).copied().unwrap_or(state.last_step),
        beside: others,
    });
    let Some(run) = decision.open() else { return };
    let Some(state) = run.tasks.get(task) else { return };
    if state.is_deadly(&run.limits) {
        return quarantine(decision, task, held_in, loss.reason);
    }
    // It is offered anew, to somebody who has nothing else in hand.
    if state.is_to_be_alone(&run.limits) {
        return;
    }
    // Without the subject the queue gives the task out again when its time is up.
    if let Some((queue, ack)) = held_in {
        decision.effect(Effect::HandOn { task: task.clone(), queue, ack });
    }
}

/// Where the acknowledgement of the last try goes, with the queue that it was taken from.
pub(super) fn place_in_queue(state: &TaskState) -> Option<(Queue, String)> {
    state.queue.clone().zip(state.ack.clone())
}

/// Takes the task out of the fleet's hands, with the evidence, and leaves the rest to the plan.
fn quarantine(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    held_in: Option<(Queue, String)>,
    last: &str,
) {
    let Some(state) = decision.task(task) else { return };
    let (generation, queue) = (state.generation, state.queue.clone());
    let agents: Vec<AgentId> = state.deaths.iter().map(|death| death.agent.clone()).collect();
    let tries = u32::try_from(agents.len()).unwrap_or(u32::MAX);
    let evidence =
        Evidence { reason: why(&agents, state.last_step, last), last_step: state.last_step, agents };
    let reason = evidence.reason.clone();
    let circumstances = Circumstances { out_of_time: false, part: None, outcome: None };
    response::answer(decision, task, FailureKind::AgentsDied, &reason, circumstances);
    decision.emit(TaskQuarantined { task: task.clone(), generation, evidence: evidence.clone() });
    if let Some((queue, ack)) = held_in {
        decision.effect(Effect::Withdraw { task: task.clone(), queue, ack });
    }
    if let Some(queue) = queue {
        decision.effect(Effect::Bury { task: task.clone(), generation, queue, evidence });
    }
    if let Some(reason) = failure::fatal(task, tries, &reason) {
        if draft_review::rescue(decision, &reason) {
            return;
        }
        return decision.emit(RunFailed { reason });
    }
    if let TaskId::Leaf(index) = task
        && !index.is_member()
    {
        replan::after_failure(decision, index, Ending::AgentFailed, &reason);
        outcome::want_refinement(decision, index, &reason);
    }
}

fn why(agents: &[AgentId], last_step: u32, last: &str) -> String {
    let names: Vec<&str> = agents.iter().map(AgentId::as_str).collect();
    let place = match last_step {
        0 => "before its first step".to_owned(),
        step => format!("after step {step}"),
    };
    format!(
        "{} agents died one after the other while they worked on it, {place} ({}; the last: {last}). It is not given \
         to another: do it in another way, or in smaller parts",
        agents.len(),
        names.join(", ")
    )
}

/// Takes note that an agent handed a task over in good order. That is no death.
pub(super) fn released(decision: &mut DecisionBuilder<'_>, key: AgentKey) {
    let AgentKey { agent, task, generation, .. } = key;
    let Some(state) = decision.task(&task) else { return };
    if holds(state, &agent) {
        let attempt = state.attempt;
        decision.emit(TaskReleased { task, generation, agent, attempt });
    }
}

/// What whoever takes a run over says once more: it may have been lost with whoever was to say it.
#[must_use]
pub fn say_again(run: &RunState) -> Vec<Effect> {
    let told = run.tasks.keys().filter_map(|task| peers::tell_again(run, task));
    hand_on_again(run).into_iter().chain(told).collect()
}

/// What has the queues give out again what nobody started: it may be in the hands of somebody who died, or the word that
/// it was handed on may have been lost with the queue's server. What waits for one agent is not meant.
#[must_use]
pub fn hand_on_again(run: &RunState) -> Vec<Effect> {
    let waits = |task: &TaskId, state: &TaskState| {
        state.status == TaskStatus::Queued
            && !state.is_to_be_alone(&run.limits)
            && !starting(run).any(|key| key.task == *task)
    };
    let waiting = run.tasks.iter().filter(|(task, state)| waits(task, state));
    let hand_on = |(task, state): (&TaskId, &TaskState)| match (&state.ack, &state.queue) {
        (Some(ack), Some(queue)) => {
            Some(Effect::HandOn { task: task.clone(), queue: queue.clone(), ack: ack.clone() })
        }
        (None, Some(queue @ Queue::Role(_))) => {
            Some(Effect::HandOnUnstarted { task: task.clone(), queue: queue.clone() })
        }
        (None, Some(Queue::Agent(_))) | (_, None) => None,
    };
    waiting.filter_map(hand_on).collect()
}

/// Who has tasks of the run in hand, as far as the record tells, decided upon or not.
#[must_use]
pub fn holders(run: &RunState) -> BTreeSet<AgentId> {
    let decided = run.tasks.values().filter(|state| state.status == TaskStatus::Processing);
    let decided = decided.filter_map(|state| state.agent.clone());
    decided.chain(starting(run).map(|key| key.agent.clone())).collect()
}

/// The tasks in an agent's hands that one more death ends. Whether the agent took a step before it died then decides,
/// so that has to be looked up in the record.
#[must_use]
pub fn last_chances(run: &RunState, agent: &AgentId) -> Vec<(TaskId, Generation)> {
    let limit = usize::try_from(run.limits.max_deaths).unwrap_or(usize::MAX);
    let held = |task: &TaskId, state: &TaskState| {
        holds(state, agent) || starting(run).any(|key| key.task == *task && key.agent == *agent)
    };
    let at_end = run.tasks.iter().filter(|(_, state)| limit > 0 && state.deaths.len() + 1 >= limit);
    at_end
        .filter(|(task, state)| held(task, state))
        .map(|(task, state)| (task.clone(), state.generation))
        .collect()
}

/// Whose start no decision has named yet.
fn starting(run: &RunState) -> impl Iterator<Item = &AgentKey> {
    let started = run.pending.iter().filter(|(_, (_, event))| matches!(event, AgentEvent::Started(_)));
    let counts = |seq: Seq, key: &AgentKey| {
        run.tasks
            .get(&key.task)
            .filter(|state| state.generation == key.generation && state.status.is_in_work())
            .filter(|state| !is_with_another(state, key))
            .is_some_and(|state| had_it_then(state, &key.agent, seq).is_none())
    };
    started.filter(move |(seq, (key, _))| counts(**seq, key)).map(|(_, (key, _))| key)
}

/// Who had a task while somebody else wrote about it, and was lost since.
pub(super) fn had_it_then<'r>(state: &'r TaskState, agent: &AgentId, seq: Seq) -> Option<&'r AgentId> {
    state.lost.as_ref().filter(|lost| lost.had_it_then(agent, seq)).map(|lost| &lost.agent)
}

fn is_with_another(state: &TaskState, key: &AgentKey) -> bool {
    state.agent.as_ref().is_some_and(|holder| *holder != key.agent)
}

/// Who has a task that this is to begin, if another has. It keeps the task, unless it is lost.
#[must_use]
pub fn holder_against(run: &RunState, seq: Seq) -> Option<&AgentId> {
    let (key, event) = run.pending.get(&seq)?;
    let state = run.tasks.get(&key.task).filter(|state| state.generation == key.generation)?;
    let begins = matches!(event, AgentEvent::Started(_)) && state.status == TaskStatus::Processing;
    state.agent.as_ref().filter(|_| begins && is_with_another(state, key))
}
