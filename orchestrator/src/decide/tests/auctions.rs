//! Tasks that agents bid for: the call, the award, and whether the bid was held.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::flow::{Bid, Ending, PassedOver, Placement, RunLimits, TaskDraft, Wait};
use muster_shared::ids::{AgentId, Queue, Role, TaskId, TaskIndex};
use muster_shared::run::event::{BidHeld, TaskAwarded};
use muster_shared::run::{AgentKey, Input, RunEvent, RunStatus};

use super::fleet::{Fleet, ID, agent, failed, good, leaf, plan, started};
use crate::decide::{Effect, Place, Wanted, next_review};
use crate::replay::replay;

/// Places leaves with whoever was awarded them.
#[derive(Debug)]
struct AsAwarded;

impl Place for AsAwarded {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        let to = wanted.awarded.clone()?;
        let passed_over: Vec<PassedOver> = Vec::new();
        Some(Placement {
            task: wanted.task.clone(),
            to: Queue::Agent(to),
            reasons: vec!["its bid won".into()],
            passed_over,
        })
    }
}

fn auctioned(name: &str, needs: &[&str]) -> TaskDraft {
    TaskDraft { pattern: Some("auction".into()), ..leaf(name, needs) }
}

fn fleet(tasks: Vec<TaskDraft>) -> Fleet {
    let mut fleet = Fleet::new();
    fleet.placing = Box::new(AsAwarded);
    fleet.slots.extend((1..=3).map(|number| (Queue::Agent(agent(number)), 4)));
    fleet.submit("Which limits are there?", RunLimits::default());
    fleet.do_task("plan", plan(tasks));
    fleet
}

/// A task that the first agent won against the second.
fn won() -> Fleet {
    let mut fleet = fleet(vec![auctioned("one", &[])]);
    bring(&mut fleet, "1", 1, vec![bid(1, "1", 1, 900), bid(2, "1", 1, 1_000)]);
    fleet
}

/// What agents were asked to bid for.
fn calls(fleet: &Fleet) -> Vec<(TaskId, u32)> {
    let calls = fleet.effects.iter().filter_map(|effect| match effect {
        Effect::CallForProposals { call, .. } => Some((call.task.clone(), call.number)),
        _ => None,
    });
    calls.collect()
}

fn bid(number: u32, task: &str, auction: u32, millis: u64) -> Bid {
    Bid {
        agent: agent(number),
        run: ID,
        task: task.parse().unwrap(),
        number: auction,
        millis,
        cost_micros: 0,
        confidence: 90,
        note: String::new(),
    }
}

fn bring(fleet: &mut Fleet, task: &str, auction: u32, bids: Vec<Bid>) {
    let index: TaskIndex = task.parse().unwrap();
    fleet.turn(vec![Input::Bids { task: index, number: auction, bids, track_records: BTreeMap::new() }]);
}

fn key(fleet: &Fleet, number: u32, task: &str) -> AgentKey {
    super::fleet::key(number, &fleet.find(task))
}

/// An agent takes a task, and ends it after so long.
fn does(fleet: &mut Fleet, number: u32, task: &str, after: Duration, well: bool) {
    let (key, offer) = (key(fleet, number, task), fleet.find(task));
    fleet.report_as(key.clone(), started());
    fleet.now = fleet.now.after(after);
    let outcome = if well { good(&offer, &[]) } else { failed(Ending::GaveUp, "no") };
    fleet.end_as(key, outcome);
}

fn held(fleet: &Fleet) -> Vec<(AgentId, bool)> {
    let held = fleet.events().into_iter().filter_map(|event| match event {
        RunEvent::BidHeld(BidHeld { agent, kept, .. }) => Some((agent.clone(), *kept)),
        _ => None,
    });
    held.collect()
}

fn awards(fleet: &Fleet) -> Vec<Option<AgentId>> {
    let awards = fleet.events().into_iter().filter_map(|event| match event {
        RunEvent::TaskAwarded(TaskAwarded { to, .. }) => Some(to.clone()),
        _ => None,
    });
    awards.collect()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_task_goes_to_whose_bid_wins_and_is_not_offered_before() {
    let mut fleet = fleet(vec![auctioned("one", &[])]);
    assert_eq!(calls(&fleet), [("1".parse().unwrap(), 1)]);
    assert!(fleet.open.is_empty(), "it waits for bids");
    bring(&mut fleet, "1", 1, vec![bid(1, "1", 1, 9_000), bid(2, "1", 1, 2_000)]);
    assert_eq!(fleet.find("1").queue, Queue::Agent(agent(2)));
    does(&mut fleet, 2, "1", SECOND, true);
    assert_eq!(held(&fleet), [(agent(2), true)]);
    fleet.finish(&[]);
    assert_eq!(calls(&fleet).len(), 1, "nobody is asked twice");
}

#[test]
fn nobody_bids_and_the_task_is_given_out_as_any_other() {
    let mut fleet = fleet(vec![auctioned("one", &[])]);
    bring(&mut fleet, "1", 1, Vec::new());
    assert_eq!(fleet.find("1").queue, Queue::Role(Role::Worker));
    fleet.work(|offer| good(offer, &[]));
    assert_eq!((fleet.status(), awards(&fleet)), (RunStatus::Completed, vec![None]));
}

/// Whoever asked for bids dies with them.
#[test]
fn bids_that_are_never_brought_hold_nothing_up() {
    let mut fleet = fleet(vec![auctioned("one", &[])]);
    let at = next_review(fleet.run()).unwrap();
    assert_eq!(at, fleet.now.after(Duration::from_millis(1_250)));
    fleet.at(at);
    assert_eq!(fleet.find("1").queue, Queue::Role(Role::Worker));
    bring(&mut fleet, "1", 1, vec![bid(1, "1", 1, 10)]);
    assert_eq!(awards(&fleet), [None], "they come too late");
}

#[test]
fn bids_for_something_else_do_not_count() {
    let mut fleet = fleet(vec![auctioned("one", &[]), auctioned("two", &[])]);
    bring(&mut fleet, "1", 7, vec![bid(1, "1", 7, 10)]);
    assert!(awards(&fleet).is_empty(), "there is no such auction");
    bring(&mut fleet, "1", 1, vec![bid(1, "2", 1, 10), bid(2, "1", 9, 10)]);
    assert_eq!(awards(&fleet), [None]);
}

#[test]
fn a_liar_stops_winning() {
    let mut fleet =
        fleet(vec![auctioned("one", &[]), auctioned("two", &["one"]), auctioned("three", &["two"])]);
    let honest = |task, auction| bid(1, task, auction, 3_000);
    let liar = |task, auction| bid(2, task, auction, 2_000);
    bring(&mut fleet, "1", 1, vec![honest("1", 1), liar("1", 1)]);
    does(&mut fleet, 2, "1", 20 * SECOND, true);
    assert_eq!(held(&fleet), [(agent(2), false)]);
    fleet.work(|offer| good(offer, &[]));
    bring(&mut fleet, "2", 1, vec![honest("2", 1), liar("2", 1)]);
    assert_eq!(fleet.find("2").queue, Queue::Agent(agent(1)));
    does(&mut fleet, 1, "2", 3 * SECOND, true);
    fleet.work(|offer| good(offer, &[]));
    bring(&mut fleet, "3", 1, vec![honest("3", 1), liar("3", 1)]);
    assert_eq!(fleet.find("3").queue, Queue::Agent(agent(1)));
    assert_eq!(fleet.run().tallies[&agent(2)].bids_broken, 1);
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn whoever_does_not_take_what_it_won_breaks_its_bid() {
    let mut fleet = won();
    assert_eq!(fleet.find("1").queue, Queue::Agent(agent(1)));
    // It is gone: its queue is, too.
    fleet.slots.remove(&Queue::Agent(agent(1)));
    fleet.at(fleet.now.after(3 * SECOND));
    fleet.finish(&[]);
}

#[test]
fn task_of_one_agent_fails_if_its_role_stays_away() {
    let mut fleet = won();
    fleet.slots.retain(|queue, _| *queue != Queue::Role(Role::Worker) && queue.role().is_some());
    fleet.turn(vec![Input::Capacity]);
    fleet.pass(30_000);
    assert!(fleet.reason().contains("none is in this fleet (for 1)"), "{}", fleet.reason());
}

#[test]
fn a_try_that_fails_breaks_the_bid_and_the_task_is_auctioned_again() {
    let mut fleet = won();
    does(&mut fleet, 1, "1", SECOND, false);
    assert_eq!(held(&fleet), [(agent(1), false)]);
    assert_eq!(calls(&fleet).last(), Some(&("1".parse().unwrap(), 2)));
    bring(&mut fleet, "1", 2, vec![bid(1, "1", 2, 900), bid(2, "1", 2, 1_000)]);
    assert_eq!(fleet.find("1").queue, Queue::Agent(agent(2)));
}

#[test]
fn any_task_opens_an_auction_for_a_part_that_it_hands_over() {
    let mut fleet = fleet(vec![leaf("one", &[])]);
    let offer = fleet.begin_task("1");
    fleet.wait(&offer, Wait::Task(Box::new(auctioned("part", &[]))));
    assert_eq!(calls(&fleet), [("2".parse().unwrap(), 1)]);
    bring(&mut fleet, "2", 1, vec![bid(2, "2", 1, 900), bid(3, "2", 1, 300)]);
    assert_eq!(awards(&fleet), [Some(agent(3))]);
    does(&mut fleet, 3, "2", SECOND / 10, true);
    let told = fleet.find("1").answered.unwrap().observation.content;
    assert!(told.contains("Task 2 gives"), "{told}");
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn whoever_won_and_does_not_start_breaks_its_bid_and_does_not_get_the_task_again() {
    let mut fleet = fleet(vec![auctioned("one", &[]), auctioned("two", &["one"])]);
    bring(&mut fleet, "1", 1, vec![bid(1, "1", 1, 900), bid(2, "1", 1, 1_000)]);
    assert_eq!(fleet.find("1").queue, Queue::Agent(agent(1)));
    fleet.at(fleet.now.after(6 * SECOND));
    assert_eq!(held(&fleet), [(agent(1), false)], "it did not hold its word");
    let again = fleet.find("1");
    assert_ne!(again.queue, Queue::Agent(agent(1)));
    let avoided = fleet.run().tasks[&again.task].avoid.iter().any(|one| one.agent == agent(1) && one.idle);
    assert!(avoided, "nor is it asked again");
    does(&mut fleet, 2, "1", SECOND, true);
    fleet.work(|offer| good(offer, &[]));
    bring(&mut fleet, "2", 1, vec![bid(1, "2", 1, 10), bid(2, "2", 1, 1_000)]);
    assert_eq!(fleet.find("2").queue, Queue::Agent(agent(2)), "its word is worth less");
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn whoever_won_and_falls_silent_breaks_its_bid() {
    let mut fleet = won();
    let key = key(&fleet, 1, "1");
    fleet.report_as(key.clone(), started());
    let AgentKey { agent: who, task, generation, .. } = key;
    fleet.turn(vec![Input::Silent { task, generation, agent: who, for_ms: 60_000 }]);
    assert_eq!(held(&fleet), [(agent(1), false)]);
    assert_ne!(fleet.find("1").queue, Queue::Agent(agent(1)));
    assert_eq!(calls(&fleet).len(), 1, "it goes on from what was done, and is not auctioned anew");
}

#[test]
fn whoever_won_and_is_late_breaks_its_bid() {
    let mut fleet = won();
    let (key, offer) = (key(&fleet, 1, "1"), fleet.find("1"));
    fleet.report_as(key, started());
    fleet.at(offer.deadline.after(3 * SECOND));
    assert_eq!(held(&fleet), [(agent(1), false)]);
    bring(&mut fleet, "1", 2, vec![bid(1, "1", 2, 900), bid(2, "1", 2, 1_000)]);
    assert_eq!(awards(&fleet), [Some(agent(1)), Some(agent(2))], "it does not win the task again");
}

#[test]
fn a_winner_without_room_is_not_waited_for() {
    let mut fleet = fleet(vec![auctioned("one", &[])]);
    fleet.slots.insert(Queue::Agent(agent(1)), 0);
    bring(&mut fleet, "1", 1, vec![bid(1, "1", 1, 900), bid(2, "1", 1, 1_000)]);
    assert!(fleet.open.is_empty(), "it has no room");
    let at = next_review(fleet.run()).unwrap();
    assert_eq!(at, fleet.now.after(5 * SECOND));
    fleet.at(at);
    assert_eq!(fleet.find("1").queue, Queue::Role(Role::Worker));
}

#[test]
fn what_is_thought_about_an_auctioned_task_is_not_auctioned() {
    let mut fleet = fleet(vec![auctioned("one", &[]), leaf("two", &["one"])]);
    bring(&mut fleet, "1", 1, vec![bid(1, "1", 1, 9_000)]);
    does(&mut fleet, 1, "1", SECOND, true);
    assert_eq!(calls(&fleet), [("1".parse().unwrap(), 1)]);
    assert_eq!(fleet.find("reflect-1").queue, Queue::Role(Role::Reflector));
}
