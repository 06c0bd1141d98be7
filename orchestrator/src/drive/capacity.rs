//! How many offers each queue takes: free slots and one more, fairly over runs.
//!
//! The queue is a short buffer; what does not fit waits in the runs, where order and fairness are decided.

mod away;
mod exclusion;
mod ledger;
mod served;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use muster_bus::RegistryChange;
use muster_shared::flow::{Placement, Specialty};
use muster_shared::ids::{AgentId, Queue, Role, RunId};
use muster_shared::run::{Input, RunEvent, RunState};
use muster_shared::sync::lock;
use muster_shared::time::Millis;
use muster_shared::track_record::{Identity, RunTrackRecord, TrackRecords};
use muster_shared::wire::{ExcludedAgent, Profile};

pub use ledger::Holding;

use crate::decide::{Place, Wanted, in_work, promised};
use crate::matching::{Candidate, Look};
use ledger::{Ledger, Seated};

/// The role under which orchestrators announce themselves; they take no tasks.
pub(crate) const ORCHESTRATOR: &str = Profile::ORCHESTRATOR;

/// Counts what the runs of this orchestrator hold of each queue.
#[derive(Debug, Default)]
pub struct Capacity {
    inner: Mutex<Ledger>,
}

/// What the fleet says of a task.
#[derive(Debug)]
pub(super) struct FleetAnswer {
    /// To whom it should go; nothing when anybody of its role will do.
    pub(super) placement: Option<Placement>,
    /// Who else could be asked once that one is free, where anybody is asked by name.
    pub(super) look: Option<Look>,
}

impl Place for Capacity {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        self.find(wanted, false, || None).placement
    }

    fn weighs_contracts(&self, role: &Role) -> bool {
        self.lock().roster.weighs_contracts(role)
    }

    fn has_excluded(&self, role: &Role) -> bool {
        self.lock().roster.has_excluded(role)
    }
}

impl Capacity {
    /// To whom a task should go. Where that depends on who is free, note is taken first of what the run holds now, if
    /// that is told.
    pub(super) fn find(
        &self,
        wanted: &Wanted<'_>,
        looks: bool,
        holds: impl FnOnce() -> Option<Holding>,
    ) -> FleetAnswer {
        // What asks for nothing in particular goes to whoever is free first: an offer to one agent that has to be made
        // again, because it died or the server did, may be paid for twice.
        let asks = !wanted.needs.is_empty() || !wanted.tools.is_empty() || !wanted.avoid.is_empty();
        let asks = asks || wanted.substance.as_ref().is_some_and(|substance| !substance.data.is_empty());
        let asks = asks || wanted.by_name || wanted.named.is_some();
        let mut inner = self.lock();
        let told_apart = inner.roster.is_refused_by_some(wanted) || inner.roster.has_poor(wanted.role);
        if !asks && wanted.awarded.is_none() && !told_apart {
            return FleetAnswer { placement: None, look: None };
        }
        if let Some(holds) = holds() {
            inner.hold(wanted.run, holds, true);
        }
        let placement = inner.roster.place_with(wanted, &inner.kept_agents(wanted.run));
        let look = looks.then(|| inner.roster.look(wanted)).flatten();
        FleetAnswer { placement, look }
    }

    /// Takes note of whom a run would ask by name, were they free.
    pub(super) fn looks_for(&self, run: RunId, looks: Vec<Look>) {
        let mut inner = self.lock();
        match looks.is_empty() {
            true => drop(inner.looking.remove(&run)),
            false => drop(inner.looking.insert(run, looks)),
        }
    }

    /// The inputs, each outcome that does not hold what its agent promises preceded by what it does not hold.
    pub(crate) fn held_to_contracts(&self, run: Option<&RunState>, inputs: Vec<Input>) -> Vec<Input> {
        let Some(run) = run else { return inputs };
        if !inputs.iter().any(|input| matches!(input, Input::Agent { seq } if promised(run, *seq).is_some()))
        {
            return inputs;
        }
        let inner = self.lock();
        let contract_violation = |input: &Input| {
            let Input::Agent { seq } = input else { return None };
            let (role, agent, result) = promised(run, *seq)?;
            let faults = inner.roster.unkept(role, agent, result.data.as_deref());
            (!faults.is_empty()).then_some(Input::ContractBroken { outcome: *seq, faults })
        };
        inputs.into_iter().flat_map(|input| contract_violation(&input).into_iter().chain([input])).collect()
    }

    /// Takes note of who is there. Returns the runs that can go on, those among them that wait for one that left.
    pub(crate) fn agents_changed(&self, change: RegistryChange) -> Vec<RunId> {
        match change {
            RegistryChange::Joined(profile) | RegistryChange::Changed(profile) => self.joined(&profile),
            RegistryChange::Left(agent) => self.left(agent),
        }
    }

    /// Agents of these roles are about to start: plans may name the roles.
    pub(crate) fn expect(&self, roles: impl IntoIterator<Item = Role>) {
        let mut inner = self.lock();
        for role in roles {
            if !inner.is_known(&Queue::Role(role.clone())) {
                inner.away.left(Specialty::of_role(role));
            }
        }
    }

    /// Counts how tries of tasks ended with their agents, by what was decided of a run. Returns the agents that get no
    /// tasks now, if others of their role are online.
    pub(crate) fn count_tries(
        &self,
        decided: Option<(&RunState, &[RunEvent])>,
        now: Millis,
    ) -> Vec<ExcludedAgent> {
        let ended = |(run, events): (&RunState, &[RunEvent])| {
            events.iter().filter_map(|event| exclusion::ended(run, event)).collect()
        };
        self.lock().count_tries(decided.map(ended).unwrap_or_default(), now)
    }

    /// An agent came, or says something else of itself. Returns the runs that can go on.
    pub fn joined(&self, profile: &Profile) -> Vec<RunId> {
        let mut inner = self.lock();
        inner.admit(profile);
        inner.wake()
    }

    /// An agent left. Returns the runs that can go on, those among them that wait for it.
    pub fn left(&self, agent: AgentId) -> Vec<RunId> {
        let mut inner = self.lock();
        let left_behind = inner.dismiss(agent);
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

    /// Who an agent is, whenever it was started.
    pub(crate) fn identity(&self, agent: &AgentId) -> Identity {
        let inner = self.lock();
        inner.roster.candidate(agent).map_or_else(|| Identity::Process(agent.clone()), Candidate::identity)
    }

    /// How long an agent may have nothing to write about a task, in milliseconds, by its own word.
    pub(crate) fn quiet_ms(&self, agent: &AgentId) -> u64 {
        self.lock().roster.candidate(agent).map_or(0, |candidate| candidate.quiet_ms)
    }

    /// How many tasks of all runs here an agent has in hand, as far as is decided.
    pub fn in_hand(&self, agent: &AgentId) -> u32 {
        self.lock().held.values().map(|held| held.of_agent(agent)).sum()
    }

    /// Judges the agents by what is known of their work.
    pub(crate) fn judge(&self, track_records: &TrackRecords) {
        self.lock().roster.judge(|candidate| {
            let Candidate { role, model, started_at, .. } = candidate;
            track_records.of(&candidate.identity(), *started_at, &role.to_string(), model)
        });
    }

    /// What agents did, with the roles and models of those that are there.
    pub(crate) fn named(&self, mut track_record: RunTrackRecord) -> RunTrackRecord {
        let inner = self.lock();
        for agent in &mut track_record.agents {
            if let Some(candidate) = inner.roster.candidate(&agent.agent) {
                agent.role = candidate.role.to_string();
                agent.model.clone_from(&candidate.model);
                agent.name.clone_from(&candidate.name);
                agent.host.clone_from(&candidate.host);
            }
        }
        track_record
    }

    /// The queues of the roles that are online, none with room: what a decision is tried with first. Of those of single
    /// agents, those that the run has something in.
    pub fn none(&self, run: Option<&RunState>) -> BTreeMap<Queue, u32> {
        self.lock().none(&run.map(in_work).unwrap_or_default())
    }

    /// What the roles are for that users defined, one entry each; and of roles, which tools they have beside Muster's own.
    pub fn specialists(&self) -> Vec<Specialty> {
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
        for (agent, tools) in inner.served.to_agents() {
            let Some(Seated { role, .. }) = inner.agents.get(agent) else { continue };
            match by_role.get_mut(role) {
                Some(known) => add_missing(&mut known.tools, &tools),
                None => {
                    // Of a role that nobody says what it is for, planners are not told.
                    let known = Specialty::of_built_in(role, tools.iter()).filter(Specialty::is_built_in);
                    by_role.extend(known.map(|known| (role, known)));
                }
            }
        }
        for specialty in inner.away.remembered().filter(|known| known.role.does_leaves()) {
            by_role.entry(&specialty.role).or_insert_with(|| specialty.clone());
        }
        by_role.into_values().take(Specialty::MOST).map(Specialty::within_limits).collect()
    }

    /// Takes note of a run's priority: what gets free is given to those of higher priority first.
    pub fn rank(&self, run: RunId, priority: i8) {
        let mut inner = self.lock();
        match priority {
            0 => drop(inner.priorities.remove(&run)),
            other => drop(inner.priorities.insert(run, other)),
        }
    }

    /// Takes note of what a run holds, and lends it as much more as it wants: what was promised to it, and what is
    /// free beyond one offer for every other run that waits. What is lent is taken as far as others go, and free for
    /// the run itself. What it does not use goes back with [`Self::settle`].
    pub fn lend(
        &self,
        run: RunId,
        held: impl Into<Holding>,
        wanted: &BTreeMap<Queue, u32>,
    ) -> BTreeMap<Queue, u32> {
        let mut inner = self.lock();
        let held = held.into();
        let promised = inner.take_back(run);
        let mut lent = inner.none(&held.queues);
        inner.hold(run, held, true);
        for (queue, wanted) in wanted {
            let free = inner.room(queue);
            let mine = promised.get(queue).copied().unwrap_or(0).min(free);
            let spare = (free - mine).saturating_sub(inner.waiting_besides(run, queue));
            let share = (mine + spare).min(*wanted);
            inner.pass_over(run, queue, share.saturating_sub(mine));
            inner.keep(run, queue, share);
            // Of a role without an agent, and of an agent that is gone, there is nothing to lend.
            if inner.is_known(queue) {
                lent.insert(queue.clone(), share);
            }
        }
        let keeps = inner.kept_agents(run);
        inner.tell_of_unused(run, &promised, |agent| keeps.get(agent).copied().unwrap_or(0));
        lent
    }

    /// Whether an agent that a run still wants has room, which runs before it in line are about to get.
    pub(crate) fn is_promised(&self, wanted: &BTreeMap<Queue, u32>) -> bool {
        let inner = self.lock();
        wanted.keys().any(|queue| match queue {
            Queue::Agent(_) => inner.room(queue) > 0,
            Queue::Role(_) => false,
        })
    }

    /// Takes note of what a run holds and still wants. Returns the runs that can go on: it is among them when what it
    /// wants of left meanwhile.
    pub fn settle(&self, run: RunId, held: impl Into<Holding>, wanted: &BTreeMap<Queue, u32>) -> Vec<RunId> {
        let mut inner = self.lock();
        let (held, lent) = (held.into(), inner.take_back(run));
        let before = inner.held.get(&run).cloned().unwrap_or_default();
        inner.tell_of_unused(run, &lent, |agent| held.of_agent(agent).saturating_sub(before.of_agent(agent)));
        inner.hold(run, held, false);
        inner.stop_waiting(run, |queue| !wanted.contains_key(queue));
        let mut left = false;
        for queue in wanted.keys() {
            match queue {
                Queue::Agent(_) if !inner.is_known(queue) => left = true,
                Queue::Role(_) | Queue::Agent(_) => inner.line_up(run, queue),
            }
        }
        let mut woken = inner.wake();
        if left && !woken.contains(&run) {
            woken.push(run);
        }
        woken
    }

    /// The runs that wait for one agent, or for the queue of a role, though another that they could ask by name came or got
    /// free: that one may do as well. Each is told once.
    pub fn may_look_again(&self) -> BTreeSet<RunId> {
        std::mem::take(&mut self.lock().may_look)
    }

    /// A run waits for nothing for now, and keeps what it holds. Returns the runs that can go on.
    pub fn step_back(&self, run: RunId) -> Vec<RunId> {
        let mut inner = self.lock();
        inner.give_back(run);
        inner.stop_waiting(run, |_| true);
        inner.looking.remove(&run);
        inner.wake()
    }

    /// Forgets a run. Returns the runs that can go on.
    pub fn forget(&self, run: RunId) -> Vec<RunId> {
        let mut inner = self.lock();
        inner.hold(run, Holding::default(), false);
        inner.held.remove(&run);
        inner.give_back(run);
        inner.stop_waiting(run, |_| true);
        inner.priorities.remove(&run);
        inner.looking.remove(&run);
        inner.wake()
    }

    /// Counts are whole after every statement that changes them, so a panic elsewhere does not spoil them.
    fn lock(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.inner)
    }
}

fn add_missing(list: &mut Vec<String>, more: &[String]) {
    for one in more {
        if !list.contains(one) {
            list.push(one.clone());
        }
    }
}

#[cfg(test)]
#[path = "capacity_tests.rs"]
mod tests;
