//! Who has a say in a task: those that it was offered to, and of them whoever has it. The others change nothing.

use std::collections::BTreeMap;

use muster_shared::flow::{Budget, Outcome, RunLimits, TaskOffered, TaskStatus, Usage};
use muster_shared::ids::{AgentId, Attempt, Role};
use muster_shared::run::{
    AgentEvent, AgentKey, EventKind, Input, Released, RunStatus, Started, Unreadable, gaps,
};

use super::fleet::{Fleet, ID, good, leaf, plan, result};
use crate::decide::Effect;
use crate::replay::replay;

/// A run with one leaf in an agent's hands.
fn fleet() -> (Fleet, TaskOffered) {
    fleet_with(RunLimits::default())
}

fn fleet_with(limits: RunLimits) -> (Fleet, TaskOffered) {
    let mut fleet = Fleet::submitted(limits);
    let planning = fleet.find("plan");
    fleet.start(&planning);
    fleet.end(&planning, plan(vec![leaf("apples", &[])]));
    let offer = fleet.find("1");
    fleet.start(&offer);
    fleet.effects.clear();
    (fleet, offer)
}

fn another(role: Role, offer: &TaskOffered) -> AgentKey {
    let agent = AgentId::new(&role.to_string(), 9);
    AgentKey { role, agent, task: offer.task.clone(), generation: offer.generation }
}

/// The task is still with whoever began it.
fn is_in_hand(fleet: &Fleet, offer: &TaskOffered) {
    let task = &fleet.run().tasks[&offer.task];
    let agent = Some(AgentId::new("worker", 1));
    assert_eq!(
        (task.status, &task.agent, task.generation),
        (TaskStatus::Processing, &agent, offer.generation)
    );
    assert!(task.outcome.is_none() && task.reasons.is_empty(), "{task:?}");
}

fn buried(fleet: &Fleet) -> usize {
    fleet.effects.iter().filter(|effect| matches!(effect, Effect::BuryEntry { .. })).count()
}

#[test]
fn what_others_say_of_a_task_in_hand_is_a_dead_letter_and_changes_nothing() {
    let garbled = |kind| AgentEvent::Unreadable(Unreadable { kind, why: "it is no message".into() });
    let said = [
        AgentEvent::Outcome(result("apples are poison").into()),
        AgentEvent::Released(Released { reason: "forged".into(), ..Released::default() }),
        AgentEvent::Released(Released { reason: "forged".into(), parked: true, ..Released::default() }),
        garbled(EventKind::Outcome),
        garbled(EventKind::Released),
        garbled(EventKind::Started),
    ];
    for role in [Role::Worker, Role::Writer] {
        for event in said.clone() {
            let (mut fleet, offer) = fleet();
            fleet.report_as(another(role.clone(), &offer), event.clone());
            is_in_hand(&fleet, &offer);
            assert_eq!(buried(&fleet), 1, "{role}: {event:?}");
            fleet.end(&offer, result("apples are so"));
            assert_eq!(fleet.run().tasks[&offer.task].status, TaskStatus::Completed);
            fleet.work(|offer| good(offer, &[leaf("apples", &[])]));
            assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
            replay(ID, &fleet.record).unwrap();
            assert_eq!(gaps(&fleet.record), []);
        }
    }
}

#[test]
fn whoever_it_was_not_offered_to_cannot_begin_it() {
    let (mut fleet, offer) = fleet();
    fleet.report_as(another(Role::Planner, &offer), super::fleet::started());
    is_in_hand(&fleet, &offer);
    assert_eq!(buried(&fleet), 1);
}

fn begins(attempt: u32, ack: &str) -> AgentEvent {
    let (ack, host) = (ack.to_owned(), "here".to_owned());
    AgentEvent::Started(Started { attempt: Attempt(attempt), ack, pid: 1, host, after_step: 0 })
}

#[test]
fn tries_are_counted_by_whoever_decides_whatever_their_authors_say() {
    let (mut fleet, offer) = fleet();
    fleet.defer = false;
    let agent = AgentId::new("worker", 1);
    let lost = |fleet: &mut Fleet, agent: AgentId| {
        fleet.turn(vec![Input::AgentLost {
            agent,
            reason: "it is gone".into(),
            steps: BTreeMap::new(),
            elsewhere: 0,
        }]);
    };
    lost(&mut fleet, agent);
    let mut last = another(Role::Worker, &offer);
    fleet.report_as(last.clone(), begins(u32::MAX, "ack"));
    assert_eq!(fleet.run().tasks[&offer.task].attempt, Attempt(2));
    lost(&mut fleet, last.agent.clone());
    last.agent = AgentId::new("worker", 3);
    fleet.report_as(last.clone(), begins(3, "ack"));
    let task = &fleet.run().tasks[&offer.task];
    assert_eq!(
        (task.attempt, &task.agent, task.generation),
        (Attempt(3), &Some(last.agent), offer.generation)
    );
}

#[test]
fn a_try_has_nothing_acknowledged_in_the_queue_of_others() {
    for forged in [
        "$JS.ACK.TASKS.planner.1.7.9.1763800000000000000.0",
        "$JS.ACK.TASKS.@worker-00000009.1.7.9.1763800000000000000.0",
        "$JS.ACK.TASKS.workers.1.7",
        "$JS.ACK.TASKS.worker",
        "$JS.ACK.TASKS.worker.1.> ",
        "$JS.ACK.TASKS.worker.1\r\nPUB evt.x 0",
        "$JS.API.STREAM.DELETE.RUNS",
    ] {
        let (mut fleet, offer) = fleet();
        fleet.defer = false;
        let lost = |agent| {
            let reason = "it is gone".to_owned();
            vec![Input::AgentLost { agent, reason, steps: BTreeMap::new(), elsewhere: 0 }]
        };
        fleet.turn(lost(AgentId::new("worker", 1)));
        fleet.effects.clear();
        let key = another(Role::Worker, &offer);
        fleet.report_as(key.clone(), begins(2, forged));
        let task = &fleet.run().tasks[&offer.task];
        assert_eq!((&task.agent, &task.ack), (&Some(key.agent.clone()), &None), "{forged}");
        fleet.turn(lost(key.agent));
        let named = |effect: &Effect| matches!(effect, Effect::HandOn { .. } | Effect::Withdraw { .. });
        assert!(!fleet.effects.iter().any(named), "{forged}: {:?}", fleet.effects);
    }
}

#[test]
fn what_others_say_they_used_is_not_counted_and_frees_nothing() {
    let uses = |calls| {
        let usage = Usage { model_calls: calls, ..Usage::default() };
        AgentEvent::Outcome(Outcome { usage, ..result("apples are poison") }.into())
    };
    let budget = Budget { model_calls: Some(100), ..Budget::default() };
    let (mut fleet, offer) = fleet_with(RunLimits { budget, ..RunLimits::default() });
    // What was begun is decided upon.
    fleet.defer = false;
    fleet.turn(Vec::new());
    let before = fleet.run().spending.clone();
    assert!(before.allotted.iter().any(|kept| kept.task == offer.task));
    let key = another(Role::Worker, &offer);
    fleet.report_as(key.clone(), uses(4_000_000_000));
    let put_down =
        Released { parked: true, usage: Usage { model_calls: 7, ..Usage::default() }, ..Released::default() };
    fleet.report_as(key.clone(), AgentEvent::Released(put_down));
    assert_eq!(fleet.run().spending.used, before.used);
    assert_eq!(fleet.run().spending.allotted, before.allotted);
    assert_eq!(fleet.run().seen[&offer.task].agent, Some(AgentId::new("worker", 1)));
    fleet.end(&offer, result("apples are so"));
    fleet.work(|offer| good(offer, &[leaf("apples", &[])]));
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
    // What is said after the end is not counted either, unless it is said by whoever had it.
    let used = fleet.run().spending.used;
    fleet.report_only_as(key, uses(4_000_000_000));
    assert_eq!(fleet.run().spending.used, used);
    assert!(fleet.run().spending.uncounted.is_empty(), "{:?}", fleet.run().spending.uncounted);
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn what_a_holder_used_counts_though_its_task_was_called_off() {
    let (mut fleet, offer) = fleet();
    fleet.defer = false;
    fleet.turn(vec![super::fleet::cancel("ann", "enough")]);
    let used = fleet.run().spending.used.model_calls;
    fleet.report_only_as(
        AgentKey { agent: AgentId::new("worker", 1), ..another(Role::Worker, &offer) },
        AgentEvent::Outcome(result("apples are so").into()),
    );
    assert_eq!(fleet.run().spending.used.model_calls, used + 1);
}
