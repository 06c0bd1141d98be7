//! Runs that share a fleet, driven as the driver does it, with the real counts of places and the real matching.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use muster_shared::flow::{Bid, Goal, Outcome, Planning, RunLimits, TaskDraft, TaskOffered, Work};
use muster_shared::ids::{AgentId, Attempt, Queue, Role, RunId, Seq, TaskId};
use muster_shared::run::{
    AgentEvent, AgentKey, Decided, Entry, Input, RecordEvent, RunState, Started, TaskState, apply,
};
use muster_shared::time::Millis;
use muster_shared::wire::Profile;
use uuid::Uuid;

use crate::decide::tests::fleet::good;
use crate::decide::{
    Decision, Effect, Place, Situation, Wanted, decide, groups, next_deadline, next_review, schedule,
};
use crate::drive::{Capacity, Holding, Roomed, decide_with_room};

/// How often in a row a run may decide in vain. A wake may come when its reason has gone, and each run may have had one.
const MOST_IN_VAIN: u32 = 8;

/// A worker.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) slots: u32,
    pub(super) capabilities: Vec<String>,
    /// Whether it takes what is offered to it by name.
    pub(super) is_deaf: bool,
    pub(super) is_there: bool,
}

/// One run.
struct One {
    id: RunId,
    state: Option<RunState>,
    seq: u64,
    deferred: Vec<Input>,
    plan: Vec<TaskDraft>,
    in_vain: u32,
    /// Auctions that are open.
    calls: Vec<(TaskId, u32)>,
}

/// A task in somebody's hands.
struct Hand {
    run: usize,
    agent: AgentId,
    offer: TaskOffered,
}

pub(super) struct Crowd {
    fleet: Capacity,
    now: Millis,
    runs: Vec<One>,
    pub(super) workers: BTreeMap<AgentId, Worker>,
    queues: BTreeMap<Queue, VecDeque<(usize, TaskOffered)>>,
    hands: Vec<Hand>,
    /// What is found to be wrong.
    pub(super) wrong: Option<String>,
    /// Whether what is lent to a run is held against it when its tasks are placed, as it once was.
    pub(super) holds_against: bool,
    turns: u64,
}

pub(super) fn worker(n: u32) -> AgentId {
    AgentId::new("worker", n)
}

fn profile(agent: &AgentId, role: &str, slots: u32, capabilities: &[String]) -> Profile {
    let said = serde_json::json!({
        "agent": agent, "role": role, "slots": slots, "specialist": { "capabilities": capabilities },
    });
    serde_json::from_value(said).unwrap()
}

/// Has the fleet take a run for a stranger, for whom nothing is kept.
#[derive(Debug)]
struct AsStranger<'a>(&'a Capacity);

impl Place for AsStranger<'_> {
    fn place(&self, wanted: &Wanted<'_>) -> Option<muster_shared::flow::Placement> {
        self.0.place(&Wanted { run: RunId::from_uuid(Uuid::nil()), ..wanted.clone() })
    }
}

impl Crowd {
    /// Runs with these plans, in a fleet with these workers and enough of the other roles.
    pub(super) fn new(workers: Vec<Worker>, plans: Vec<Vec<TaskDraft>>, limits: &RunLimits) -> Self {
        let fleet = Capacity::default();
        for role in Role::BUILT_IN.into_iter().filter(|role| *role != Role::Worker) {
            let agent = AgentId::new(&role.to_string(), 1);
            drop(fleet.joined(&profile(&agent, &role.to_string(), 8, &[])));
        }
        let mut crowd = Self {
            fleet,
            now: Millis(1_000_000),
            runs: Vec::new(),
            workers: BTreeMap::new(),
            queues: BTreeMap::new(),
            hands: Vec::new(),
            wrong: None,
            holds_against: false,
            turns: 0,
        };
        for (n, worker_) in (1..).zip(workers) {
            crowd.workers.insert(worker(n), worker_);
            crowd.join(&worker(n));
        }
        for (n, plan) in (1..).zip(plans) {
            crowd.submit(n, plan, limits);
        }
        crowd
    }

    fn submit(&mut self, n: u128, plan: Vec<TaskDraft>, limits: &RunLimits) {
        let at = self.runs.len();
        let id = RunId::from_uuid(Uuid::from_u128(n));
        let (deferred, calls) = (Vec::new(), Vec::new());
        self.runs.push(One { id, state: None, seq: 0, deferred, plan, in_vain: 0, calls });
        let limits = RunLimits { planning: Planning::Always, max_replans: 0, ..limits.clone() };
        let goal = Box::new(Goal::new("Which limits are there?"));
        let (secret, lessons) = ("ab".repeat(32), Vec::new());
        self.tell(at, vec![Input::Goal { goal, limits, secret, lessons, signed: None }]);
    }

    pub(super) fn join(&mut self, agent: &AgentId) {
        let Some(worker) = self.workers.get_mut(agent) else { return };
        worker.is_there = true;
        let profile = profile(agent, "worker", worker.slots, &worker.capabilities);
        let woken = self.fleet.joined(&profile);
        self.wake(woken);
    }

    /// An agent dies: what it has in hand is handed on, what lies in its queue is lost.
    pub(super) fn leave(&mut self, agent: &AgentId) {
        let Some(worker) = self.workers.get_mut(agent) else { return };
        worker.is_there = false;
        self.queues.remove(&Queue::Agent(agent.clone()));
        let woken = self.fleet.left(agent.clone());
        self.wake(woken);
        let (reason, steps) = ("it died".to_owned(), BTreeMap::new());
        for at in 0..self.runs.len() {
            let (agent, reason, steps) = (agent.clone(), reason.clone(), steps.clone());
            self.tell(at, vec![Input::AgentLost { agent, reason, steps, elsewhere: 0 }]);
        }
        let (gone, left) = std::mem::take(&mut self.hands).into_iter().partition(|hand| hand.agent == *agent);
        self.hands = left;
        for Hand { run, offer, .. } in gone {
            if matches!(offer.queue, Queue::Role(_)) {
                self.queues.entry(offer.queue.clone()).or_default().push_back((run, offer));
            }
        }
    }

    fn wake(&mut self, woken: Vec<RunId>) {
        let places = woken.into_iter().chain(self.fleet.may_look_again());
        let places: Vec<usize> =
            places.filter_map(|id| self.runs.iter().position(|run| run.id == id)).collect();
        places.into_iter().for_each(|at| self.tell(at, vec![Input::Capacity]));
    }

    /// One turn of a run, and those of all that it wakes.
    fn tell(&mut self, at: usize, inputs: Vec<Input>) {
        let mut turns = VecDeque::from([(at, inputs)]);
        while let Some((at, inputs)) = turns.pop_front() {
            if self.wrong.is_some() || self.runs[at].state.as_ref().is_some_and(|run| run.status.is_ended()) {
                continue;
            }
            self.turns += 1;
            let woken = self.turn(at, inputs);
            let place = |id: RunId| self.runs.iter().position(|run| run.id == id);
            for at in woken.into_iter().filter_map(place) {
                // What is already to be woken is woken once.
                if !turns.iter().any(|(other, inputs)| *other == at && inputs.contains(&Input::Capacity)) {
                    turns.push_back((at, vec![Input::Capacity]));
                }
            }
        }
    }

    /// Returns the runs that it wakes.
    fn turn(&mut self, at: usize, inputs: Vec<Input>) -> Vec<RunId> {
        let is_news = inputs.iter().any(|input| *input != Input::Capacity);
        let one = &mut self.runs[at];
        let mut all = std::mem::take(&mut one.deferred);
        all.extend(inputs);
        let roomed = if self.holds_against {
            decide_as_it_was(&self.fleet, one.id, one.state.as_ref(), &all, self.now)
        } else {
            decide_with_room(&self.fleet, one.id, one.state.clone().map(Box::new), &all, self.now).unwrap()
        };
        let Roomed { decision, capacity, specialists: _, woken } = roomed;
        let mut woken: BTreeSet<RunId> = woken.into_iter().collect();
        let names_agents = all.iter().any(|input| matches!(input, Input::Agent { .. }));
        if decision.is_empty() && !names_agents || decision.deferrable {
            one.deferred = all.into_iter().filter(|input| matches!(input, Input::Agent { .. })).collect();
            one.in_vain = if is_news { 0 } else { one.in_vain + 1 };
            if one.in_vain > MOST_IN_VAIN {
                self.wrong =
                    Some(format!("{} decides over and over with nothing new: {:?}", one.id, decision.wanted));
                return Vec::new();
            }
        } else {
            one.in_vain = 0;
            let id = one.id;
            let more = decision.more;
            self.write(at, decision, all, capacity);
            if more {
                woken.insert(id);
            }
        }
        woken.extend(self.fleet.may_look_again());
        if self.runs[at].state.as_ref().is_some_and(|run| run.status.is_ended()) {
            let id = self.runs[at].id;
            woken.extend(self.fleet.forget(id));
            self.queues.values_mut().for_each(|queue| queue.retain(|(run, _)| *run != at));
            self.hands.retain(|hand| hand.run != at);
        }
        woken.into_iter().collect()
    }

    fn write(&mut self, at: usize, decision: Decision, inputs: Vec<Input>, capacity: BTreeMap<Queue, u32>) {
        let Decision { events, offers, effects, placements, .. } = decision;
        for effect in effects {
            match effect {
                Effect::CancelTask { task, generation, .. } => {
                    let is_it = |run: usize, offer: &TaskOffered| {
                        run == at && offer.task == task && offer.generation == generation
                    };
                    self.hands.retain(|hand| !is_it(hand.run, &hand.offer));
                    self.queues
                        .values_mut()
                        .for_each(|queue| queue.retain(|(run, offer)| !is_it(*run, offer)));
                }
                Effect::CallForProposals { call, .. } => self.runs[at].calls.push((call.task, call.number)),
                _ => {}
            }
        }
        for offer in &offers {
            self.queues.entry(offer.queue.clone()).or_default().push_back((at, offer.clone()));
        }
        let one = &mut self.runs[at];
        let decided = Decided {
            batch: Uuid::from_u128(u128::from(one.seq) + 1),
            by: "orchestrator-1".parse().unwrap(),
            inputs,
            now: self.now,
            basis: one.state.as_ref().map_or(Seq(0), |run| run.folded),
            after: one.state.as_ref().map_or(Seq(0), |run| run.decided),
            capacity,
            offers: 0,
            continues: false,
            specialists: Vec::new(),
            placements,
            events,
            offer: None,
        };
        let (decided, rest) = decided.with_offers(offers);
        one.append(self.now, RecordEvent::Decided(decided));
        for offer in rest {
            one.append(self.now, RecordEvent::Offered(offer));
        }
    }

    /// Somebody takes the first task that lies in a queue. Says whether there was one.
    pub(super) fn take(&mut self, pick: usize) -> bool {
        let mut able: Vec<(AgentId, Queue)> = Vec::new();
        for (agent, worker) in self.workers.iter().filter(|(_, worker)| worker.is_there) {
            let busy = self.hands.iter().filter(|hand| hand.agent == *agent).count();
            if busy < worker.slots as usize {
                let own = (!worker.is_deaf).then(|| Queue::Agent(agent.clone()));
                able.extend(
                    own.into_iter().chain([Queue::Role(Role::Worker)]).map(|queue| (agent.clone(), queue)),
                );
            }
        }
        for role in Role::BUILT_IN.into_iter().filter(|role| *role != Role::Worker) {
            able.push((AgentId::new(&role.to_string(), 1), Queue::Role(role)));
        }
        able.retain(|(_, queue)| self.queues.get(queue).is_some_and(|queue| !queue.is_empty()));
        let Some((agent, queue)) = able.get(pick % able.len().max(1)).cloned() else { return false };
        let Some((run, offer)) = self.queues.get_mut(&queue).and_then(VecDeque::pop_front) else {
            return false;
        };
        let started = Started {
            attempt: Attempt(1),
            ack: format!("ack-{agent}"),
            pid: 1,
            host: "here".into(),
            after_step: 0,
        };
        self.hands.push(Hand { run, agent: agent.clone(), offer: offer.clone() });
        self.report(run, &agent, &offer, AgentEvent::Started(started));
        true
    }

    /// Somebody ends a task that it has in hand. Says whether there was one.
    pub(super) fn end(&mut self, pick: usize, bad: Option<Outcome>) -> bool {
        if self.hands.is_empty() {
            return false;
        }
        let Hand { run, agent, offer } = self.hands.remove(pick % self.hands.len());
        let is_leaf = matches!(offer.work, Work::Execute { .. });
        let outcome = bad.filter(|_| is_leaf).unwrap_or_else(|| good(&offer, &self.runs[run].plan));
        self.report(run, &agent, &offer, AgentEvent::Outcome(outcome.into()));
        true
    }

    fn report(&mut self, at: usize, agent: &AgentId, offer: &TaskOffered, event: AgentEvent) {
        let role = agent.as_str().split('-').next().unwrap().parse().unwrap();
        let key =
            AgentKey { role, agent: agent.clone(), task: offer.task.clone(), generation: offer.generation };
        let seq = self.runs[at].append(self.now, RecordEvent::Agent(key, event));
        self.tell(at, vec![Input::Agent { seq }]);
    }

    /// All that are there bid for an auction, the one that is picked best. Says whether there was one.
    pub(super) fn bid(&mut self, pick: usize) -> bool {
        let open = self.runs.iter().position(|run| !run.calls.is_empty());
        let Some((at, (task, number))) = open.map(|at| (at, self.runs[at].calls.remove(0))) else {
            return false;
        };
        let there = self.workers.iter().filter(|(_, worker)| worker.is_there).map(|(agent, _)| agent);
        let bid = |(n, agent): (usize, &AgentId)| Bid {
            agent: agent.clone(),
            run: self.runs[at].id,
            task: task.clone(),
            number,
            millis: 1_000 * (1 + (n + pick) as u64 % 7),
            cost_micros: 0,
            confidence: 90,
            note: String::new(),
        };
        let bids = there.enumerate().map(bid).collect();
        let index = task.leaf().unwrap().clone();
        self.tell(at, vec![Input::Bids { task: index, number, bids, track_records: BTreeMap::new() }]);
        true
    }

    /// Time passes until something is due, if there is such a time.
    pub(super) fn wait(&mut self) -> bool {
        let due = |run: &One| {
            let state = run.state.as_ref().filter(|state| !state.status.is_ended())?;
            next_review(state).into_iter().chain(next_deadline(state)).min()
        };
        let Some(when) = self.runs.iter().filter_map(due).min() else { return false };
        self.now = if when <= self.now { self.now.after(Duration::from_secs(1)) } else { when };
        for at in 0..self.runs.len() {
            if due(&self.runs[at]).is_some_and(|when| when <= self.now) {
                self.tell(at, vec![Input::Timer]);
            }
        }
        true
    }

    /// All runs have ended.
    pub(super) fn is_over(&self) -> bool {
        self.runs.iter().all(|run| run.state.as_ref().is_some_and(|run| run.status.is_ended()))
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &RunState> {
        self.runs.iter().filter_map(|run| run.state.as_ref())
    }

    /// Every run looks by itself whether there is room, as it does after a while though nobody told it. Says how many
    /// had something to offer.
    pub(super) fn look_by_itself(&mut self) -> u64 {
        let mut late = 0;
        for at in 0..self.runs.len() {
            let before = self.runs[at].seq;
            self.runs[at].in_vain = 0;
            self.tell(at, vec![Input::Capacity]);
            late += u64::from(self.runs[at].seq != before);
        }
        late
    }

    /// Looks whether anything could be offered that is not: by looking again, and by counting.
    pub(super) fn look(&mut self) {
        for at in 0..self.runs.len() {
            // That nothing new came is the doing of this test.
            let before = self.runs[at].seq;
            self.runs[at].in_vain = 0;
            self.tell(at, vec![Input::Capacity]);
            self.runs[at].in_vain = 0;
            let one = &self.runs[at];
            let Some(run) = one.state.as_ref().filter(|run| !run.status.is_ended()) else { continue };
            if one.seq != before && self.wrong.is_none() {
                self.wrong = Some(format!("{} had something to offer and was not woken", one.id));
            }
            let left = schedule::due(run).into_iter().find(|task| self.has_somebody_free(run, task));
            if let Some(task) = left.filter(|_| self.wrong.is_none()) {
                self.wrong = Some(format!("{task} of {} is not offered though somebody could do it", one.id));
            }
        }
    }

    /// Whether a leaf could be done by a worker who is free, can do most of what it needs, and is not to be avoided,
    /// while its role's queue has room too.
    fn has_somebody_free(&self, run: &RunState, task: &TaskId) -> bool {
        let TaskId::Leaf(index) = task else { return false };
        let planned = &run.plan.as_ref().unwrap().tasks[&index.planned()];
        // Members begin as a group, and whoever won an auction may be waited for.
        if groups::is_for_members(run, task) || run.auction(index).is_some() {
            return false;
        }
        let there: Vec<(&AgentId, &Worker)> =
            self.workers.iter().filter(|(_, worker)| worker.is_there).collect();
        let covers =
            |worker: &Worker| planned.needs.iter().filter(|need| worker.capabilities.contains(need)).count();
        let most = there.iter().map(|(_, worker)| covers(worker)).max().unwrap_or(0);
        let state = run.tasks.get(task);
        // Whoever was asked and has not begun yet has it too.
        let has_or_had = |state: &TaskState, agent: &AgentId| {
            let is_asked =
                state.status.is_in_work() && state.queue.as_ref() == Some(&Queue::Agent(agent.clone()));
            is_asked || [&state.agent, &state.ended_by].contains(&&Some(agent.clone()))
        };
        let has_other_member = |agent: &AgentId| {
            index.is_member()
                && run.tasks.iter().any(|(other, state)| {
                    other.leaf().is_some_and(|other| other.is_member() && other.is_same_place(index))
                        && has_or_had(state, agent)
                })
        };
        let avoids = |agent: &AgentId| {
            let known = state.is_some_and(|state| state.avoid.iter().any(|avoided| avoided.agent == *agent));
            known || has_other_member(agent)
        };
        let all: u32 = there.iter().map(|(_, worker)| worker.slots).sum();
        let taken: u32 = there.iter().map(|(agent, _)| self.taken_of(agent)).sum::<u32>() + self.waiting();
        let excluded = self.fleet.count_tries(None, self.now);
        taken <= all
            && there.iter().filter(|(agent, _)| excluded.iter().all(|one| one.agent != **agent)).any(
                |(agent, worker)| {
                    covers(worker) == most && !avoids(agent) && self.taken_of(agent) < worker.slots
                },
            )
    }

    /// How many tasks lie in the queue of the workers.
    fn waiting(&self) -> u32 {
        let states = self.runs().flat_map(|run| run.tasks.values());
        let waits = states.filter(|state| {
            state.status.is_in_work()
                && state.queue == Some(Queue::Role(Role::Worker))
                && state.agent.is_none()
        });
        waits.count() as u32
    }

    /// How many tasks an agent has, in its queue or in hand.
    fn taken_of(&self, agent: &AgentId) -> u32 {
        let states = self.runs().filter(|run| !run.status.is_ended()).flat_map(|run| run.tasks.values());
        let own = Queue::Agent(agent.clone());
        let addressed =
            states.filter(|state| state.status.is_in_work() && state.queue.as_ref() == Some(&own));
        // That a task was taken from its role's queue is decided upon later than it is so.
        let in_hand = self.hands.iter().filter(|hand| hand.agent == *agent && hand.offer.queue != own);
        (addressed.count() + in_hand.count()) as u32
    }

    pub(super) const fn turns(&self) -> u64 {
        self.turns
    }

    /// How the runs stand, for people.
    pub(super) fn track_record(&self) -> String {
        let tasks = |run: &RunState| {
            let tasks =
                run.tasks.iter().map(|(task, state)| format!("{task} {:?} {:?}", state.status, state.queue));
            tasks.collect::<Vec<_>>().join(", ")
        };
        self.runs()
            .map(|run| format!("{:?} {:?}: {}", run.status, run.phase, tasks(run)))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl One {
    fn append(&mut self, at: Millis, event: RecordEvent) -> Seq {
        self.seq += 1;
        let seq = Seq(self.seq);
        apply(&mut self.state, &Entry { seq, at, run: self.id, event }).unwrap();
        seq
    }
}

/// A decision as it was made when what was lent counted as taken for the run itself too.
fn decide_as_it_was(
    fleet: &Capacity,
    id: RunId,
    run: Option<&RunState>,
    inputs: &[Input],
    now: Millis,
) -> Roomed {
    let held = |decision: &Decision| decision.after.as_deref().map(Holding::of).unwrap_or_default();
    let mut capacity = fleet.none(run);
    let placing = AsStranger(fleet);
    let look = |capacity: &BTreeMap<Queue, u32>| {
        decide(run, inputs, Situation { id, now, capacity, specialists: &[], placing: &placing }).unwrap()
    };
    let mut decision = look(&capacity);
    if !decision.wanted.is_empty() {
        capacity = fleet.lend(id, held(&decision), &decision.wanted);
        decision = look(&capacity);
    }
    let woken = fleet.settle(id, held(&decision), &decision.wanted);
    Roomed { decision, capacity, specialists: Vec::new(), woken }
}
