//! Agents that failed several tasks in a row: they get no tasks for a while if others of their role are online.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use muster_shared::flow::{Ending, FailureKind};
use muster_shared::ids::{AgentId, Generation, RunId, TaskId};
use muster_shared::run::event::{TaskCompleted, TaskFailed, TaskRetried};
use muster_shared::run::{RunEvent, RunState};
use muster_shared::time::Millis;
use muster_shared::wire::{ExcludedAgent, SetAside};

/// Tasks that an agent may fail in a row from one cause before it is excluded. Two may be chance.
const MOST_IN_A_ROW: usize = 3;

/// How long an agent is excluded. Then it gets tasks again, and the next failure from the same cause excludes it again.
const EXCLUSION: Duration = Duration::from_secs(60);

/// How a try of a task ended with an agent: the cause, the try, and the reason of a failure. Absent: the task is done.
pub(super) type AgentTry = (AgentId, Option<(FailureKind, (RunId, TaskId, Generation), String)>);

/// The failures of agents since their last success.
#[derive(Debug, Default)]
pub(super) struct FailureStreaks(HashMap<AgentId, Streak>);

#[derive(Debug, Default)]
struct Streak {
    failures: BTreeMap<FailureKind, BTreeSet<(RunId, TaskId, Generation)>>,
    excluded: Option<ExcludedAgent>,
}

/// The effect of an event of a run on the record of an agent.
pub(super) fn ended(run: &RunState, event: &RunEvent) -> Option<AgentTry> {
    let (task, generation, reason) = match event {
        RunEvent::TaskCompleted(TaskCompleted { task, .. }) => {
            return Some((run.tasks.get(task)?.ended_by.clone()?, None));
        }
        RunEvent::TaskRetried(TaskRetried { task, generation, outcome: Some(_), reason, .. })
        | RunEvent::TaskFailed(TaskFailed { task, generation, outcome: Some(_), reason }) => {
            (task, *generation, reason)
        }
        _ => return None,
    };
    let state = run.tasks.get(task)?;
    let outcome = state.outcome.as_ref()?;
    let kind = state.answers.last.unwrap_or_else(|| FailureKind::of(outcome));
    // Whatever stops an agent before its first step, it is not the task.
    let never_began = outcome.steps.is_empty() && matches!(outcome.ending, Ending::Blocked | Ending::GaveUp);
    let failure = (kind, (run.id, task.clone(), generation), reason.clone());
    (never_began || kind.is_of_the_agent()).then_some((state.ended_by.clone()?, Some(failure)))
}

impl FailureStreaks {
    /// Counts how a try ended.
    pub(super) fn count(&mut self, (agent, failure): AgentTry, now: Millis) {
        let Some((kind, id, reason)) = failure else {
            if let Some(streak) = self.0.get_mut(&agent) {
                *streak = Streak::default();
            }
            return;
        };
        let streak = self.0.entry(agent.clone()).or_default();
        let failures = streak.failures.entry(kind).or_default();
        if failures.insert(id) && failures.len() >= MOST_IN_A_ROW && streak.excluded.is_none() {
            let reason = format!("it failed {} tasks in a row: {reason}", failures.len());
            tracing::warn!(%agent, reason, "agent excluded: it gets no tasks if others of its role are online");
            let reason = reason.chars().take(SetAside::MAX_REASON).collect();
            streak.excluded = Some(ExcludedAgent { agent, reason, until: now.after(EXCLUSION).0 });
        }
    }

    /// The agents, each with its exclusion if that is not over.
    pub(super) fn all(&mut self, now: Millis) -> impl Iterator<Item = (&AgentId, Option<&ExcludedAgent>)> {
        self.0.iter_mut().map(move |(agent, streak)| {
            drop(streak.excluded.take_if(|one| one.until <= now.0));
            (agent, streak.excluded.as_ref())
        })
    }

    /// The agent left.
    pub(super) fn forget(&mut self, agent: &AgentId) {
        self.0.remove(agent);
    }
}
