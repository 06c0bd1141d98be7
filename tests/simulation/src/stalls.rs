//! The rule that no run of a random fleet stalls while its agents could do something for it.

use std::collections::BTreeMap;

use muster_shared::flow::TaskStatus;
use muster_shared::ids::{AgentId, Queue, Role, RunId, TaskId};
use muster_shared::plan::order;
use muster_shared::run::{Phase, RunState, TaskState};

use crate::agenda::Time;
use crate::broker::LEASE;
use crate::checks::how_it_stands;
use crate::fleet::Conduct;
use crate::scenario::Kind;
use crate::world::World;

/// Longest time without an event while something could be done.
const LIMIT: Time = 10_000;
/// How often it is checked.
const INTERVAL: Time = 500;

/// Since when runs could have continued.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    next: Time,
    /// When everything that died is replaced: an orchestrator keeps its runs until its lease expires.
    replaced: Time,
    since: BTreeMap<RunId, Time>,
}

impl Stalls {
    /// A process died, and another one starts at this time.
    pub(crate) fn died(&mut self, starts: Time, is_orchestrator: bool) {
        let lease = if is_orchestrator { LEASE * 3 / 2 } else { 0 };
        self.replaced = self.replaced.max(starts + lease);
    }
}

struct OnlineAgent {
    role: Role,
    free: usize,
    /// Whether it does its work. Any other may get no tasks for a while, since it failed several.
    is_sound: bool,
}

struct Online(BTreeMap<AgentId, OnlineAgent>);

impl Online {
    /// Whether an agent of the role has a free slot, other than those that failed the task before.
    fn is_idle(&self, role: &Role, task: Option<&TaskState>) -> bool {
        self.others(task).any(|agent| agent.role == *role && agent.is_sound && agent.free > 0)
    }

    /// The agents that did not fail the task before.
    fn others(&self, task: Option<&TaskState>) -> impl Iterator<Item = &OnlineAgent> {
        let avoided = task.map_or(&[][..], |task| task.avoid.as_slice());
        let may = move |agent: &AgentId| avoided.iter().all(|avoided| avoided.agent != *agent);
        self.0.iter().filter(move |(agent, _)| may(agent)).map(|(_, agent)| agent)
    }

    /// Whether an agent that is online has started the task.
    fn works_on(&self, run: &RunState, (task, state): (&TaskId, &TaskState)) -> bool {
        starter(run, task, state).is_some_and(|agent| self.0.contains_key(agent))
    }

    /// Whether a task waits for a busy agent: of some role no agent is idle, except for those that failed the task before.
    fn is_busy(&self, task: Option<&TaskState>) -> bool {
        self.others(task).any(|agent| agent.free == 0 && !self.is_idle(&agent.role, task))
    }
}

impl World {
    /// Checks all runs that have not ended.
    pub(crate) fn look_for_stalls(&mut self) {
        if self.now < self.stalls.next {
            return;
        }
        self.stalls.next = self.now + INTERVAL;
        let online = self.online();
        let mut found = Vec::new();
        for (run, newest) in self.checks.open_runs() {
            let Some(how) = could_go_on(run, &online) else {
                self.stalls.since.remove(&run.id);
                continue;
            };
            let since = *self.stalls.since.entry(run.id).or_insert(self.now);
            if self.now > since.max(newest).max(self.stalls.replaced) + LIMIT {
                let missing =
                    Role::BUILT_IN.into_iter().filter(|role| !online.0.values().any(|one| one.role == *role));
                found.push(format!(
                    "no run stalls: {} since {newest}: {how}; missing: {:?}; it {}",
                    run.id.short(),
                    missing.collect::<Vec<_>>(),
                    how_it_stands(run)
                ));
            }
        }
        found.into_iter().for_each(|how| self.checks.break_rule(how));
    }

    fn online(&self) -> Online {
        let places = self.places.iter().enumerate().filter(|(_, place)| place.process.is_some());
        let agents = places.filter_map(|(at, place)| {
            let Kind::Agent { role, slots, conduct, .. } = &self.scenario.places[at] else { return None };
            let agent = self.scenario.agent(at, place.life)?;
            let held = self.checks.open_runs().map(|(run, _)| {
                let holders = run.tasks.iter().map(|(task, state)| holder(run, task, state));
                holders.filter(|holder| *holder == Some(&agent)).count()
            });
            let is_sound = matches!(conduct, Conduct::Sound | Conduct::Slow);
            let free = slots.saturating_sub(held.sum());
            Some((agent, OnlineAgent { role: role.clone(), free, is_sound }))
        });
        Online(agents.collect())
    }
}

/// The agent that has started a task, whether or not a decision names it yet.
fn starter<'a>(run: &'a RunState, task: &TaskId, state: &'a TaskState) -> Option<&'a AgentId> {
    match state.status {
        TaskStatus::Processing => state.agent.as_ref(),
        TaskStatus::Queued => {
            let seen = run.seen.get(task).filter(|seen| seen.generation == state.generation)?;
            seen.agent.as_ref()
        }
        _ => None,
    }
}

/// The agent that has started a task, or that is to start it.
fn holder<'a>(run: &'a RunState, task: &TaskId, state: &'a TaskState) -> Option<&'a AgentId> {
    starter(run, task, state).or(match (state.status, &state.queue) {
        (TaskStatus::Queued, Some(Queue::Agent(agent))) => Some(agent),
        _ => None,
    })
}

/// What could be done for a run now, or why it waits for nothing; nothing if it waits for something that will come.
fn could_go_on(run: &RunState, online: &Online) -> Option<String> {
    if run.control.paused.is_some() || run.is_held() {
        return None;
    }
    if let Some(leaf) = offerable(run, online) {
        return Some(format!("{leaf} could be offered to an idle agent"));
    }
    let open = run.tasks.values().filter(|task| !task.status.is_ended());
    let waits = run.open_questions().next().is_some()
        || run.children.values().any(|child| child.end.is_none())
        || run.tasks.iter().any(|task| online.works_on(run, task))
        || open.map(Some).chain([None]).any(|task| online.is_busy(task))
        // Members are different agents: one that has another member is idle, but no other member waits for it.
        || !run.groups.is_empty() && online.0.values().any(|agent| agent.free == 0);
    (!waits).then(|| "it waits for nothing that could come".to_owned())
}

/// A leaf that was not offered although it is ready and an agent of its role is idle.
fn offerable<'a>(run: &'a RunState, online: &Online) -> Option<&'a TaskId> {
    let plan =
        run.plan.as_ref().filter(|_| run.phase == Phase::Executing && !run.planning.is_replanning())?;
    // A refinement in progress may change what comes next, and so may a conflict.
    let refines = |(task, state): (&TaskId, &TaskState)| {
        let waits = state.status.is_in_work() && online.is_idle(&Role::Refiner, None);
        matches!(task, TaskId::Refine(_)) && (waits || online.works_on(run, (task, state)))
    };
    if run.open_conflicts().next().is_some() || run.tasks.iter().any(refines) {
        return None;
    }
    let ready = order::ready(plan, &run.statuses());
    let mut leaves =
        run.tasks.iter().filter(|(task, _)| task.as_leaf().is_some_and(|leaf| ready.contains(leaf)));
    let is_idle = |task: &TaskId, state: &TaskState| {
        let planned = task.as_leaf().and_then(|leaf| plan.tasks.get(leaf));
        planned.is_some_and(|planned| online.is_idle(&planned.role, Some(state)))
    };
    leaves.find(|(task, state)| is_idle(task, state)).map(|(task, _)| task)
}
