//! One decision of a run, with what the queues have room for. Pure but for the counts that runs share.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use muster_shared::flow::{Placement, Specialty, TaskOffered};
use muster_shared::ids::{Queue, Role, RunId, TaskId, TaskIndex};
use muster_shared::run::{ApplyError, Input, RunState};
use muster_shared::time::Millis;

use super::capacity::{Capacity, FleetAnswer, Holding};
use crate::decide::{Decision, Place, Situation, Wanted, decide_on};
use crate::matching::Look;

/// Of so many tasks that wait is remembered who could do them. More of a run have their place in line.
const MOST_LOOKS: usize = 16;

/// A decision with what it was told of the fleet.
#[derive(Debug)]
pub struct Roomed {
    /// What was decided.
    pub decision: Decision,
    /// How many offers each queue took.
    pub capacity: BTreeMap<Queue, u32>,
    /// What the roles are for that users defined.
    pub specialists: Vec<Specialty>,
    /// The runs that can go on now. Besides these there may be some that [may look again](Capacity::may_look_again).
    pub woken: Vec<RunId>,
}

/// Decides with what the queues have room for: the fleet is asked for it when it is known what would be offered.
///
/// # Errors
/// When the inputs lead to an event that cannot follow the run's state.
pub fn decide_with_room(
    fleet: &Capacity,
    id: RunId,
    run: Option<Box<RunState>>,
    inputs: &[Input],
    now: Millis,
) -> Result<Roomed, ApplyError> {
    let told = FleetAnswers {
        fleet,
        said: RefCell::default(),
        is_up_to_date: Cell::default(),
        looks: RefCell::default(),
    };
    let mut capacity = fleet.none(run.as_deref());
    let specialists = fleet.specialists();
    let situation = Situation { id, now, capacity: &capacity, specialists: &specialists, placing: &told };
    let mut decision = decide_on(run, inputs, situation)?;
    capacity = decision.lent.take().unwrap_or(capacity);
    let decided = decision.after.as_deref().zip(Some(&decision.events[..]));
    drop(fleet.count_tries(decided, now));
    let looks = told.left_looking(&decision);
    // Whom another member of its group should rather not be is known once one member is placed.
    let is_to_one = |offer: &TaskOffered| {
        matches!(offer.queue, Queue::Agent(_)) && offer.task.leaf().is_some_and(TaskIndex::is_member)
    };
    let looks_again = !looks.is_empty() && decision.offers.iter().any(is_to_one);
    // Who was free may be promised to runs that waited longer: once it is theirs, another one is the best.
    let looks_again = looks_again || fleet.is_promised(&decision.wanted);
    fleet.looks_for(id, looks);
    let mut woken = fleet.settle(id, held(&decision), &decision.wanted);
    if looks_again && !woken.contains(&id) {
        woken.push(id);
    }
    Ok(Roomed { decision, capacity, specialists, woken })
}

fn held(decision: &Decision) -> Holding {
    decision.after.as_deref().map(Holding::of).unwrap_or_default()
}

/// What the fleet says, once for each task. Room is found for what the first look was told: were the second told
/// anything else, what it names would have no room, and what has room would not be used.
#[derive(Debug)]
struct FleetAnswers<'a> {
    fleet: &'a Capacity,
    said: RefCell<BTreeMap<TaskId, Option<Placement>>>,
    /// Whether the fleet knows what the run holds after what came in. Before that, an agent that has just ended its task
    /// would be taken for busy, and one that has just taken another for free.
    is_up_to_date: Cell<bool>,
    /// Who could be asked by name once it is free, for the first tasks for which anybody can.
    looks: RefCell<BTreeMap<TaskId, Look>>,
}

impl FleetAnswers<'_> {
    /// Who could be asked once it is free, for what is not offered yet.
    fn left_looking(&self, decision: &Decision) -> Vec<Look> {
        let mut looks = self.looks.take();
        decision.offers.iter().for_each(|offer| drop(looks.remove(&offer.task)));
        if decision.wanted.is_empty() {
            return Vec::new();
        }
        let mut all: Vec<Look> = Vec::new();
        for look in looks.into_values() {
            if !all.contains(&look) {
                all.push(look);
            }
        }
        all
    }

    fn ask(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        // The first look makes no offers, so what the run holds does not change any more while it lasts.
        let holds = || wanted.stands.filter(|_| !self.is_up_to_date.replace(true)).map(Holding::of);
        let mut looks = self.looks.borrow_mut();
        let FleetAnswer { placement, look } = self.fleet.find(wanted, looks.len() < MOST_LOOKS, holds);
        looks.extend(look.map(|look| (wanted.task.clone(), look)));
        placement
    }
}

impl Place for FleetAnswers<'_> {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        let mut said = self.said.borrow_mut();
        said.entry(wanted.task.clone()).or_insert_with(|| self.ask(wanted)).clone()
    }

    fn lends(&self) -> bool {
        true
    }

    fn lend(&self, stands: &RunState, wanted: &BTreeMap<Queue, u32>) -> BTreeMap<Queue, u32> {
        self.fleet.rank(stands.id, stands.goal.priority);
        let lent = self.fleet.lend(stands.id, Holding::of(stands), wanted);
        self.is_up_to_date.set(true);
        lent
    }

    fn weighs_contracts(&self, role: &Role) -> bool {
        self.fleet.weighs_contracts(role)
    }

    fn has_excluded(&self, role: &Role) -> bool {
        self.fleet.has_excluded(role)
    }
}
