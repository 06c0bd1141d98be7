//! What an agent wrote that nobody can read: its try has failed, and nothing else has.

use muster_shared::flow::{TaskOffered, TaskStatus};
use muster_shared::ids::{AgentId, Generation};
use muster_shared::run::event::TaskFailed;
use muster_shared::run::{
    AgentEvent, AgentKey, EventKind, Input, RecordEvent, RunEvent, RunStatus, Unreadable, gaps,
};

use super::fleet::{Fleet, ID, good, leaf, result};
use super::holders::fleet;
use crate::decide::Effect;
use crate::replay::replay;

const WHY: &str = "field body.content.usage.steps: invalid type: floating point `2.5`, expected u64";

fn garbled(kind: EventKind) -> AgentEvent {
    AgentEvent::Unreadable(Unreadable { kind, why: WHY.to_owned() })
}

/// Has the agent write nonsense, and forgets the offer as an agent does that is done with it.
fn write(fleet: &mut Fleet, offer: &TaskOffered, kind: EventKind) {
    fleet.open.retain(|open| open.task != offer.task || open.generation != offer.generation);
    fleet.report(offer, garbled(kind));
}

fn buried(fleet: &Fleet) -> Vec<&str> {
    let letters = fleet.effects.iter().filter_map(|effect| match effect {
        Effect::BuryEntry { reason, .. } => Some(reason.as_str()),
        _ => None,
    });
    letters.collect()
}

#[test]
fn an_entry_that_cannot_be_read_fails_its_generation_and_the_run_goes_on() {
    for kind in [EventKind::Started, EventKind::Released, EventKind::Outcome] {
        let (mut fleet, offer) = fleet();
        write(&mut fleet, &offer, kind);
        let letters = buried(&fleet);
        assert_eq!(letters.len(), 1, "{kind}: one dead letter: {letters:?}");
        assert!(letters[0].contains("usage.steps") && letters[0].contains("task 1"), "{letters:?}");
        let told = fleet.effects.iter().any(|effect| matches!(effect, Effect::CancelTask { .. }));
        assert!(told, "{kind}: who may still be at it is told to stop");
        let task = &fleet.run().tasks[&offer.task];
        assert_eq!(task.generation, Generation(2), "{kind}: it was offered anew");
        assert!(task.reasons.iter().any(|reason| reason.contains(WHY)), "{kind}: {:?}", task.reasons);
        assert!(task.avoid.iter().any(|avoided| avoided.agent == AgentId::new("worker", 1)), "{kind}");
        fleet.work(|offer| good(offer, &[leaf("apples", &[])]));
        assert_eq!(fleet.status(), RunStatus::Completed, "{kind}: {}", fleet.reason());
        replay(ID, &fleet.record).unwrap();
        assert_eq!(gaps(&fleet.record), [], "{kind}");
    }
}

#[test]
fn what_comes_after_it_in_the_same_generation_changes_nothing() {
    let (mut fleet, offer) = fleet();
    write(&mut fleet, &offer, EventKind::Outcome);
    fleet.end(&offer, result("apples are so"));
    assert_eq!(fleet.run().tasks[&offer.task].status, TaskStatus::Queued, "the new generation goes on");
}

#[test]
fn one_about_what_is_over_is_kept_and_changes_nothing() {
    let (mut fleet, offer) = fleet();
    fleet.end(&offer, result("apples are so"));
    let before = fleet.run().tasks[&offer.task].clone();
    write(&mut fleet, &offer, EventKind::Outcome);
    assert_eq!(buried(&fleet).len(), 1);
    assert_eq!(fleet.run().tasks[&offer.task], before);
}

#[test]
fn a_task_whose_agents_write_nothing_else_ends() {
    let (mut fleet, mut offer) = fleet();
    let mut tries = 0;
    loop {
        write(&mut fleet, &offer, EventKind::Outcome);
        tries += 1;
        assert!(tries < 20, "it is tried without end");
        let next = fleet.open.iter().find(|open| open.task == offer.task).cloned();
        let Some(next) = next else { break };
        offer = next;
        fleet.start(&offer);
    }
    let failed = |event: &&&RunEvent| matches!(event, RunEvent::TaskFailed(TaskFailed { task, .. }) if *task == offer.task);
    assert_eq!(fleet.events().iter().filter(failed).count(), 1);
    fleet.work(|offer| good(offer, &[leaf("apples", &[])]));
    assert!(fleet.status().is_ended());
}

/// A build that can read the entry comes to the same decisions: what was made of it stands with them.
#[test]
fn a_record_replays_the_same_where_another_build_reads_what_this_one_could_not() {
    let (mut fleet, offer) = fleet();
    write(&mut fleet, &offer, EventKind::Outcome);
    fleet.work(|offer| good(offer, &[leaf("apples", &[])]));
    let mut record = fleet.record.clone();
    let entry = record
        .iter_mut()
        .find(|entry| matches!(entry.event, RecordEvent::Agent(_, AgentEvent::Unreadable(_))))
        .unwrap();
    let RecordEvent::Agent(key, _) = entry.event.clone() else { panic!("{entry:?}") };
    entry.event = RecordEvent::Agent(key, AgentEvent::Outcome(result("apples are so").into()));
    replay(ID, &record).unwrap();
}

/// Steps are read by whoever goes on with the task, and no decision waits for them.
#[test]
fn a_step_that_cannot_be_read_leaves_the_task_to_its_agent() {
    let (mut fleet, offer) = fleet();
    let role = "worker".parse().unwrap();
    let (agent, task) = (AgentId::new("worker", 1), offer.task.clone());
    let key = AgentKey { role, agent, task, generation: offer.generation };
    fleet.report_only(&offer, garbled(EventKind::Step));
    let undecided: Vec<Input> = fleet.run().undecided().collect();
    assert!(!undecided.iter().any(|input| matches!(input, Input::Unreadable { .. })), "{undecided:?}");
    fleet.end_as(key, result("apples are so"));
    assert_eq!(fleet.run().tasks[&offer.task].status, TaskStatus::Completed);
}
