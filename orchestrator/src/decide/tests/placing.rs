//! Leaves that go to one agent: offered to its queue, and elsewhere when it does not take them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster_shared::flow::{
    CorpusRef, Ending, Goal, PassedOver, Placement, RunLimits, TaskDraft, TaskOffered, TaskStatus, specialist,
};
use muster_shared::ids::{AgentId, Generation, Queue, Role, TaskId};
use muster_shared::run::{AgentEvent, Decided, Input, RecordEvent, RunStatus, TaskState};

use super::fleet::{Fleet, ID, agent, begins, failed, good, key, leaf, lost, plan, queue};
use crate::decide::{Effect, Place, Substance, Wanted, next_review};
use crate::replay::replay;

/// Places every leaf with the first of these agents that it should not avoid, and notes what it was asked.
#[derive(Debug, Clone)]
struct First {
    agents: Vec<AgentId>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// Who was to be avoided, and who knows what the task is about.
type Asked = (Vec<AgentId>, Vec<AgentId>);

impl First {
    fn of(numbers: &[u32]) -> Self {
        Self { agents: numbers.iter().copied().map(agent).collect(), asked: Arc::default() }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Place for First {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        let avoid: Vec<AgentId> = wanted.avoid.iter().map(|avoided| avoided.agent.clone()).collect();
        self.asked.lock().unwrap().push((avoid.clone(), wanted.knows.clone()));
        let to = self.agents.iter().find(|agent| !avoid.contains(agent))?;
        let passed_over = avoid.iter().map(|agent| PassedOver { agent: agent.clone(), reason: "no".into() });
        Some(Placement {
            task: wanted.task.clone(),
            to: Queue::Agent(to.clone()),
            reasons: vec!["it comes first".into()],
            passed_over: passed_over.collect(),
        })
    }
}

fn own(number: u32) -> Queue {
    Queue::Agent(agent(number))
}

/// A run that is planned with these leaves, in a fleet where agents have so many slots.
fn fleet(first: &First, slots: &[(u32, u32)], leaves: &[&str]) -> Fleet {
    let mut fleet = Fleet::new();
    fleet.placing = Box::new(first.clone());
    fleet.slots.extend(slots.iter().map(|(number, slots)| (own(*number), *slots)));
    fleet.submit("Which limits are there?", RunLimits::default());
    fleet.do_task("plan", plan(leaves.iter().map(|name| leaf(name, &[])).collect()));
    fleet
}

fn start_as(fleet: &mut Fleet, number: u32, offer: &TaskOffered) {
    let attempt = fleet.run().tasks[&offer.task].attempt.0 + 1;
    fleet.report_as(key(number, offer), begins(attempt, &format!("ack-{number}")));
}

fn wait(fleet: &mut Fleet, time: Duration) {
    fleet.at(fleet.now.after(time));
}

fn state<'a>(fleet: &'a Fleet, offer: &TaskOffered) -> &'a TaskState {
    &fleet.run().tasks[&offer.task]
}

fn decisions(fleet: &Fleet) -> Vec<&Decided> {
    let decided = fleet.record.iter().filter_map(|entry| match &entry.event {
        RecordEvent::Decided(decided) => Some(decided),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => None,
    });
    decided.collect()
}

#[test]
fn a_leaf_goes_where_the_fleet_says_and_the_record_says_why() {
    let first = First::of(&[1]);
    let mut fleet = fleet(&first, &[(1, 4)], &["apples", "pears"]);
    assert_eq!((fleet.find("1").queue, fleet.find("2").queue), (own(1), own(1)));
    fleet.finish(&[]);
    let placements = decisions(&fleet).iter().flat_map(|decided| &decided.placements).collect::<Vec<_>>();
    assert_eq!(placements.len(), 2, "reflections, the plan and the report are not placed");
    assert_eq!(placements[0].reasons, ["it comes first"]);
}

#[test]
fn an_offer_that_its_agent_does_not_take_goes_to_another_after_five_seconds() {
    let first = First::of(&[1, 2]);
    let mut fleet = fleet(&first, &[(1, 1), (2, 1)], &["apples"]);
    let before = fleet.find("1");
    assert_eq!(next_review(fleet.run()), Some(fleet.now.after(Duration::from_secs(5))));
    wait(&mut fleet, Duration::from_millis(4_999));
    assert_eq!(fleet.find("1"), before);
    wait(&mut fleet, Duration::from_millis(1));
    let after = fleet.find("1");
    assert_eq!((after.generation, after.queue.clone()), (Generation(2), own(2)));
    let avoid = &state(&fleet, &after).avoid;
    assert_eq!((avoid.len(), &avoid[0].agent), (1, &agent(1)));
    wait(&mut fleet, Duration::from_secs(5));
    assert_eq!(fleet.find("1").queue, queue(Role::Worker), "both were asked in vain: whoever of its role");
    replay(ID, &fleet.record).unwrap();
}

/// Nobody but the first agent can do anything.
#[derive(Debug)]
struct Only;

impl Place for Only {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        let (task, to) = (wanted.task.clone(), own(1));
        Some(Placement { task, to, reasons: Vec::new(), passed_over: Vec::new() })
    }
}

#[test]
fn what_the_only_one_that_can_do_it_never_takes_goes_to_whoever_of_its_role() {
    let mut fleet = Fleet::new();
    fleet.placing = Box::new(Only);
    fleet.slots.insert(own(1), 2);
    fleet.submit("Which limits are there?", RunLimits::default());
    fleet.do_task("plan", plan(vec![leaf("apples", &[])]));
    for _ in 0..6 {
        assert_eq!(fleet.find("1").queue, own(1));
        wait(&mut fleet, Duration::from_secs(5));
    }
    assert_eq!(fleet.find("1").queue, own(1));
    wait(&mut fleet, Duration::from_secs(5));
    assert_eq!(fleet.find("1").queue, queue(Role::Worker));
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn an_offer_to_an_agent_that_leaves_goes_to_another_at_once() {
    let first = First::of(&[1, 2]);
    let mut fleet = fleet(&first, &[(1, 1), (2, 1)], &["apples"]);
    fleet.slots.remove(&own(1));
    fleet.turn(vec![Input::Capacity]);
    assert_eq!((fleet.find("1").generation, fleet.find("1").queue), (Generation(2), own(2)));
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn a_task_waits_for_its_agent_though_its_role_has_room_and_a_replay_knows() {
    let first = First::of(&[1]);
    let mut fleet = fleet(&first, &[(1, 1)], &["apples", "pears"]);
    let one = fleet.find("1");
    assert!(fleet.open.iter().all(|offer| offer.task == one.task), "{:?}", fleet.open);
    start_as(&mut fleet, 1, &one);
    fleet.end(&one, good(&one, &[]));
    assert_eq!(fleet.find("2").queue, own(1));
    fleet.finish(&[]);
    let held: Vec<_> = decisions(&fleet).iter().flat_map(|decided| &decided.placements).cloned().collect();
    assert!(held.iter().any(|placement| placement.reasons.is_empty()), "{held:?}");
}

#[test]
fn what_a_lost_agent_had_in_a_queue_of_its_own_goes_on_elsewhere() {
    let first = First::of(&[1, 2]);
    let mut fleet = fleet(&first, &[(1, 1), (2, 1)], &["apples"]);
    let one = fleet.find("1");
    start_as(&mut fleet, 1, &one);
    fleet.slots.remove(&own(1));
    fleet.turn(vec![lost(agent(1))]);
    let two = fleet.find("1");
    assert_eq!(
        (two.generation, two.continues, two.queue.clone()),
        (Generation(2), Some(Generation(1)), own(2))
    );
    assert!(fleet.effects.iter().any(|effect| matches!(effect, Effect::Withdraw { .. })));
    let state = state(&fleet, &two);
    assert_eq!(
        (state.deaths.len(), state.avoid[0].reason.as_str()),
        (1, "it was lost while it worked on it")
    );
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn a_task_that_kills_whoever_it_goes_to_is_given_to_nobody_in_the_end() {
    let first = First::of(&[1, 2, 3, 4]);
    let mut fleet = fleet(&first, &[(1, 1), (2, 1), (3, 1), (4, 1)], &["apples"]);
    for number in 1..=3 {
        let offer = fleet.find("1");
        assert_eq!(offer.queue, own(number));
        start_as(&mut fleet, number, &offer);
        fleet.slots.remove(&own(number));
        fleet.turn(vec![lost(agent(number))]);
    }
    assert_eq!(fleet.run().tasks[&"1".parse().unwrap()].status, TaskStatus::Failed);
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn who_failed_a_task_is_not_asked_again_and_who_did_what_it_needs_is_named() {
    let first = First::of(&[1, 2]);
    let mut fleet = Fleet::new();
    fleet.placing = Box::new(first.clone());
    fleet.slots.extend([(own(1), 1), (own(2), 1)]);
    fleet.submit("Which limits are there?", RunLimits::default());
    fleet.do_task("plan", plan(vec![leaf("apples", &[]), leaf("pears", &["apples"])]));
    let one = fleet.find("1");
    start_as(&mut fleet, 1, &one);
    fleet.report_as(key(1, &one), AgentEvent::Outcome(failed(Ending::AgentFailed, "it broke").into()));
    let again = fleet.find("1");
    assert_eq!(again.queue, own(2));
    start_as(&mut fleet, 2, &again);
    fleet.end_as(key(2, &again), good(&again, &[]));
    assert_eq!(state(&fleet, &again).ended_by, Some(agent(2)));
    fleet.work(|offer| good(offer, &[]));
    let (avoid, knows) = first.asked().pop().unwrap();
    assert_eq!((avoid, knows), (vec![], vec![agent(2)]));
    replay(ID, &fleet.record).unwrap();
}

/// Lets whoever is free take everything, and notes what contracts would be held against.
#[derive(Debug, Clone, Default)]
struct Weighing {
    is_needed: bool,
    seen: Arc<Mutex<BTreeMap<TaskId, Option<Substance>>>>,
}

impl Place for Weighing {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        self.seen.lock().unwrap().insert(wanted.task.clone(), wanted.substance.clone());
        None
    }

    fn weighs_contracts(&self, _: &Role) -> bool {
        self.is_needed
    }
}

#[test]
fn contracts_are_held_against_what_the_agent_is_given_and_only_where_it_matters() {
    for is_needed in [true, false] {
        let weighing = Weighing { is_needed, ..Weighing::default() };
        let mut fleet = Fleet::new();
        fleet.placing = Box::new(weighing.clone());
        let corpus = Some(CorpusRef { id: "c".into(), files: 7, bytes: 1, outline: String::new() });
        fleet.begin(Goal { corpus, ..Goal::new("What is the sum?") }, RunLimits::default());
        let planning = fleet.begin_task("plan");
        let sum = TaskDraft {
            goal: "Add up: {{1.result}}".into(),
            expected_output: "The sum, as data.total.".into(),
            ..leaf("sum", &["apples"])
        };
        fleet.end(&planning, plan(vec![leaf("apples", &[]), sum]));
        let mut given = BTreeMap::new();
        fleet.work(|offer| {
            given.extend(specialist::given(offer).map(|given| (offer.task.clone(), given)));
            good(offer, &[])
        });
        assert_eq!(fleet.status(), RunStatus::Completed);
        let seen = weighing.seen.lock().unwrap();
        assert_eq!((seen.len(), given.len()), (2, 2));
        for (task, given) in given {
            let substance = is_needed.then(|| Substance {
                given,
                data: if task.to_string() == "2" { vec!["total".into()] } else { Vec::new() },
            });
            assert_eq!(seen[&task], substance, "{task}");
        }
    }
}
