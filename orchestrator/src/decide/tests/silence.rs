//! Agents that have a task and do nothing with it, come too late with it, or hand it back.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::flow::{
    Ending, Finding, Outcome, Placement, Product, RunLimits, TaskOffered, TaskResult, TaskStatus,
};
use muster_shared::ids::{AgentId, Generation, Queue, Role};
use muster_shared::run::event::FailureAnswered;
use muster_shared::run::{Input, RunEvent};

use super::fleet::{Fleet, agent, begins, failed, key, leaf, plan, queue, result};
use crate::decide::{Effect, Place, Wanted, patience};
use crate::replay::replay;

fn fleet() -> Fleet {
    planned(Fleet::new())
}

fn planned(mut fleet: Fleet) -> Fleet {
    fleet.submit("Which limits are there?", RunLimits::default());
    fleet.do_task("plan", plan(vec![leaf("apples", &[])]));
    fleet.defer = false;
    fleet
}

fn start(fleet: &mut Fleet, number: u32, offer: &TaskOffered) {
    fleet.report_as(key(number, offer), begins(0, &format!("ack-{number}")));
}

fn silent(fleet: &mut Fleet, number: u32, offer: &TaskOffered) {
    let (task, generation) = (offer.task.clone(), offer.generation);
    fleet.turn(vec![Input::Silent { task, generation, agent: agent(number), for_ms: 61_000 }]);
}

#[test]
fn a_task_is_taken_from_an_agent_that_falls_silent_and_another_goes_on() {
    let mut fleet = fleet();
    let offer = fleet.find("1");
    assert_eq!(patience(fleet.run(), fleet.run().planned(&"1".parse().unwrap()).unwrap()), None);
    start(&mut fleet, 1, &offer);
    let state = &fleet.run().tasks[&offer.task];
    assert_eq!(patience(fleet.run(), state), Some(Duration::from_secs(60)), "limits.silence");
    silent(&mut fleet, 1, &offer);
    let again = fleet.find("1");
    assert_eq!((again.generation, again.continues), (Generation(2), Some(Generation(1))));
    let state = &fleet.run().tasks[&offer.task];
    let avoided: Vec<_> = state.avoid.iter().map(|avoided| (avoided.agent.clone(), avoided.idle)).collect();
    assert_eq!(avoided, [(agent(1), true)]);
    assert_eq!(fleet.run().tallies[&agent(1)].late, 1);
    assert!(fleet.has_withdrawn(&offer, 1));
    let told = fleet
        .effects
        .iter()
        .any(|effect| matches!(effect, Effect::CancelTask { agent: Some(to), .. } if *to == agent(1)));
    assert!(told, "whoever fell silent is told: {:?}", fleet.effects);
    start(&mut fleet, 2, &again);
    assert_eq!(patience(fleet.run(), &fleet.run().tasks[&offer.task]), Some(Duration::from_secs(120)));
    fleet.end_as(key(2, &again), result("apples are so"));
    fleet.finish(&[]);
}

#[test]
fn the_silence_of_somebody_who_does_not_have_the_task_changes_nothing() {
    let mut fleet = fleet();
    let offer = fleet.find("1");
    silent(&mut fleet, 1, &offer);
    start(&mut fleet, 1, &offer);
    silent(&mut fleet, 2, &offer);
    assert_eq!(fleet.run().tasks[&offer.task].status, TaskStatus::Processing);
    let taken = fleet.events().into_iter().any(|event| matches!(event, RunEvent::TaskTakenBack(_)));
    assert!(!taken);
}

#[test]
fn a_task_with_which_all_fall_silent_fails_in_the_end() {
    let mut fleet = fleet();
    for number in 1..=3 {
        let offer = fleet.find("1");
        start(&mut fleet, number, &offer);
        silent(&mut fleet, number, &offer);
    }
    let state = fleet.run().planned(&"1".parse().unwrap()).unwrap();
    assert_eq!((state.status, state.failures), (TaskStatus::Failed, 3));
    assert!(state.reasons[0].contains("wrote nothing about it for 61 s"), "{:?}", state.reasons);
}

#[test]
fn without_a_limit_silence_may_last() {
    let mut fleet = Fleet::new();
    fleet.submit("Which limits are there?", RunLimits { silence_ms: 0, ..RunLimits::default() });
    fleet.begin_task("plan");
    fleet.defer = false;
    fleet.turn(vec![Input::Timer]);
    assert!(fleet.run().tasks.values().all(|state| patience(fleet.run(), state).is_none()));
}

/// A part of a result, as an agent gives it whose time is up.
fn part(ending: Ending) -> Outcome {
    let finding = Finding { text: "half of it".into(), ..Finding::default() };
    let result =
        TaskResult { conclusion: "half of it".into(), findings: vec![finding], ..TaskResult::default() };
    Outcome { product: Some(Product::Result(result)), ..failed(ending, "the task's time was up") }
}

#[test]
fn what_comes_too_late_and_in_part_goes_to_another() {
    for ending in [Ending::DonePartial, Ending::DeadlinePassed] {
        let mut fleet = fleet();
        let offer = fleet.find("1");
        start(&mut fleet, 1, &offer);
        fleet.now = offer.deadline.after(Duration::from_millis(500));
        fleet.end_as(key(1, &offer), part(ending));
        let state = &fleet.run().tasks[&offer.task];
        assert_eq!((state.status, state.generation), (TaskStatus::Queued, Generation(2)), "{ending:?}");
        let tally = fleet.run().tallies[&agent(1)];
        assert_eq!((tally.done, tally.late, tally.failed), (0, 1, 0), "{ending:?}");
        // Nobody does better: then the part counts, and that is said.
        let again = fleet.find("1");
        start(&mut fleet, 2, &again);
        fleet.now = again.deadline.after(Duration::from_millis(500));
        fleet.end_as(key(2, &again), part(ending));
        assert_eq!(fleet.run().tasks[&offer.task].status, TaskStatus::Completed);
        assert_eq!(fleet.run().tallies[&agent(2)].late, 1, "{ending:?}");
        let marked = fleet.events().into_iter().any(
            |event| matches!(event, RunEvent::FailureAnswered(FailureAnswered { marked: Some(why), .. }) if why.contains("time was up")),
        );
        assert!(marked, "{ending:?}");
    }
}

#[test]
fn what_was_done_in_part_in_time_counts() {
    let mut fleet = fleet();
    let offer = fleet.find("1");
    start(&mut fleet, 1, &offer);
    fleet.end_as(key(1, &offer), part(Ending::DonePartial));
    assert_eq!(fleet.run().tasks[&offer.task].status, TaskStatus::Completed);
    assert_eq!(fleet.run().tallies[&agent(1)].done, 1);
}

#[test]
fn blocked_and_handed_back_count_in_the_statistics() {
    let mut fleet = fleet();
    let offer = fleet.find("1");
    start(&mut fleet, 1, &offer);
    fleet.end_as(key(1, &offer), failed(Ending::Blocked, "no key"));
    let again = fleet.find("1");
    start(&mut fleet, 2, &again);
    fleet.end_as(key(2, &again), failed(Ending::Delegate, "another should do it"));
    let tallies = &fleet.run().tallies;
    assert_eq!((tallies[&agent(1)].failed, tallies[&agent(2)].handed_back), (1, 1));
}

/// Notes the words of those who handed tasks back, and places nothing.
#[derive(Debug, Clone, Default)]
struct Listens(std::sync::Arc<std::sync::Mutex<Vec<String>>>);

impl Place for Listens {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        self.0.lock().unwrap().extend(wanted.named.map(str::to_owned));
        None
    }
}

#[test]
fn what_is_handed_back_goes_to_the_role_that_is_named() {
    for (words, to) in [
        ("Beta should do it", "beta"),
        ("this is for the role `beta`: it knows SQL", "beta"),
        ("the researcher should do it", "researcher"),
        ("somebody else should do it", "worker"),
        ("gamma should do it", "worker"),
        ("a planner should do it", "worker"),
    ] {
        let listens = Listens::default();
        let mut fleet = Fleet::new();
        fleet.placing = Box::new(listens.clone());
        fleet.slots.insert(queue("beta".parse().unwrap()), 1);
        let mut fleet = planned(fleet);
        let offer = fleet.find("1");
        start(&mut fleet, 1, &offer);
        fleet.end_as(key(1, &offer), failed(Ending::Delegate, words));
        let (again, to) = (fleet.find("1"), to.parse::<Role>().unwrap());
        assert_eq!(again.work.leaf().map(|task| &task.role), Some(&to), "its prompt and rules: {words}");
        assert_eq!(again.queue, Queue::Role(to), "{words}");
        assert!(listens.0.lock().unwrap().iter().any(|heard| heard == words), "the fleet is told: {words}");
        replay(super::fleet::ID, &fleet.record).unwrap();
    }
}

#[test]
fn offers_that_nobody_starts_go_elsewhere_after_the_time_that_is_set() {
    let mut fleet = Fleet::new();
    fleet.submit("Which limits are there?", RunLimits { start_within_ms: 2_000, ..RunLimits::default() });
    let offer = fleet.find("plan");
    fleet.at(fleet.now.after(Duration::from_millis(1_900)));
    assert_eq!(fleet.find("plan").generation, offer.generation);
    fleet.at(fleet.now.after(Duration::from_millis(200)));
    assert_eq!(fleet.find("plan").generation, offer.generation.next());
}

#[test]
fn the_time_until_an_offer_is_made_again_grows_to_eight_times_and_no_further() {
    let mut fleet = Fleet::new();
    let limits = RunLimits { start_within_ms: 1_000, max_generations: 100, ..RunLimits::default() };
    fleet.submit("Which limits are there?", limits);
    let mut waits = Vec::new();
    for _ in 0..6 {
        let (before, mut seconds) = (fleet.find("plan").generation, 0);
        while fleet.find("plan").generation == before {
            assert!(seconds <= 8, "{waits:?}");
            fleet.at(fleet.now.after(Duration::from_secs(1)));
            seconds += 1;
        }
        waits.push(seconds);
    }
    assert_eq!(waits, [1, 2, 4, 8, 8, 8]);
}

/// Says whether somebody is to be asked by name.
#[derive(Debug, Clone, Default)]
struct ByName(std::sync::Arc<std::sync::Mutex<Named>>);

/// Whether a task was asked for by name, and whom it avoids.
type Named = BTreeMap<String, (bool, Vec<AgentId>)>;

impl Place for ByName {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        let avoid: Vec<AgentId> = wanted.avoid.iter().map(|avoided| avoided.agent.clone()).collect();
        let free = (1..=3).map(agent).find(|agent| !avoid.contains(agent));
        self.0.lock().unwrap().insert(wanted.task.to_string(), (wanted.by_name, avoid));
        let to = Queue::Agent(free.filter(|_| wanted.by_name)?);
        let (task, reasons, passed_over) = (wanted.task.clone(), Vec::new(), Vec::new());
        Some(Placement { task, to, reasons, passed_over })
    }
}

#[test]
fn what_lay_in_its_roles_queue_unstarted_is_given_to_somebody_by_name() {
    let mut fleet = Fleet::new();
    fleet.placing = Box::new(ByName::default());
    fleet.slots.extend((1..=3).map(|number| (Queue::Agent(agent(number)), 4)));
    let mut fleet = planned(fleet);
    assert_eq!(fleet.find("1").queue, queue(Role::Worker));
    fleet.at(fleet.now.after(Duration::from_secs(6)));
    assert_eq!(fleet.find("1").queue, Queue::Agent(agent(1)), "whoever took it would take it again");
    fleet.at(fleet.now.after(Duration::from_secs(6)));
    assert_ne!(fleet.find("1").queue, Queue::Agent(agent(1)));
}

#[test]
fn members_of_a_group_are_asked_by_name_each_another() {
    let asked = ByName::default();
    let mut fleet = Fleet::new();
    fleet.placing = Box::new(asked.clone());
    fleet.slots.extend((1..=3).map(|number| (Queue::Agent(agent(number)), 4)));
    fleet.submit("Which limits are there?", RunLimits::default());
    let planning = fleet.begin_task("plan");
    let committee =
        muster_shared::flow::TaskDraft { pattern: Some("committee:3".into()), ..leaf("apples", &[]) };
    fleet.end(&planning, plan(vec![committee]));
    let queues: Vec<Queue> = ["1~a", "1~b", "1~c"].map(|member| fleet.find(member).queue).to_vec();
    assert_eq!(queues, (1..=3).map(|number| Queue::Agent(agent(number))).collect::<Vec<_>>());
}
