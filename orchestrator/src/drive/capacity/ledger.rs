//! What is taken of each queue, by whom, and who waits.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use muster_shared::flow::Specialty;
use muster_shared::ids::{AgentId, Queue, Role, RunId};
use muster_shared::plan::tools::is_standard;
use muster_shared::run::RunState;
use muster_shared::time::Millis;
use muster_shared::wire::{Advertised, ExcludedAgent, Profile};

use super::ORCHESTRATOR;
use super::away::Away;
use super::exclusion::{AgentTry, FailureStreaks};
use super::served::Served;
use crate::decide::{in_hands, in_work};
use crate::drive::line::Line;
use crate::matching::{Candidate, Look, Roster};

/// Most runs that look again because one agent got free. The others have their place in line.
const MOST_LOOKING: usize = 16;

/// What a run has given out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holding {
    /// How many offers each queue holds of it, taken by an agent or not.
    pub(super) queues: BTreeMap<Queue, u32>,
    /// How many of them agents have in hand that took them from their role's queue.
    pub(super) hands: BTreeMap<AgentId, u32>,
}

impl Holding {
    /// What the run has given out.
    #[must_use]
    pub fn of(run: &RunState) -> Self {
        Self { queues: in_work(run), hands: in_hands(run) }
    }

    /// The agents that have something of it; twice who has some in its queue and some in hand.
    fn agents(&self) -> impl Iterator<Item = &AgentId> {
        let addressed = self.queues.keys().filter_map(|queue| match queue {
            Queue::Agent(agent) => Some(agent),
            Queue::Role(_) => None,
        });
        addressed.chain(self.hands.keys())
    }

    /// How much one agent has of it.
    pub(crate) fn of_agent(&self, agent: &AgentId) -> u32 {
        let addressed = self.queues.get(&Queue::Agent(agent.clone())).copied().unwrap_or(0);
        addressed.saturating_add(self.hands.get(agent).copied().unwrap_or(0))
    }
}

impl From<BTreeMap<Queue, u32>> for Holding {
    fn from(queues: BTreeMap<Queue, u32>) -> Self {
        Self { queues, hands: BTreeMap::new() }
    }
}

/// An agent as far as its slots go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seated {
    pub(super) role: Role,
    slots: u32,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) agents: HashMap<AgentId, Seated>,
    /// Slots of each role.
    slots: BTreeMap<Role, u32>,
    pub(super) held: HashMap<RunId, Holding>,
    /// What is taken of each queue by all runs: sums over `held` and `kept`.
    taken: HashMap<Queue, u32>,
    /// Who waits for places, by queue.
    waiting: BTreeMap<Queue, Line>,
    /// Priorities of runs that are not the usual one.
    pub(super) priorities: HashMap<RunId, i8>,
    /// What agents are for whose role a user defined.
    pub(super) specialists: HashMap<AgentId, Specialty>,
    /// What tool servers have, and who may use it.
    pub(super) served: Served,
    /// What is kept for runs: for those that were woken and have not had their turn yet, and for those that are having
    /// it. Taken as far as others go; a run itself may have what is kept for it.
    kept: HashMap<RunId, BTreeMap<Queue, u32>>,
    /// Agents that came, changed or had a task taken off them since runs that wait for others were told, and by whom if
    /// that run looks by itself.
    freed: Vec<(AgentId, Option<RunId>)>,
    /// Whom runs would ask by name, were they free.
    pub(super) looking: HashMap<RunId, Vec<Look>>,
    /// Runs that wait for one agent, or whoever is free, while another of its role got free.
    pub(super) may_look: BTreeSet<RunId>,
    /// The agents as matching sees them.
    pub(super) roster: Roster,
    /// Specialists of which the last one left lately.
    pub(super) away: Away,
    /// The failures of agents since their last success.
    streaks: FailureStreaks,
}

impl Ledger {
    pub(super) fn admit(&mut self, profile: &Profile) {
        if profile.role == ORCHESTRATOR {
            return;
        }
        // Tool servers are under names that are no roles.
        self.served.admit(profile);
        let Ok(role) = profile.role.parse::<Role>() else { return };
        self.note_tools(profile, &role);
        self.away.back(&role);
        let mut is_news = false;
        if let Some(candidate) = Candidate::of(profile) {
            is_news = self.roster.candidate(&candidate.agent) != Some(&candidate);
            self.roster.admit(candidate);
        }
        let seated = Seated { role, slots: profile.slots };
        if self.agents.get(&profile.agent) != Some(&seated) {
            self.agents.insert(profile.agent.clone(), seated);
            self.count();
            is_news = true;
        }
        if is_news {
            self.freed.push((profile.agent.clone(), None));
        }
    }

    /// What planners are told of an agent: what it is for, where a user defined its role, and its tools.
    fn note_tools(&mut self, profile: &Profile, role: &Role) {
        // A pattern says which tools of Muster's it may use; these are known without.
        let named = || profile.tools.iter().filter(|tool| !tool.contains('*'));
        let specialty = match (role, &profile.specialist) {
            (Role::Specialist(_), Some(specialist)) => {
                let Advertised { description, capabilities, contract } = (**specialist).clone();
                let (tools, gives) = (named().cloned().collect(), contract.gives());
                Some(Specialty { role: role.clone(), description, capabilities, tools, gives })
            }
            (Role::Specialist(_), None) => None,
            (
                Role::Planner
                | Role::Worker
                | Role::Reflector
                | Role::Refiner
                | Role::Researcher
                | Role::Writer,
                _,
            ) => Specialty::of_built_in(role, named().filter(|tool| !is_standard(tool))),
        };
        match specialty {
            Some(specialty) => {
                drop(self.specialists.insert(profile.agent.clone(), specialty.within_limits()))
            }
            None => drop(self.specialists.remove(&profile.agent)),
        }
    }

    /// The agent is gone. Returns the runs that have something in its own queue.
    pub(super) fn dismiss(&mut self, agent: AgentId) -> Vec<RunId> {
        let specialty = self.specialists.remove(&agent);
        self.served.dismiss(&agent);
        self.roster.dismiss(&agent);
        self.streaks.forget(&agent);
        if let Some(Seated { role, .. }) = self.agents.remove(&agent) {
            self.count();
            if !self.slots.contains_key(&role) {
                let specialty = specialty.filter(|known| !known.is_built_in());
                self.away.left(specialty.unwrap_or_else(|| Specialty::of_role(role)));
            }
        }
        let queue = Queue::Agent(agent);
        // Whoever waits for it has to look for another.
        let waited = self.waiting.remove(&queue).unwrap_or_default();
        let held = self.held.iter().filter(|(_, held)| held.queues.contains_key(&queue));
        held.map(|(run, _)| *run).chain(waited.runs()).collect()
    }

    /// Counts how tries ended with their agents. An agent that failed too many in a row gets no tasks for a while. Returns
    /// those that get none now.
    pub(super) fn count_tries(&mut self, ended: Vec<AgentTry>, now: Millis) -> Vec<ExcludedAgent> {
        ended.into_iter().for_each(|ended| self.streaks.count(ended, now));
        let mut excluded = Vec::new();
        for (agent, exclusion) in self.streaks.all(now) {
            if self.roster.exclude(agent, exclusion.is_some()) {
                self.freed.push((agent.clone(), None));
            }
            excluded.extend(exclusion.cloned());
        }
        excluded
    }

    /// Counts everything anew, since it depends on which roles agents have.
    fn count(&mut self) {
        self.slots.clear();
        for Seated { role, slots } in self.agents.values() {
            let all = self.slots.entry(role.clone()).or_default();
            *all = all.saturating_add(*slots);
        }
        self.taken.clear();
        self.roster.free_all();
        let held: Vec<Holding> = self.held.values().cloned().collect();
        for holding in &held {
            self.take(holding, u32::saturating_add);
        }
        let kept: Vec<Holding> = self.kept.values().cloned().map(Holding::from).collect();
        for holding in &kept {
            self.take(holding, u32::saturating_add);
        }
    }

    /// Adds to what is taken, or takes from it. What one agent has takes of its role's slots too.
    fn take(&mut self, holding: &Holding, change: fn(u32, u32) -> u32) {
        for (queue, count) in &holding.queues {
            if let Queue::Agent(agent) = queue
                && let Some(seated) = self.agents.get(agent)
            {
                let role = Queue::Role(seated.role.clone());
                self.take_of(role, *count, change);
            }
            self.take_of(queue.clone(), *count, change);
        }
        for (agent, count) in &holding.hands {
            self.take_of(Queue::Agent(agent.clone()), *count, change);
        }
    }

    fn take_of(&mut self, queue: Queue, count: u32, change: fn(u32, u32) -> u32) {
        let taken = change(self.taken.get(&queue).copied().unwrap_or(0), count);
        if let Queue::Agent(agent) = &queue {
            self.roster.take(agent, taken);
        }
        if taken == 0 {
            self.taken.remove(&queue);
        } else {
            self.taken.insert(queue, taken);
        }
    }

    /// Takes note of what a run holds. Unless it looks where else its tasks could go only after this, it is itself among
    /// those that are told of agents that get free by it.
    pub(super) fn hold(&mut self, run: RunId, held: Holding, looks_after: bool) {
        if let Some(before) = self.held.remove(&run) {
            self.take(&before, u32::saturating_sub);
            let freed = before.agents().filter(|agent| held.of_agent(agent) < before.of_agent(agent));
            self.freed.extend(freed.map(|agent| (agent.clone(), looks_after.then_some(run))));
        }
        self.take(&held, u32::saturating_add);
        self.held.insert(run, held);
    }

    /// Keeps places for a run.
    pub(super) fn keep(&mut self, run: RunId, queue: &Queue, count: u32) {
        if count > 0 {
            let more = BTreeMap::from([(queue.clone(), count)]);
            self.take(&more.into(), u32::saturating_add);
            *self.kept.entry(run).or_default().entry(queue.clone()).or_default() += count;
        }
    }

    /// Nothing is kept for the run any more. Returns what was.
    pub(super) fn take_back(&mut self, run: RunId) -> BTreeMap<Queue, u32> {
        let kept = self.kept.remove(&run).unwrap_or_default();
        self.take(&kept.clone().into(), u32::saturating_sub);
        kept
    }

    /// Nothing is kept for the run any more, and others may have it.
    pub(super) fn give_back(&mut self, run: RunId) {
        let kept = self.take_back(run);
        self.tell_of_unused(run, &kept, |_| 0);
    }

    /// Of what was kept for a run of single agents it used only so much. Others that looked meanwhile took these agents
    /// for busy.
    pub(super) fn tell_of_unused(
        &mut self,
        run: RunId,
        kept: &BTreeMap<Queue, u32>,
        used: impl Fn(&AgentId) -> u32,
    ) {
        let unused = kept.iter().filter_map(|(queue, count)| match queue {
            Queue::Agent(agent) if used(agent) < *count => Some((agent.clone(), Some(run))),
            Queue::Agent(_) | Queue::Role(_) => None,
        });
        self.freed.extend(unused);
    }

    /// What is kept for a run of single agents.
    pub(super) fn kept_agents(&self, run: RunId) -> BTreeMap<AgentId, u32> {
        let kept = self.kept.get(&run).into_iter().flatten();
        let of_agents = kept.filter_map(|(queue, count)| match queue {
            Queue::Agent(agent) => Some((agent.clone(), *count)),
            Queue::Role(_) => None,
        });
        of_agents.collect()
    }

    pub(super) fn stop_waiting(&mut self, run: RunId, which: impl Fn(&Queue) -> bool) {
        for (_, waiting) in self.waiting.iter_mut().filter(|(queue, _)| which(queue)) {
            waiting.leave(run);
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
    }

    pub(super) fn none(&self, held: &BTreeMap<Queue, u32>) -> BTreeMap<Queue, u32> {
        let roles = self.slots.keys().cloned().map(Queue::Role);
        let agents = held.keys().filter(|queue| matches!(queue, Queue::Agent(_)) && self.is_known(queue));
        roles.chain(agents.cloned()).map(|queue| (queue, 0)).collect()
    }

    pub(super) fn is_known(&self, queue: &Queue) -> bool {
        match queue {
            Queue::Role(role) => self.slots.contains_key(role),
            Queue::Agent(agent) => self.agents.contains_key(agent),
        }
    }

    /// Free slots; for a role one more, so that an agent that gets free finds its next task waiting.
    pub(super) fn room(&self, queue: &Queue) -> u32 {
        let slots = match queue {
            Queue::Role(role) => self.slots.get(role).map_or(0, |slots| slots.saturating_add(1)),
            Queue::Agent(agent) => self.agents.get(agent).map_or(0, |seated| seated.slots),
        };
        slots.saturating_sub(self.taken.get(queue).copied().unwrap_or(0))
    }

    pub(super) fn waiting_besides(&self, run: RunId, queue: &Queue) -> u32 {
        self.waiting.get(queue).map_or(0, |line| line.before(run, self.priority(run)))
    }

    /// Whoever waits with a lower priority waits on while a run takes so many places.
    pub(super) fn pass_over(&mut self, run: RunId, queue: &Queue, places: u32) {
        let own = self.priority(run);
        if let Some(line) = self.waiting.get_mut(queue) {
            line.pass_over(own, places);
        }
    }

    fn priority(&self, run: RunId) -> i8 {
        self.priorities.get(&run).copied().unwrap_or(0)
    }

    pub(super) fn line_up(&mut self, run: RunId, queue: &Queue) {
        let own = self.priority(run);
        self.waiting.entry(queue.clone()).or_default().join(run, own);
    }

    /// Runs whose turn it is: per queue as many as it has room for, in order. One offer is kept for
    /// each.
    pub(super) fn wake(&mut self) -> Vec<RunId> {
        self.tell_of_freed();
        let queues: Vec<Queue> = self.waiting.keys().cloned().collect();
        let mut woken = Vec::new();
        for queue in queues {
            while self.room(&queue) > 0 {
                let Some(run) = self.waiting.get_mut(&queue).and_then(Line::next) else { break };
                self.keep(run, &queue, 1);
                woken.push(run);
            }
        }
        woken.sort_unstable();
        woken.dedup();
        woken
    }

    /// Where an agent got free, runs that could ask it and wait for another of its role may look again: what they wait for
    /// was the best when they looked last. So may those that wait for the role's queue: it may have no room though an agent
    /// is free. Whoever freed it and looked then knows.
    fn tell_of_freed(&mut self) {
        for (agent, by) in std::mem::take(&mut self.freed) {
            let Some(role) = self.agents.get(&agent).map(|seated| &seated.role) else { continue };
            if self.room(&Queue::Agent(agent.clone())) == 0 {
                continue;
            }
            let waiting = self.waiting.iter().filter(|(queue, _)| match queue {
                Queue::Agent(other) => {
                    *other != agent && self.agents.get(other).is_some_and(|other| other.role == *role)
                }
                Queue::Role(other) => other == role,
            });
            let runs = waiting.filter(|_| !self.looking.is_empty()).flat_map(|(_, line)| line.runs());
            let looks = |run: &RunId| {
                let mut looks = self.looking.get(run).into_iter().flatten();
                looks.any(|look| self.roster.is_looked_for(&agent, look))
            };
            let runs = runs.filter(|run| Some(*run) != by).filter(looks);
            let runs: Vec<RunId> = runs.take(MOST_LOOKING).collect();
            self.may_look.extend(runs);
        }
    }
}
