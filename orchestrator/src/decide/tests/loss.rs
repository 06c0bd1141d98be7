//! Agents that are lost, and tasks that they are lost with.

use std::collections::BTreeMap;

use muster_shared::flow::{Ending, RunLimits, TaskOffered, TaskStatus};
use muster_shared::ids::{Attempt, Generation, Queue, TaskId};
use muster_shared::run::event::TaskQuarantined;
use muster_shared::run::{AgentEvent, AgentKey, Input, Released, RunEvent, RunStatus, Started, TaskState};
use muster_shared::time::Millis;

use super::fleet::{Fleet, ack_in, agent, cancel, failed, leaf, result};
use crate::decide::{Effect, hand_on_again, holders, last_chances, next_review};

/// A run with one leaf on offer, its queue empty otherwise.
fn fleet() -> (Fleet, TaskOffered) {
    let mut fleet = Fleet::planned(RunLimits::default(), vec![leaf("apples", &[])]);
    fleet.effects.clear();
    let offer = fleet.find("1");
    (fleet, offer)
}

/// An agent starts; whether the run decides at once is the driver's choice.
fn start(fleet: &mut Fleet, offer: &TaskOffered, number: u32, after_step: u32) {
    let started = Started {
        attempt: Attempt(number),
        ack: format!("ack-{number}"),
        pid: number,
        host: "here".into(),
        after_step,
    };
    say(fleet, offer, number, AgentEvent::Started(started));
}

fn say(fleet: &mut Fleet, offer: &TaskOffered, number: u32, event: AgentEvent) {
    let Queue::Role(role) = offer.queue.clone() else { panic!("a queue of a role is meant") };
    let key = AgentKey { role, agent: agent(number), task: offer.task.clone(), generation: offer.generation };
    fleet.report_as(key, event);
}

fn lose(fleet: &mut Fleet, number: u32, steps: &[(&TaskId, u32)]) {
    let steps: BTreeMap<TaskId, u32> = steps.iter().map(|(task, step)| ((*task).clone(), *step)).collect();
    fleet.turn(vec![Input::AgentLost {
        agent: agent(number),
        reason: "its connection ended".into(),
        steps,
        elsewhere: 0,
    }]);
}

fn task<'a>(fleet: &'a Fleet, offer: &TaskOffered) -> &'a TaskState {
    &fleet.run().tasks[&offer.task]
}

fn handed_on(fleet: &Fleet) -> Vec<&str> {
    let acks = fleet.effects.iter().filter_map(|effect| match effect {
        Effect::HandOn { ack, .. } => ack.rsplit('.').next(),
        _ => None,
    });
    acks.collect()
}

#[test]
fn who_leaves_its_attempt_out_has_it_counted() {
    let (mut fleet, offer) = fleet();
    let uncounted = |ack: &str| {
        let text = format!(r#"{{"ack": "{ack}"}}"#);
        AgentEvent::Started(serde_json::from_str(&text).unwrap())
    };
    say(&mut fleet, &offer, 1, uncounted("ack-1"));
    lose(&mut fleet, 1, &[]);
    assert_eq!(handed_on(&fleet), ["1"]);
    say(&mut fleet, &offer, 2, uncounted("ack-2"));
    lose(&mut fleet, 2, &[]);
    let deaths: Vec<_> =
        task(&fleet, &offer).deaths.iter().map(|death| (death.agent.clone(), death.attempt)).collect();
    assert_eq!(deaths, [(agent(1), Attempt(1)), (agent(2), Attempt(2))]);
}

#[test]
fn a_loss_is_decided_together_with_a_start_that_was_put_off() {
    let (mut fleet, offer) = fleet();
    start(&mut fleet, &offer, 1, 0);
    assert_eq!(task(&fleet, &offer).status, TaskStatus::Queued, "the start was put off");
    assert_eq!(holders(fleet.run()).into_iter().collect::<Vec<_>>(), [agent(1)]);
    lose(&mut fleet, 1, &[]);
    assert_eq!(handed_on(&fleet), ["1"]);
    let state = task(&fleet, &offer);
    assert_eq!(
        (state.status, state.generation, state.attempt),
        (TaskStatus::Queued, offer.generation, Attempt(1))
    );
    assert_eq!((state.agent.as_ref(), state.deaths.len(), state.reasons.len()), (None, 1, 0));
}

#[test]
fn what_an_agent_does_not_hold_is_left_alone() {
    let (mut fleet, offer) = fleet();
    start(&mut fleet, &offer, 1, 0);
    lose(&mut fleet, 2, &[]);
    assert!(handed_on(&fleet).is_empty());
    lose(&mut fleet, 1, &[]);
    lose(&mut fleet, 1, &[]);
    assert_eq!(handed_on(&fleet), ["1"], "a loss that is told twice is one");
    start(&mut fleet, &offer, 2, 0);
    lose(&mut fleet, 1, &[]);
    assert_eq!(handed_on(&fleet), ["1"], "another has the task by now");
}

#[test]
fn whoever_takes_over_ends_the_task_and_the_run_goes_on() {
    let (mut fleet, offer) = fleet();
    start(&mut fleet, &offer, 1, 0);
    lose(&mut fleet, 1, &[]);
    start(&mut fleet, &offer, 2, 3);
    fleet.end(&offer, result("apples are so"));
    fleet.finish(&[leaf("apples", &[])]);
    assert_eq!(fleet.offered().iter().filter(|made| made.task == offer.task).count(), 1, "one generation");
}

#[test]
fn an_orphan_that_nobody_starts_is_offered_anew_and_goes_on_from_its_last_step() {
    let (mut fleet, offer) = fleet();
    start(&mut fleet, &offer, 1, 3);
    lose(&mut fleet, 1, &[]);
    let wait = |fleet: &mut Fleet, seconds| {
        fleet.at(fleet.now.after(std::time::Duration::from_secs(seconds)));
    };
    wait(&mut fleet, 4);
    assert_eq!(task(&fleet, &offer).generation, offer.generation, "it may be started yet");
    wait(&mut fleet, 2);
    let again = fleet.offered().into_iter().rfind(|made| made.task == offer.task).unwrap();
    assert_eq!((again.generation, again.continues), (offer.generation.next(), Some(offer.generation)));
    assert_eq!(again.nonce, offer.nonce);
    assert!(fleet.has_withdrawn(&offer, 1), "its old entry is in nobody's way: {:?}", fleet.effects);
    let again = again.clone();
    start(&mut fleet, &again, 2, 3);
    fleet.end(&again, result("apples are so"));
    fleet.finish(&[leaf("apples", &[])]);
}

#[test]
fn an_orphan_waits_as_long_as_its_queue_has_no_room() {
    let (mut fleet, offer) = fleet();
    start(&mut fleet, &offer, 1, 0);
    lose(&mut fleet, 1, &[]);
    fleet.slots.insert(offer.queue.clone(), 0);
    fleet.at(fleet.now.after(std::time::Duration::from_secs(60)));
    assert_eq!(task(&fleet, &offer).generation, offer.generation);
}

#[test]
fn whoever_takes_a_run_over_has_orphans_given_out_again() {
    let (mut fleet, offer) = fleet();
    let (task, queue) = (offer.task.clone(), offer.queue.clone());
    let unstarted = Effect::HandOnUnstarted { task, queue };
    assert_eq!(hand_on_again(fleet.run()), [unstarted], "whoever took it may be lost");
    start(&mut fleet, &offer, 1, 0);
    assert_eq!(hand_on_again(fleet.run()), [], "an agent has it");
    lose(&mut fleet, 1, &[]);
    let hand_on =
        Effect::HandOn { task: offer.task.clone(), queue: offer.queue.clone(), ack: ack_in(&offer.queue, 1) };
    assert_eq!(hand_on_again(fleet.run()), [hand_on], "the word of it may be lost");
    start(&mut fleet, &offer, 2, 0);
    assert_eq!(hand_on_again(fleet.run()), [], "the next has it, decided upon or not");
}

#[test]
fn an_orderly_hand_over_is_no_death_and_nothing_to_hand_on() {
    let (mut fleet, offer) = fleet();
    let handed_over =
        AgentEvent::Released(Released { reason: "it stops".into(), parked: false, ..Released::default() });
    for number in 1..=5 {
        start(&mut fleet, &offer, number, 0);
        say(&mut fleet, &offer, number, handed_over.clone());
        lose(&mut fleet, number, &[]);
    }
    assert!(handed_on(&fleet).is_empty());
    fleet.defer = false;
    fleet.turn(vec![Input::Timer]);
    let state = task(&fleet, &offer);
    assert_eq!((state.status, state.deaths.len()), (TaskStatus::Queued, 0));
}

#[test]
fn the_third_death_without_a_step_between_ends_the_task() {
    let (mut fleet, offer) = fleet();
    for number in 1..=3 {
        start(&mut fleet, &offer, number, 0);
        lose(&mut fleet, number, &[]);
    }
    assert_eq!(handed_on(&fleet), ["1", "2"]);
    assert!(fleet.has_withdrawn(&offer, 3));
    let buried =
        fleet.effects.iter().any(|effect| matches!(effect, Effect::Bury { task, .. } if *task == offer.task));
    assert!(buried, "{:?}", fleet.effects);
    assert_eq!(task(&fleet, &offer).status, TaskStatus::Failed);
    let evidence = fleet.events().into_iter().find_map(|event| match event {
        RunEvent::TaskQuarantined(TaskQuarantined { evidence, .. }) => Some(evidence.clone()),
        _ => None,
    });
    let evidence = evidence.unwrap();
    assert_eq!((evidence.agents, evidence.last_step), (vec![agent(1), agent(2), agent(3)], 0));
    assert!(evidence.reason.contains("3 agents") && evidence.reason.contains("its connection ended"));
    assert!(!fleet.status().is_ended());
    assert!(fleet.find("refine-1").generation.0 == 1, "the plan can deal with it");
}

#[test]
fn a_step_between_two_deaths_clears_the_task() {
    // The steps that are in the record before each start, and the deaths that count after the last loss.
    let cases: [(&[u32], usize); 5] = [
        (&[0, 0], 2),
        // The first agent took two steps before it died, and nobody took one since.
        (&[0, 2], 2),
        (&[0, 2, 3], 2),
        (&[0, 1, 2, 3, 4, 5], 2),
        (&[0, 1, 1], 3),
    ];
    for (before, deaths) in cases {
        let (mut fleet, offer) = fleet();
        for (number, after_step) in (1..).zip(before) {
            start(&mut fleet, &offer, number, *after_step);
            lose(&mut fleet, number, &[]);
        }
        assert_eq!(task(&fleet, &offer).deaths.len(), deaths, "{before:?}");
    }
}

#[test]
fn a_step_of_the_last_one_lost_is_told_by_the_record() {
    let (mut fleet, offer) = fleet();
    for number in 1..=2 {
        start(&mut fleet, &offer, number, 0);
        lose(&mut fleet, number, &[]);
    }
    start(&mut fleet, &offer, 3, 0);
    assert_eq!(last_chances(fleet.run(), &agent(3)), [(offer.task.clone(), offer.generation)]);
    assert!(last_chances(fleet.run(), &agent(2)).is_empty(), "it does not hold the task any more");
    lose(&mut fleet, 3, &[(&offer.task, 1)]);
    let state = task(&fleet, &offer);
    assert_eq!((state.status, state.deaths.len(), state.last_step), (TaskStatus::Queued, 1, 1));
    assert_eq!(handed_on(&fleet), ["1", "2", "3"]);
}

#[test]
fn a_run_that_cannot_do_without_the_task_fails_with_the_evidence() {
    let mut fleet = Fleet::submitted(RunLimits { max_deaths: 1, ..RunLimits::default() });
    let planning = fleet.find("plan");
    start(&mut fleet, &planning, 1, 0);
    lose(&mut fleet, 1, &[]);
    assert_eq!(fleet.status(), RunStatus::Failed);
    assert!(
        fleet.reason().contains("no plan could be made") && fleet.reason().contains("died"),
        "{}",
        fleet.reason()
    );
}

#[test]
fn without_a_limit_agents_may_die_for_ever() {
    let mut fleet = Fleet::submitted(RunLimits { max_deaths: 0, ..RunLimits::default() });
    let planning = fleet.find("plan");
    for number in 1..=20 {
        start(&mut fleet, &planning, number, 0);
        lose(&mut fleet, number, &[]);
    }
    assert_eq!(fleet.run().tasks[&planning.task].status, TaskStatus::Queued);
}

#[test]
fn after_the_end_of_the_run_a_loss_changes_nothing() {
    let (mut fleet, offer) = fleet();
    start(&mut fleet, &offer, 1, 0);
    fleet.turn(vec![cancel("ann", "enough")]);
    fleet.effects.clear();
    lose(&mut fleet, 1, &[]);
    assert!(fleet.effects.is_empty());
}

#[test]
fn an_offer_that_seems_lost_is_made_again_so_that_nothing_done_by_it_is_done_twice() {
    let (mut fleet, first) = fleet();
    for generation in 2..=3 {
        let waits = next_review(fleet.run()).unwrap();
        fleet.now = Millis(waits.0 - 1);
        fleet.turn(vec![Input::Capacity]);
        assert_eq!(task(&fleet, &first).generation, Generation(generation - 1), "it is not late yet");
        fleet.now = waits;
        fleet.turn(vec![Input::Capacity]);
        let again = fleet.find("1");
        assert_eq!((again.generation, again.continues), (Generation(generation), Some(first.generation)));
        assert_eq!(again.nonce, first.nonce, "prompts in the record stay as they are");
    }
    let third = fleet.begin_task("1");
    fleet.park(&third);
    let fourth = fleet.find("1");
    assert_eq!((fourth.generation, fourth.continues), (Generation(4), Some(first.generation)));
    fleet.start(&fourth);
    fleet.end(&fourth, failed(Ending::GaveUp, "no idea"));
    assert_eq!(fleet.find("1").continues, None, "another try begins anew");
}

/// A run with three leaves on offer.
fn three() -> (Fleet, Vec<TaskOffered>) {
    let mut fleet = Fleet::planned(
        RunLimits::default(),
        vec![leaf("apples", &[]), leaf("pears", &[]), leaf("plums", &[])],
    );
    fleet.effects.clear();
    let offers = ["1", "2", "3"].map(|task| fleet.find(task)).to_vec();
    (fleet, offers)
}

/// Two agents, one after the other, are lost with all of these tasks.
fn lose_all_twice(fleet: &mut Fleet, offers: &[TaskOffered]) {
    for number in 1..=2 {
        offers.iter().for_each(|offer| start(fleet, offer, number, 0));
        lose(fleet, number, &[]);
    }
}

fn quarantined(fleet: &Fleet) -> Vec<TaskId> {
    let events = fleet.events().into_iter().filter_map(|event| match event {
        RunEvent::TaskQuarantined(TaskQuarantined { task, .. }) => Some(task.clone()),
        _ => None,
    });
    events.collect()
}

#[test]
fn what_died_with_others_is_tried_alone_before_it_is_called_deadly() {
    let (mut fleet, offers) = three();
    lose_all_twice(&mut fleet, &offers);
    assert_eq!(handed_on(&fleet).len(), 3, "handed on once: {:?}", fleet.effects);
    let again: Vec<TaskOffered> = ["1", "2", "3"].map(|task| fleet.find(task)).to_vec();
    for (offer, before) in again.iter().zip(&offers) {
        assert!(offer.alone, "{} is a suspect", offer.task);
        assert_eq!((offer.generation, offer.continues), (before.generation.next(), Some(before.generation)));
        let deaths: Vec<u32> = task(&fleet, offer).deaths.iter().map(|death| death.beside).collect();
        assert_eq!(deaths, [2, 2], "what died of it counts on");
    }
    // The first is poison, the others are innocent.
    start(&mut fleet, &again[0], 3, 0);
    lose(&mut fleet, 3, &[]);
    assert_eq!(quarantined(&fleet), [again[0].task.clone()]);
    for (number, offer) in (4..).zip(&again[1..]) {
        start(&mut fleet, offer, number, 0);
        fleet.end(offer, result("so it is"));
        assert_eq!(task(&fleet, offer).status, TaskStatus::Completed);
    }
    let usage = fleet.run().spending.used;
    assert_eq!(usage.wasted_calls, 3, "what was sent by those who died is counted");
}

#[test]
fn a_step_clears_a_suspect() {
    let (mut fleet, offers) = three();
    lose_all_twice(&mut fleet, &offers);
    let again = fleet.find("2");
    start(&mut fleet, &again, 3, 0);
    lose(&mut fleet, 3, &[(&again.task, 1)]);
    assert_eq!(quarantined(&fleet), []);
    assert_eq!(task(&fleet, &again).deaths.len(), 1, "only what died since the step counts");
    assert_eq!(handed_on(&fleet).len(), 4, "it goes to the next one at once");
}

#[test]
fn what_an_agent_had_of_other_runs_may_have_been_its_death() {
    let (mut fleet, offer) = fleet();
    let lost = |fleet: &mut Fleet, number: u32| {
        let (reason, steps) = ("its connection ended".into(), BTreeMap::new());
        fleet.turn(vec![Input::AgentLost { agent: agent(number), reason, steps, elsewhere: 7 }]);
    };
    for number in 1..=2 {
        start(&mut fleet, &offer, number, 0);
        lost(&mut fleet, number);
    }
    let mut again = fleet.find("1");
    assert!(again.alone);
    // Whoever does not know what is meant takes it beside others: that proves nothing, within limits.
    for number in 1..=3 {
        again = fleet.find("1");
        start(&mut fleet, &again, number, 0);
        lost(&mut fleet, number);
        assert_eq!(quarantined(&fleet), []);
    }
    start(&mut fleet, &again, 4, 0);
    lost(&mut fleet, 4);
    assert_eq!(quarantined(&fleet), [again.task], "twice as many as may die are enough");
}

#[test]
fn a_suspect_waits_for_room_and_nobody_is_told_to_take_it_meanwhile() {
    let (mut fleet, offers) = three();
    for number in 1..=2 {
        offers.iter().for_each(|offer| start(&mut fleet, offer, number, 0));
        if number == 2 {
            fleet.slots.insert(offers[0].queue.clone(), 0);
        }
        lose(&mut fleet, number, &[]);
    }
    assert!(fleet.open.iter().all(|offer| !offer.alone), "the queue has no room");
    assert_eq!(hand_on_again(fleet.run()), [], "it is to be offered anew");
    fleet.slots.insert(offers[0].queue.clone(), 8);
    fleet.turn(vec![Input::Capacity]);
    assert!(["1", "2", "3"].iter().all(|task| fleet.find(task).alone));
}

#[test]
fn what_two_died_of_alone_needs_no_further_proof() {
    let (mut fleet, offers) = three();
    for number in 1..=2 {
        start(&mut fleet, &offers[0], number, 0);
        lose(&mut fleet, number, &[]);
    }
    offers.iter().for_each(|offer| start(&mut fleet, offer, 3, 0));
    lose(&mut fleet, 3, &[]);
    assert_eq!(quarantined(&fleet), [offers[0].task.clone()]);
}
