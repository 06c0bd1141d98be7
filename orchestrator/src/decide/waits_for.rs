//! What a run waits for, as far as its state and the processes of the fleet tell. For whoever looks on: no decision is made
//! by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use muster_shared::flow::TaskStatus;
use muster_shared::ids::{AgentId, QuestionId, Queue, Role, RunId, TaskId};
use muster_shared::run::RunState;
use muster_shared::wire::Profile;
use serde::Serialize;

use super::schedule;

/// The role under which orchestrators are in the registry.
const ORCHESTRATOR: &str = "orchestrator";

/// Most tasks that are named in words.
const MOST_NAMED: usize = 4;

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

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitsFor {
    /// An orchestrator: nothing is decided meanwhile.
    Orchestrator,
    /// Somebody to let it go on.
    Resume {
        /// Why it is paused.
        reason: String,
    },
    /// An answer of a person.
    Answer {
        /// The question.
        question: QuestionId,
        /// What is asked.
        text: String,
    },
    /// A process of a role that nobody has.
    Role {
        /// The role.
        role: Role,
        /// The tasks that wait for it.
        tasks: Vec<TaskId>,
    },
    /// A free place: everybody of the role is busy, or about to begin.
    Place {
        /// The role.
        role: Role,
        /// The tasks that wait for it.
        tasks: Vec<TaskId>,
    },
    /// The end of a run of its own.
    Run {
        /// The run.
        run: RunId,
        /// The task that waits for it.
        task: TaskId,
    },
}

impl WaitsFor {
    /// Whether nothing of it comes by itself: somebody has to start a process.
    #[must_use]
    pub const fn is_lacking(&self) -> bool {
        matches!(self, Self::Orchestrator | Self::Role { .. })
    }
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orchestrator => f.write_str(
                "an orchestrator, and none is in this fleet: start one with `muster orchestrator`",
            ),
            Self::Resume { reason } => write!(f, "`muster resume`: it is paused ({reason})"),
            Self::Answer { question, text } => write!(f, "the answer to question {question}: {text}"),
            Self::Role { role: role @ Role::Specialist(_), tasks } => write!(
                f,
                "a {role}, and none is in this fleet (for {}): start one with `muster agent {role}.agent.md`, or the \
                 program that it is",
                named(tasks)
            ),
            Self::Role { role, tasks } => write!(
                f,
                "a {role}, and none is in this fleet (for {}): start one with `muster agent {role}`",
                named(tasks)
            ),
            Self::Place { role, tasks } => write!(f, "a free {role} (for {})", named(tasks)),
            Self::Run { run, task } => write!(f, "run {} within it (for {task})", run.short()),
        }
    }
}

/// Tasks by their ids, the first few of many.
pub(super) fn named(tasks: &[TaskId]) -> String {
    let names: Vec<String> = tasks.iter().take(MOST_NAMED).map(TaskId::to_string).collect();
    let more = tasks.len().saturating_sub(MOST_NAMED);
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}

/// What a run waits for: nothing when it has ended, or when all there is to do is being done.
#[must_use]
pub fn waits_for(run: &RunState, pool: &AgentsByRole) -> Vec<WaitsFor> {
    if run.status.is_ended() {
        return Vec::new();
    }
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

/// The tasks that wait for somebody to take them, by role: those in a queue, and those that are due and not offered yet
/// because their queue has no room.
fn by_role(run: &RunState) -> BTreeMap<Role, BTreeSet<TaskId>> {
    let mut waiting: BTreeMap<Role, BTreeSet<TaskId>> = BTreeMap::new();
    let queued = run.tasks.iter().filter(|(task, state)| {
        let is_offered = state.status == TaskStatus::Queued && matches!(state.queue, Some(Queue::Role(_)));
        is_offered && run.seen_with(task).is_none()
    });
    let due = if run.control.paused.is_some() { Vec::new() } else { schedule::due(run) };
    for task in queued.map(|(task, _)| task.clone()).chain(due) {
        if let Some(role) = schedule::role(run, &task) {
            waiting.entry(role).or_default().insert(task);
        }
    }
    waiting
}
