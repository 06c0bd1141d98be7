//! Agents that failed several tasks in a row: they get no tasks for a while if others of their role are online.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use muster_shared::flow::{Ending, FailureKind};
use muster_shared::ids::{AgentId, Generation, RunId, TaskId};
use muster_shared::run::event::{TaskCompleted, TaskFailed, TaskRetried, TaskTakenBack};
use muster_shared::run::{RunEvent, RunState};
use muster_shared::time::Millis;
use muster_shared::wire::ExcludedAgent;

/// Tasks that an agent may fail in a row from one cause before it is excluded. Two may be chance.
const MOST_IN_A_ROW: usize = 3;

/// How long an agent is excluded. Then it gets tasks again, and the next failure from the same cause excludes it again.
const EXCLUSION: Duration = Duration::from_secs(60);

/// A try of a task.
type Try = (RunId, TaskId, Generation);

/// How a try ended with an agent.
#[derive(Debug)]
pub(super) struct AgentTry {
    agent: AgentId,
    id: Try,
    /// The cause and the reason of a failure. Absent: the task is done.
    failure: Option<(FailureKind, String)>,
}

/// The failures of agents since their last success.
#[derive(Debug, Default)]
pub(super) struct FailureStreaks(HashMap<AgentId, Streak>);

#[derive(Debug, Default)]
struct Streak {
    causes: BTreeMap<FailureKind, BTreeSet<Try>>,
    excluded: Option<ExcludedAgent>,
}

/// The tries that ended with these events of a run, as far as they tell something of their agents.
pub(super) fn ended(run: &RunState, events: &[RunEvent]) -> Vec<AgentTry> {
    events.iter().filter_map(|event| ended_with(run, event)).collect()
}

fn ended_with(run: &RunState, event: &RunEvent) -> Option<AgentTry> {
    let id = |task: &TaskId, generation: Generation| (run.id, task.clone(), generation);
    match event {
        RunEvent::TaskCompleted(TaskCompleted { task, generation, .. }) => {
            let agent = run.tasks.get(task)?.ended_by.clone()?;
            Some(AgentTry { agent, id: id(task, *generation), failure: None })
        }
        RunEvent::TaskRetried(TaskRetried { task, generation, outcome: Some(_), reason, .. })
        | RunEvent::TaskFailed(TaskFailed { task, generation, outcome: Some(_), reason }) => {
            let state = run.tasks.get(task)?;
            let (agent, outcome) = (state.ended_by.clone()?, state.outcome.as_ref()?);
            let kind = state.answers.last.unwrap_or_else(|| FailureKind::of(outcome));
            // Whatever stops an agent before its first step, it is not the task.
            let never_began =
                outcome.steps.is_empty() && matches!(outcome.ending, Ending::Blocked | Ending::GaveUp);
            let failure = Some((kind, reason.clone())).filter(|_| never_began || kind.is_of_the_agent());
            failure.is_some().then_some(AgentTry { agent, id: id(task, *generation), failure })
        }
        RunEvent::TaskTakenBack(TaskTakenBack { task, generation, agent, reason }) => {
            let failure = Some((FailureKind::FellSilent, reason.clone()));
            Some(AgentTry { agent: agent.clone(), id: id(task, *generation), failure })
        }
        _ => None,
    }
}

impl FailureStreaks {
    /// Counts a try. Returns the agent if it is excluded from now on, or gets tasks again, and which of both.
    pub(super) fn count(&mut self, ended: AgentTry, now: Millis) -> Option<(AgentId, bool)> {
        let AgentTry { agent, id, failure } = ended;
        let Some((kind, reason)) = failure else {
            let before = self.0.remove(&agent)?;
            return before.excluded.map(|_| (agent, false));
        };
        let streak = self.0.entry(agent.clone()).or_default();
        let failures = streak.causes.entry(kind).or_default();
        if !failures.insert(id) || failures.len() < MOST_IN_A_ROW || streak.excluded.is_some() {
            return None;
        }
        let reason = format!("it failed {} tasks in a row: {reason}", failures.len());
        let reason = reason.chars().take(ExcludedAgent::MAX_REASON).collect();
        tracing::warn!(%agent, reason, "agent excluded: it gets no tasks if others of its role are online");
        let until = now.after(EXCLUSION).0;
        streak.excluded = Some(ExcludedAgent { agent: agent.clone(), reason, until });
        Some((agent, true))
    }

    /// The agents whose exclusion is over.
    pub(super) fn end(&mut self, now: Millis) -> Vec<AgentId> {
        let over = |streak: &&mut Streak| streak.excluded.as_ref().is_some_and(|one| one.until <= now.0);
        let over = self.0.values_mut().filter(over);
        over.filter_map(|streak| streak.excluded.take()).map(|one| one.agent).collect()
    }

    /// The agent left.
    pub(super) fn forget(&mut self, agent: &AgentId) {
        self.0.remove(agent);
    }

    /// The agents that are excluded.
    pub(super) fn excluded(&self) -> impl Iterator<Item = &ExcludedAgent> {
        self.0.values().filter_map(|streak| streak.excluded.as_ref())
    }
}
