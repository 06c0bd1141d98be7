//! Who has a say in a task: those that it was offered to, and of them whoever has it. The others change nothing.

use muster_shared::flow::{Budget, Outcome, RunLimits, TaskOffered, TaskStatus, Usage};
use muster_shared::ids::{AgentId, Attempt, Role};
use muster_shared::run::{AgentEvent, AgentKey, EventKind, Input, Released, Unreadable, gaps};

use super::fleet::{Fleet, ID, agent, begins, leaf, lost, result};
use crate::decide::{Effect, holder_against, holders};
use crate::replay::replay;

/// A run with one leaf in an agent's hands.
pub(super) fn fleet() -> (Fleet, TaskOffered) {
    fleet_with(RunLimits::default())
}

fn fleet_with(limits: RunLimits) -> (Fleet, TaskOffered) {
    let mut fleet = Fleet::planned(limits, vec![leaf("apples", &[])]);
    let offer = fleet.begin_task("1");
    fleet.effects.clear();
    (fleet, offer)
}

/// The same, where the start is decided upon.
fn decided() -> (Fleet, TaskOffered) {
    let (mut fleet, offer) = fleet();
    fleet.defer = false;
    fleet.turn(Vec::new());
    (fleet, offer)
}

fn another(role: Role, offer: &TaskOffered) -> AgentKey {
    let agent = AgentId::new(&role.to_string(), 9);
    AgentKey { role, agent, task: offer.task.clone(), generation: offer.generation }
}

/// The task is still with whoever began it.
fn is_in_hand(fleet: &Fleet, offer: &TaskOffered) {
    let task = &fleet.run().tasks[&offer.task];
    let agent = Some(agent(1));
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
            fleet.finish(&[leaf("apples", &[])]);
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

#[test]
fn tries_are_counted_by_whoever_decides_whatever_their_authors_say() {
    let (mut fleet, offer) = fleet();
    fleet.defer = false;
    fleet.turn(vec![lost(agent(1))]);
    let mut last = another(Role::Worker, &offer);
    fleet.report_as(last.clone(), begins(u32::MAX, "ack"));
    assert_eq!(fleet.run().tasks[&offer.task].attempt, Attempt(2));
    fleet.turn(vec![lost(last.agent.clone())]);
    last.agent = agent(3);
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
        fleet.turn(vec![lost(agent(1))]);
        fleet.effects.clear();
        let key = another(Role::Worker, &offer);
        fleet.report_as(key.clone(), begins(2, forged));
        let task = &fleet.run().tasks[&offer.task];
        assert_eq!((&task.agent, &task.ack), (&Some(key.agent.clone()), &None), "{forged}");
        fleet.turn(vec![lost(key.agent)]);
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
    assert_eq!(fleet.run().seen[&offer.task].agent, Some(agent(1)));
    fleet.end(&offer, result("apples are so"));
    fleet.finish(&[leaf("apples", &[])]);
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
        AgentKey { agent: agent(1), ..another(Role::Worker, &offer) },
        AgentEvent::Outcome(result("apples are so").into()),
    );
    assert_eq!(fleet.run().spending.used.model_calls, used + 1);
}

#[test]
fn a_later_try_of_another_takes_nothing_from_whoever_has_a_task() {
    for attempt in [0, 1, 2, u32::MAX] {
        let (mut fleet, offer) = decided();
        let key = another(Role::Worker, &offer);
        fleet.report_as(key.clone(), begins(attempt, "ack"));
        is_in_hand(&fleet, &offer);
        assert_eq!(buried(&fleet), 1);
        fleet.report_as(key.clone(), AgentEvent::Outcome(result("apples are poison").into()));
        is_in_hand(&fleet, &offer);
        assert_eq!((buried(&fleet), &fleet.run().seen[&offer.task].agent), (2, &Some(agent(1))));
        // It is nobody whose death counts, and the loss of whoever has it lets others begin.
        fleet.turn(vec![lost(key.agent.clone())]);
        is_in_hand(&fleet, &offer);
        fleet.turn(vec![lost(agent(1))]);
        fleet.report_as(key.clone(), begins(attempt, "ack"));
        assert_eq!(fleet.run().tasks[&offer.task].agent, Some(key.agent));
        fleet.end(&offer, result("apples are so"));
        assert_eq!(fleet.run().tasks[&offer.task].status, TaskStatus::Completed);
        replay(ID, &fleet.record).unwrap();
    }
}

#[test]
fn whoever_begins_before_anybody_has_decided_keeps_it_from_those_after() {
    let (mut fleet, offer) = fleet();
    fleet.defer = false;
    let planning = fleet.run().tasks[&offer.task].agent.clone();
    assert!(planning.is_some() || fleet.deferred.len() == 1);
    let other = another(Role::Worker, &offer);
    let forged = fleet.report_only_as(other.clone(), begins(2, "ack"));
    let ended = fleet.report_only_as(other, AgentEvent::Outcome(result("apples are poison").into()));
    fleet.turn(vec![forged, ended]);
    is_in_hand(&fleet, &offer);
    assert_eq!(buried(&fleet), 2);
}

#[test]
fn what_is_pending_against_a_holder_is_nobody_who_has_the_task() {
    let (mut fleet, offer) = decided();
    let other = another(Role::Worker, &offer);
    let input = fleet.report_only_as(other.clone(), begins(2, "ack"));
    let Input::Agent { seq } = input else { panic!("it is an agent's") };
    assert_eq!(holder_against(fleet.run(), seq), Some(&agent(1)));
    assert!(!holders(fleet.run()).contains(&other.agent));
    fleet.turn(vec![input]);
    assert_eq!(holder_against(fleet.run(), seq), None);
}

#[test]
fn what_was_written_while_somebody_had_the_task_counts_for_nothing_though_it_is_lost_since() {
    let (mut fleet, offer) = decided();
    let other = another(Role::Worker, &offer);
    let begun = fleet.report_only_as(other.clone(), begins(2, "ack"));
    let ended = fleet.report_only_as(other.clone(), AgentEvent::Outcome(result("apples are poison").into()));
    fleet.turn(vec![lost(agent(1))]);
    assert!(!holders(fleet.run()).contains(&other.agent), "it began nothing");
    fleet.turn(vec![begun, ended]);
    assert_eq!(buried(&fleet), 2);
    assert_eq!(fleet.run().tasks[&offer.task].agent, None);
    // Whoever begins it now has it.
    fleet.report_as(other.clone(), begins(2, "ack"));
    assert_eq!(fleet.run().tasks[&offer.task].agent, Some(other.agent));
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn whoever_lost_a_task_after_its_last_word_is_heard() {
    let (mut fleet, offer) = decided();
    let key = AgentKey { agent: agent(1), ..another(Role::Worker, &offer) };
    let ended = fleet.report_only_as(key.clone(), AgentEvent::Outcome(result("apples are so").into()));
    fleet.turn(vec![lost(key.agent)]);
    fleet.turn(vec![ended]);
    assert_eq!(fleet.run().tasks[&offer.task].status, TaskStatus::Completed);
    assert_eq!(buried(&fleet), 0);
}
