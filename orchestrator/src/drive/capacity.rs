//! How many offers each queue takes: free slots and one more, fairly over runs.
//!
//! The queue is a short buffer; what does not fit waits in the runs, where order and fairness are decided.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use muster_bus::RegistryChange;
use muster_shared::flow::Specialty;
use muster_shared::ids::{AgentId, Queue, Role, RunId};
use muster_shared::wire::{Advertised, Encoding, Profile};

/// The role under which orchestrators announce themselves; they take no tasks.
pub(crate) const ORCHESTRATOR: &str = "orchestrator";

/// Most queues of which is remembered that their agents read JSON only.
const MOST_JSON_ONLY: usize = 4096;

/// Counts what the runs of this orchestrator hold of each queue.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    agents: HashMap<AgentId, (Queue, u32)>,
    held: HashMap<RunId, BTreeMap<Queue, u32>>,
    waiting: BTreeMap<Queue, VecDeque<RunId>>,
    /// What agents are for whose role a user defined.
    specialists: HashMap<AgentId, Specialty>,
    /// Queues of agents that read JSON only. Kept when they leave: an offer outlives its agent.
    json_only: BTreeSet<Queue>,
    /// What is kept for runs that were woken and have not had their turn yet.
    promised: HashMap<RunId, BTreeMap<Queue, u32>>,
}

impl Capacity {
    /// Takes note of who is there. Returns the runs that can go on.
    pub(crate) fn agents_changed(&self, change: RegistryChange) -> Vec<RunId> {
        let mut inner = self.lock();
        match change {
            RegistryChange::Joined(profile) | RegistryChange::Changed(profile) => inner.admit(&profile),
            RegistryChange::Left(agent) => {
                inner.agents.remove(&agent);
                inner.specialists.remove(&agent);
            }
        }
        inner.wake()
    }

    /// Whether the agent is there, as far as the registry has told.
    pub(crate) fn knows(&self, agent: &AgentId) -> bool {
        self.lock().agents.contains_key(agent)
    }

    /// The agents that are there, as far as the registry has told.
    pub(crate) fn agents(&self) -> Vec<AgentId> {
        self.lock().agents.keys().cloned().collect()
    }

    /// The queues that are known, none with room: what a decision is tried with first.
    pub(crate) fn none(&self) -> BTreeMap<Queue, u32> {
        self.lock().none()
    }

    /// What the roles are for that users defined, one entry each.
    pub(crate) fn specialists(&self) -> Vec<Specialty> {
        let inner = self.lock();
        let by_role: BTreeMap<&Role, &Specialty> =
            inner.specialists.values().map(|specialty| (&specialty.role, specialty)).collect();
        by_role.into_values().take(Specialty::MOST).cloned().collect()
    }

    /// Whether an agent of this queue reads JSON only.
    pub(crate) fn reads_json_only(&self, queue: &Queue) -> bool {
        self.lock().json_only.contains(queue)
    }

    /// Takes note of what a run holds, and lends it as much more as it wants: what was promised to it, and what is
    /// free beyond one offer for every other run that waits. What it does not use goes back with
    /// [`Self::settle`].
    pub(crate) fn lend(
        &self,
        run: RunId,
        held: BTreeMap<Queue, u32>,
        wanted: &BTreeMap<Queue, u32>,
    ) -> BTreeMap<Queue, u32> {
        let mut inner = self.lock();
        let promised = inner.promised.remove(&run).unwrap_or_default();
        inner.held.insert(run, held);
        let mut lent = inner.none();
        for (queue, wanted) in wanted {
            let free = inner.room(queue);
            let mine = promised.get(queue).copied().unwrap_or(0).min(free);
            let spare = (free - mine).saturating_sub(inner.waiting_besides(run, queue));
            let share = (mine + spare).min(*wanted);
            *inner.held.entry(run).or_default().entry(queue.clone()).or_default() += share;
            lent.insert(queue.clone(), share);
        }
        lent
    }

    /// Takes note of what a run holds and still wants. Returns the runs that can go on.
    pub(crate) fn settle(
        &self,
        run: RunId,
        held: BTreeMap<Queue, u32>,
        wanted: &BTreeMap<Queue, u32>,
    ) -> Vec<RunId> {
        let mut inner = self.lock();
        inner.promised.remove(&run);
        inner.held.insert(run, held);
        for (queue, waiting) in &mut inner.waiting {
            if !wanted.contains_key(queue) {
                waiting.retain(|other| *other != run);
            }
        }
        for queue in wanted.keys() {
            let waiting = inner.waiting.entry(queue.clone()).or_default();
            if !waiting.contains(&run) {
                waiting.push_back(run);
            }
        }
        inner.wake()
    }

    /// Forgets a run. Returns the runs that can go on.
    pub(crate) fn forget(&self, run: RunId) -> Vec<RunId> {
        let mut inner = self.lock();
        inner.held.remove(&run);
        inner.promised.remove(&run);
        inner.waiting.values_mut().for_each(|waiting| waiting.retain(|other| *other != run));
        inner.wake()
    }

    /// Counts are whole after every statement that changes them, so a panic elsewhere does not spoil them.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn admit(&mut self, profile: &Profile) {
        if profile.role == ORCHESTRATOR {
            return;
        }
        if let Ok(role) = profile.role.parse::<Role>() {
            let queues = [Queue::Role(role.clone()), Queue::Agent(profile.agent.clone())];
            if profile.encoding == Encoding::Json && self.json_only.len() < MOST_JSON_ONLY {
                self.json_only.extend(queues);
            }
            if let (Some(specialist), Role::Specialist(_)) = (&profile.specialist, &role) {
                let Advertised { description, capabilities, .. } = (**specialist).clone();
                // A pattern says which tools of Muster's it may use; these are known without.
                let tools = profile.tools.iter().filter(|tool| !tool.contains('*')).cloned().collect();
                let specialty = Specialty { role: role.clone(), description, capabilities, tools };
                self.specialists.insert(profile.agent.clone(), specialty.within_limits());
            }
            self.agents.insert(profile.agent.clone(), (Queue::Role(role), profile.slots));
        }
    }

    fn none(&self) -> BTreeMap<Queue, u32> {
        self.agents.values().map(|(queue, _)| (queue.clone(), 0)).collect()
    }

    /// Free slots and one more, so that an agent that gets free finds its next task waiting.
    fn room(&self, queue: &Queue) -> u32 {
        let slots: u32 = self.agents.values().filter(|(of, _)| of == queue).map(|(_, slots)| slots).sum();
        let taken = self.held.values().chain(self.promised.values());
        let taken: u32 = taken.filter_map(|taken| taken.get(queue)).sum();
        slots.saturating_add(1).saturating_sub(taken)
    }

    fn waiting_besides(&self, run: RunId, queue: &Queue) -> u32 {
        let others = self.waiting.get(queue).into_iter().flatten().filter(|other| **other != run).count();
        u32::try_from(others).unwrap_or(u32::MAX)
    }

    /// Runs whose turn it is: per queue as many as it has room for, longest waiting first. One offer is kept for
    /// each.
    fn wake(&mut self) -> Vec<RunId> {
        let queues: Vec<Queue> = self.waiting.keys().cloned().collect();
        let mut woken = Vec::new();
        for queue in queues {
            while self.room(&queue) > 0 {
                let Some(run) = self.waiting.get_mut(&queue).and_then(VecDeque::pop_front) else { break };
                *self.promised.entry(run).or_default().entry(queue.clone()).or_default() += 1;
                woken.push(run);
            }
        }
        woken.sort_unstable();
        woken.dedup();
        woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn run(n: u128) -> RunId {
        RunId::from_uuid(Uuid::from_u128(n))
    }

    fn workers(slots: u32) -> RegistryChange {
        RegistryChange::Joined(Profile {
            agent: AgentId::new("worker", 1),
            role: "worker".into(),
            pid: 1,
            host: String::new(),
            version: String::new(),
            event_version: 1,
            slots,
            busy: 0,
            model: String::new(),
            tools: Vec::new(),
            started_at: 0,
            resident_bytes: 0,
            specialist: None,
            encoding: muster_shared::wire::Encoding::default(),
        })
    }

    fn of(count: u32) -> BTreeMap<Queue, u32> {
        BTreeMap::from([(Queue::Role(Role::Worker), count)])
    }

    #[test]
    fn a_run_alone_gets_all_slots_and_one_more() {
        let capacity = Capacity::default();
        assert!(capacity.agents_changed(workers(8)).is_empty());
        assert_eq!(capacity.lend(run(1), of(0), &of(20)), of(9));
        assert_eq!(capacity.lend(run(2), of(0), &of(1)), of(0));
    }

    #[test]
    fn what_gets_free_goes_to_whoever_waited_longest() {
        let capacity = Capacity::default();
        drop(capacity.agents_changed(workers(1)));
        assert_eq!(capacity.lend(run(1), of(0), &of(5)), of(2));
        assert!(capacity.settle(run(1), of(2), &of(3)).is_empty());
        assert_eq!(capacity.lend(run(2), of(0), &of(5)), of(0));
        assert!(capacity.settle(run(2), of(0), &of(5)).is_empty());
        assert_eq!(
            capacity.lend(run(1), of(1), &of(3)),
            of(0),
            "others wait, so it has to wait its turn too"
        );
        assert_eq!(capacity.settle(run(1), of(1), &of(3)), [run(1)], "it waits longest");
        assert_eq!(capacity.lend(run(2), of(0), &of(5)), of(0), "what was promised is kept");
        assert_eq!(capacity.lend(run(1), of(1), &of(3)), of(1));
        assert!(capacity.settle(run(1), of(2), &of(2)).is_empty());
        assert_eq!(capacity.settle(run(1), of(1), &of(1)), [run(2)], "the first has had its turn");
        assert_eq!(capacity.lend(run(2), of(0), &of(5)), of(1));
    }

    #[test]
    fn what_gets_free_at_once_is_shared_by_those_that_wait() {
        let capacity = Capacity::default();
        drop(capacity.agents_changed(workers(7)));
        drop(capacity.lend(run(9), of(0), &of(8)));
        for other in 1..=3 {
            assert!(capacity.settle(run(other), of(0), &of(8)).is_empty());
        }
        assert_eq!(capacity.forget(run(9)), [run(1), run(2), run(3)]);
        assert_eq!(capacity.lend(run(1), of(0), &of(8)), of(6));
    }

    #[test]
    fn without_an_agent_one_offer_waits_for_the_first_to_come() {
        let capacity = Capacity::default();
        assert_eq!(capacity.lend(run(1), of(0), &of(5)), of(1));
        assert!(capacity.settle(run(1), of(1), &of(4)).is_empty());
        assert_eq!(capacity.agents_changed(workers(2)), [run(1)]);
    }
}
