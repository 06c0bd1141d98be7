//! The rule that no run of a random fleet stalls while its agents could do something for it.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::flow::TaskStatus;
use muster_shared::ids::{AgentId, Queue, Role, RunId, TaskId};
use muster_shared::plan::order;
use muster_shared::run::{Phase, RunState, TaskState};

use crate::agenda::Time;
use crate::broker::LEASE;
use crate::checks::how_it_stands;
use crate::fleet::Conduct;
use crate::messages::Life;
use crate::scenario::Kind;
use crate::world::World;

/// Longest time without an event while something could be done.
const LIMIT: Time = 10_000;
/// The same for a run with a task that was tried before: it waits for another agent, and an agent that failed several tasks
/// gets none for a minute.
const LIMIT_AFTER_TRIES: Time = 75_000;
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

/// The agents that are online, each with its role and its free slots.
struct Online(BTreeMap<AgentId, (Role, usize)>);

impl Online {
    /// Whether an agent of the role has a free slot, other than those that failed the task before.
    fn is_idle(&self, role: &Role, task: Option<&TaskState>) -> bool {
        let fits = |agent: &AgentId| {
            task.is_none_or(|task| !task.avoid.iter().any(|avoided| avoided.agent == *agent))
        };
        self.0.iter().any(|(agent, (of, free))| of == role && *free > 0 && fits(agent))
    }

    /// Whether an agent that is online has started the task.
    fn works_on(&self, run: &RunState, (task, state): (&TaskId, &TaskState)) -> bool {
        starter(run, task, state).is_some_and(|agent| self.0.contains_key(agent))
    }

    /// Whether all agents of some role have no free slot.
    fn is_busy(&self) -> bool {
        let idle: BTreeSet<&Role> =
            self.0.values().filter(|(_, free)| *free > 0).map(|(role, _)| role).collect();
        self.0.values().any(|(role, _)| !idle.contains(role))
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
            let limit = if run.tasks.values().any(was_tried) { LIMIT_AFTER_TRIES } else { LIMIT };
            if self.now > since.max(newest).max(self.stalls.replaced) + limit {
                let missing =
                    Role::BUILT_IN.into_iter().filter(|role| !online.0.values().any(|(of, _)| of == role));
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
            let who = Life { place: at, number: place.life };
            let agent = self.scenario.agent(who.place, who.number)?;
            let held = self.checks.open_runs().map(|(run, _)| {
                let holders = run.tasks.iter().map(|(task, state)| holder(run, task, state));
                holders.filter(|holder| *holder == Some(&agent)).count()
            });
            let held = held.sum();
            // The others may get no tasks for a while, since they failed several.
            let slots = if matches!(conduct, Conduct::Sound | Conduct::Slow) { *slots } else { 0 };
            Some((agent, (role.clone(), slots.saturating_sub(held))))
        });
        Online(agents.collect())
    }
}

fn was_tried(task: &TaskState) -> bool {
    task.status == TaskStatus::Created && task.generation.0 > 0
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
    starter(run, task, state).or_else(|| match (state.status, &state.queue) {
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
    let waits = run.open_questions().next().is_some()
        || run.children.values().any(|child| child.end.is_none())
        || run.tasks.iter().any(|task| online.works_on(run, task))
        || online.is_busy();
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
