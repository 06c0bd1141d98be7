//! How many offers each queue takes: free slots and one more, fairly over runs.
//!
//! The queue is a short buffer; what does not fit waits in the runs, where order and fairness are decided.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use muster_bus::RegistryChange;
use muster_shared::flow::{Placement, Specialty};
use muster_shared::ids::{AgentId, Queue, Role, RunId};
use muster_shared::run::RunState;
use muster_shared::standing::{RunStanding, Standings};
use muster_shared::wire::{Advertised, Encoding, Profile};

use super::line::Line;
use crate::decide::{Place, Wanted, in_hands, in_work};
use crate::matching::{Candidate, Roster};

/// The role under which orchestrators announce themselves; they take no tasks.
pub(crate) const ORCHESTRATOR: &str = "orchestrator";

/// Most queues of which is remembered that their agents read JSON only.
const MOST_JSON_ONLY: usize = 4096;

/// What a run has given out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    /// How many offers each queue holds of it, taken by an agent or not.
    queues: BTreeMap<Queue, u32>,
    /// How many of them agents have in hand that took them from their role's queue.
    hands: BTreeMap<AgentId, u32>,
}

impl Holding {
    /// What the run has given out.
    pub(crate) fn of(run: &RunState) -> Self {
        Self { queues: in_work(run), hands: in_hands(run) }
    }
}

impl From<BTreeMap<Queue, u32>> for Holding {
    fn from(queues: BTreeMap<Queue, u32>) -> Self {
        Self { queues, hands: BTreeMap::new() }
    }
}

/// Counts what the runs of this orchestrator hold of each queue.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    inner: Mutex<Inner>,
}

/// An agent as far as its slots go.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seated {
    role: Role,
    slots: u32,
}

#[derive(Debug, Default)]
struct Inner {
    agents: HashMap<AgentId, Seated>,
    /// Slots of each role.
    slots: BTreeMap<Role, u32>,
    held: HashMap<RunId, Holding>,
    /// What is taken of each queue by all runs, kept for them: sums over `held` and `promised`.
    taken: HashMap<Queue, u32>,
    /// Who waits for places, by queue.
    waiting: BTreeMap<Queue, Line>,
    /// Priorities of runs that are not the usual one.
    priorities: HashMap<RunId, i8>,
    /// What agents are for whose role a user defined.
    specialists: HashMap<AgentId, Specialty>,
    /// Queues of agents that read JSON only. Kept when they leave: an offer outlives its agent.
    json_only: BTreeSet<Queue>,
    /// What is kept for runs that were woken and have not had their turn yet.
    promised: HashMap<RunId, BTreeMap<Queue, u32>>,
    /// The agents as matching sees them.
    roster: Roster,
}

impl Place for Capacity {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        // What asks for nothing in particular goes to whoever is free first: an offer to one agent that has to be made
        // again, because it died or the server did, may be paid for twice.
        let asks = !wanted.needs.is_empty() || !wanted.tools.is_empty() || !wanted.avoid.is_empty();
        let asks = asks || wanted.substance.as_ref().is_some_and(|substance| !substance.data.is_empty());
        let inner = self.lock();
        let is_placed = asks || wanted.awarded.is_some() || inner.roster.is_refused_by_some(wanted);
        is_placed.then(|| inner.roster.place(wanted))?
    }

    fn weighs_contracts(&self, role: &Role) -> bool {
        self.lock().roster.weighs_contracts(role)
    }
}

impl Capacity {
    /// Takes note of who is there. Returns the runs that can go on, those among them that wait for one that left.
    pub(crate) fn agents_changed(&self, change: RegistryChange) -> Vec<RunId> {
        let mut inner = self.lock();
        let mut left_behind = Vec::new();
        match change {
            RegistryChange::Joined(profile) | RegistryChange::Changed(profile) => inner.admit(&profile),
            RegistryChange::Left(agent) => left_behind = inner.dismiss(agent),
        }
        let mut woken = inner.wake();
        woken.extend(left_behind);
        woken.sort_unstable();
        woken.dedup();
        woken
    }

    /// Whether the agent is there, as far as the registry has told.
    pub(crate) fn knows(&self, agent: &AgentId) -> bool {
        self.lock().agents.contains_key(agent)
    }

    /// How many agents of a role are there.
    pub(crate) fn agents_of(&self, role: &Role) -> usize {
        self.lock().agents.values().filter(|seated| seated.role == *role).count()
    }

    /// The agents that are there, as far as the registry has told.
    pub(crate) fn agents(&self) -> Vec<AgentId> {
        self.lock().agents.keys().cloned().collect()
    }

    /// How many agents are there.
    pub(crate) fn count_agents(&self) -> usize {
        self.lock().agents.len()
    }

    /// Judges the agents by what is known of their work.
    pub(crate) fn judge(&self, standings: &Standings) {
        self.lock()
            .roster
            .judge(|candidate| standings.of(&candidate.agent, &candidate.role.to_string(), &candidate.model));
    }

    /// What agents did, with the roles and models of those that are there.
    pub(crate) fn named(&self, mut standing: RunStanding) -> RunStanding {
        let inner = self.lock();
        for agent in &mut standing.agents {
            if let Some(candidate) = inner.roster.candidate(&agent.agent) {
                agent.role = candidate.role.to_string();
                agent.model.clone_from(&candidate.model);
            }
        }
        standing
    }

    /// The queues that are known, none with room: what a decision is tried with first. Of those of single agents,
    /// those that the run has something in.
    pub(crate) fn none(&self, run: Option<&RunState>) -> BTreeMap<Queue, u32> {
        self.lock().none(&run.map(in_work).unwrap_or_default())
    }

    /// What the roles are for that users defined, one entry each.
    pub(crate) fn specialists(&self) -> Vec<Specialty> {
        let inner = self.lock();
        let agents: BTreeMap<&AgentId, &Specialty> = inner.specialists.iter().collect();
        let mut by_role: BTreeMap<&Role, Specialty> = BTreeMap::new();
        for specialty in agents.into_values() {
            let known = by_role.entry(&specialty.role).or_insert_with(|| specialty.clone());
            // Agents of one role may differ in what they can do: what any of them can counts.
            add_missing(&mut known.capabilities, &specialty.capabilities);
            add_missing(&mut known.tools, &specialty.tools);
            add_missing(&mut known.gives, &specialty.gives);
        }
        by_role.into_values().take(Specialty::MOST).map(Specialty::within_limits).collect()
    }

    /// Whether an agent of this queue reads JSON only.
    pub(crate) fn reads_json_only(&self, queue: &Queue) -> bool {
        self.lock().json_only.contains(queue)
    }

    /// Takes note of a run's priority: what gets free is given to those of higher priority first.
    pub(crate) fn rank(&self, run: RunId, priority: i8) {
        let mut inner = self.lock();
        match priority {
            0 => drop(inner.priorities.remove(&run)),
            other => drop(inner.priorities.insert(run, other)),
        }
    }

    /// Takes note of what a run holds, and lends it as much more as it wants: what was promised to it, and what is
    /// free beyond one offer for every other run that waits. What it does not use goes back with
    /// [`Self::settle`].
    pub(crate) fn lend(
        &self,
        run: RunId,
        held: impl Into<Holding>,
        wanted: &BTreeMap<Queue, u32>,
    ) -> BTreeMap<Queue, u32> {
        let mut inner = self.lock();
        let mut held = held.into();
        let promised = inner.break_promise(run);
        let mut lent = inner.none(&held.queues);
        inner.hold(run, held.clone());
        for (queue, wanted) in wanted {
            let free = inner.room(queue);
            let mine = promised.get(queue).copied().unwrap_or(0).min(free);
            let spare = (free - mine).saturating_sub(inner.waiting_besides(run, queue));
            let share = (mine + spare).min(*wanted);
            inner.pass_over(run, queue, share.saturating_sub(mine));
            *held.queues.entry(queue.clone()).or_default() += share;
            inner.hold(run, held.clone());
            // Of an agent that is gone there is nothing to lend.
            if matches!(queue, Queue::Role(_)) || inner.is_known(queue) {
                lent.insert(queue.clone(), share);
            }
        }
        lent
    }

    /// Takes note of what a run holds and still wants. Returns the runs that can go on.
    pub(crate) fn settle(
        &self,
        run: RunId,
        held: impl Into<Holding>,
        wanted: &BTreeMap<Queue, u32>,
    ) -> Vec<RunId> {
        let mut inner = self.lock();
        inner.break_promise(run);
        inner.hold(run, held.into());
        inner.stop_waiting(run, |queue| !wanted.contains_key(queue));
        for queue in wanted.keys() {
            inner.line_up(run, queue);
        }
        inner.wake()
    }

    /// Forgets a run. Returns the runs that can go on.
    pub(crate) fn forget(&self, run: RunId) -> Vec<RunId> {
        let mut inner = self.lock();
        inner.hold(run, Holding::default());
        inner.held.remove(&run);
        inner.break_promise(run);
        inner.stop_waiting(run, |_| true);
        inner.priorities.remove(&run);
        inner.wake()
    }

    /// Counts are whole after every statement that changes them, so a panic elsewhere does not spoil them.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add_missing(list: &mut Vec<String>, more: &[String]) {
    for one in more {
        if !list.contains(one) {
            list.push(one.clone());
        }
    }
}

impl Inner {
    fn admit(&mut self, profile: &Profile) {
        if profile.role == ORCHESTRATOR {
            return;
        }
        let Ok(role) = profile.role.parse::<Role>() else { return };
        let queues = [Queue::Role(role.clone()), Queue::Agent(profile.agent.clone())];
        if profile.encoding == Encoding::Json && self.json_only.len() < MOST_JSON_ONLY {
            self.json_only.extend(queues);
        }
        if let (Some(specialist), Role::Specialist(_)) = (&profile.specialist, &role) {
            let Advertised { description, capabilities, contract } = (**specialist).clone();
            // A pattern says which tools of Muster's it may use; these are known without.
            let tools = profile.tools.iter().filter(|tool| !tool.contains('*')).cloned().collect();
            let specialty =
                Specialty { role: role.clone(), description, capabilities, tools, gives: contract.gives() };
            self.specialists.insert(profile.agent.clone(), specialty.within_limits());
        }
        if let Some(candidate) = Candidate::of(profile) {
            self.roster.admit(candidate);
        }
        let seated = Seated { role, slots: profile.slots };
        if self.agents.get(&profile.agent) != Some(&seated) {
            self.agents.insert(profile.agent.clone(), seated);
            self.count();
        }
    }

    /// The agent is gone. Returns the runs that have something in its own queue.
    fn dismiss(&mut self, agent: AgentId) -> Vec<RunId> {
        self.specialists.remove(&agent);
        self.roster.dismiss(&agent);
        if self.agents.remove(&agent).is_some() {
            self.count();
        }
        let queue = Queue::Agent(agent);
        // Whoever waits for it has to look for another.
        let waited = self.waiting.remove(&queue).unwrap_or_default();
        let held = self.held.iter().filter(|(_, held)| held.queues.contains_key(&queue));
        held.map(|(run, _)| *run).chain(waited.runs()).collect()
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
        let promised: Vec<Holding> = self.promised.values().cloned().map(Holding::from).collect();
        for holding in &promised {
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

    fn hold(&mut self, run: RunId, held: Holding) {
        if let Some(before) = self.held.remove(&run) {
            self.take(&before, u32::saturating_sub);
        }
        self.take(&held, u32::saturating_add);
        self.held.insert(run, held);
    }

    fn promise(&mut self, run: RunId, queue: &Queue) {
        let one = BTreeMap::from([(queue.clone(), 1)]);
        self.take(&one.into(), u32::saturating_add);
        *self.promised.entry(run).or_default().entry(queue.clone()).or_default() += 1;
    }

    /// Nothing is kept for the run any more. Returns what was.
    fn break_promise(&mut self, run: RunId) -> BTreeMap<Queue, u32> {
        let promised = self.promised.remove(&run).unwrap_or_default();
        self.take(&promised.clone().into(), u32::saturating_sub);
        promised
    }

    fn stop_waiting(&mut self, run: RunId, which: impl Fn(&Queue) -> bool) {
        for (_, waiting) in self.waiting.iter_mut().filter(|(queue, _)| which(queue)) {
            waiting.leave(run);
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
    }

    fn none(&self, held: &BTreeMap<Queue, u32>) -> BTreeMap<Queue, u32> {
        let roles = self.slots.keys().cloned().map(Queue::Role);
        let agents = held.keys().filter(|queue| matches!(queue, Queue::Agent(_)) && self.is_known(queue));
        roles.chain(agents.cloned()).map(|queue| (queue, 0)).collect()
    }

    fn is_known(&self, queue: &Queue) -> bool {
        match queue {
            Queue::Role(role) => self.slots.contains_key(role),
            Queue::Agent(agent) => self.agents.contains_key(agent),
        }
    }

    /// Free slots; for a role one more, so that an agent that gets free finds its next task waiting.
    fn room(&self, queue: &Queue) -> u32 {
        let slots = match queue {
            Queue::Role(role) => self.slots.get(role).copied().unwrap_or(0).saturating_add(1),
            Queue::Agent(agent) => self.agents.get(agent).map_or(0, |seated| seated.slots),
        };
        slots.saturating_sub(self.taken.get(queue).copied().unwrap_or(0))
    }

    fn waiting_besides(&self, run: RunId, queue: &Queue) -> u32 {
        self.waiting.get(queue).map_or(0, |line| line.before(run, self.priority(run)))
    }

    /// Whoever waits with a lower priority waits on while a run takes so many places.
    fn pass_over(&mut self, run: RunId, queue: &Queue, places: u32) {
        let own = self.priority(run);
        if let Some(line) = self.waiting.get_mut(queue) {
            line.pass_over(own, places);
        }
    }

    fn priority(&self, run: RunId) -> i8 {
        self.priorities.get(&run).copied().unwrap_or(0)
    }

    fn line_up(&mut self, run: RunId, queue: &Queue) {
        let own = self.priority(run);
        self.waiting.entry(queue.clone()).or_default().join(run, own);
    }

    /// Runs whose turn it is: per queue as many as it has room for, in order. One offer is kept for
    /// each.
    fn wake(&mut self) -> Vec<RunId> {
        let queues: Vec<Queue> = self.waiting.keys().cloned().collect();
        let mut woken = Vec::new();
        for queue in queues {
            while self.room(&queue) > 0 {
                let Some(run) = self.waiting.get_mut(&queue).and_then(Line::next) else { break };
                self.promise(run, &queue);
                woken.push(run);
            }
        }
        woken.sort_unstable();
        woken.dedup();
        woken
    }
}

#[cfg(test)]
#[path = "capacity_tests.rs"]
mod tests;
