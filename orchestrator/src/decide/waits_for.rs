//! What a run waits for, as far as its state and the processes of the fleet tell. For whoever looks on: no decision is made
//! by it.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::flow::TaskStatus;
use muster_shared::ids::{AgentId, Queue, Role, RunId, TaskId};
use muster_shared::run::RunState;
use muster_shared::wire::Profile;

use super::schedule;
use super::wait_reason::WaitsFor;

/// The role under which orchestrators are in the registry.
const ORCHESTRATOR: &str = "orchestrator";

/// Who is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentsByRole {
    agents: BTreeMap<AgentId, String>,
}

impl<'a> FromIterator<&'a Profile> for AgentsByRole {
    fn from_iter<T: IntoIterator<Item = &'a Profile>>(profiles: T) -> Self {
        let agents = profiles.into_iter().map(|profile| (profile.agent.clone(), profile.role.clone()));
        Self { agents: agents.collect() }
    }
}

impl AgentsByRole {
    /// Whether anybody of a role is there; `orchestrator` is one of them.
    #[must_use]
    pub fn has(&self, role: &str) -> bool {
        self.agents.values().any(|there| there == role)
    }

    /// An agent came, or changed what it says of itself.
    pub fn joined(&mut self, profile: &Profile) {
        self.agents.insert(profile.agent.clone(), profile.role.clone());
    }

    /// An agent left.
    pub fn left(&mut self, agent: &AgentId) {
        self.agents.remove(agent);
    }

    /// The roles that come with Muster, and the orchestrator, of which nobody is there.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let all = std::iter::once(ORCHESTRATOR.to_owned()).chain(Role::BUILT_IN.iter().map(Role::to_string));
        all.filter(|role| !self.has(role)).collect()
    }
}

/// What a run waits for: nothing when it has ended, or when all there is to do is being done.
#[must_use]
pub fn waits_for(run: &RunState, pool: &AgentsByRole) -> Vec<WaitsFor> {
    if run.status.is_ended() {
        return Vec::new();
    }
    let run = &*run.as_seen();
    let mut found = Vec::new();
    if !pool.has(ORCHESTRATOR) {
        found.push(WaitsFor::Orchestrator);
    }
    if let Some(paused) = &run.control.paused {
        found.push(WaitsFor::Resume { reason: paused.reason.clone() });
    }
    let questions = run.open_questions();
    found.extend(
        questions.map(|(question, state)| WaitsFor::Answer { question, text: state.question.text.clone() }),
    );
    for (role, tasks) in by_role(run) {
        let (role, tasks) = (role, tasks.into_iter().collect());
        found.push(match pool.has(&role.to_string()) {
            true => WaitsFor::Place { role, tasks },
            false => WaitsFor::Role { role, tasks },
        });
    }
    let waiting = run.tasks.iter().filter_map(|(task, state)| Some((task, state.waiting.as_ref()?.for_run?)));
    found.extend(waiting.map(|(task, run)| WaitsFor::Run { run, task: task.clone() }));
    found
}

/// The same, with the reasons of child runs instead of these runs, as far as the observer knows them.
#[must_use]
pub fn waits_for_within<'a>(
    run: &RunState,
    pool: &AgentsByRole,
    child: &dyn Fn(RunId) -> Option<&'a RunState>,
) -> Vec<WaitsFor> {
    let reasons = |waits: WaitsFor| {
        let WaitsFor::Run { run, task } = &waits else { return vec![waits] };
        let inner = child(*run).map(|state| waits_for_within(state, pool, child)).unwrap_or_default();
        let within = |inner| WaitsFor::Within { run: *run, task: task.clone(), waits: Box::new(inner) };
        let inner: Vec<WaitsFor> = inner.into_iter().map(within).collect();
        if inner.is_empty() { vec![waits] } else { inner }
    };
    waits_for(run, pool).into_iter().flat_map(reasons).collect()
}

/// The tasks that wait for somebody to take them, by role: those in a queue, and those that are due and not offered yet
/// because their queue has no room.
fn by_role(run: &RunState) -> BTreeMap<Role, BTreeSet<TaskId>> {
    let mut waiting: BTreeMap<Role, BTreeSet<TaskId>> = BTreeMap::new();
    let queued = run.tasks.iter().filter(|(_, state)| {
        state.status == TaskStatus::Queued && matches!(state.queue, Some(Queue::Role(_)))
    });
    let due = if run.control.paused.is_some() { Vec::new() } else { schedule::due(run) };
    for task in queued.map(|(task, _)| task.clone()).chain(due) {
        if let Some(role) = schedule::role(run, &task) {
            waiting.entry(role).or_default().insert(task);
        }
    }
    waiting
}
