//! Roles that nobody has: what a run waits for, and for how long.

use muster_shared::flow::{Goal, PlanDraft, RunLimits, TaskDraft, TaskStatus};
use muster_shared::ids::{Queue, Role, TaskId};
use muster_shared::run::{RequestAction, RunStatus};
use muster_shared::wire::Profile;

use super::fleet::{Fleet, good, leaf, queue};
use super::tables::status;
use crate::decide::{AgentsByRole, WaitsFor, next_review, waits_for};
use crate::replay::replay;

fn locksmith() -> Queue {
    queue("locksmith".parse().unwrap())
}

/// A run by a plan of a person, with a task for a locksmith who is away.
fn with_a_locksmith() -> Fleet {
    let doors = TaskDraft { role: Some("locksmith".into()), ..leaf("doors", &[]) };
    let plan = PlanDraft { tasks: vec![doors, leaf("windows", &[])], ..PlanDraft::default() };
    let mut fleet = Fleet::new();
    // Away for a moment: its queue is among those that are known.
    fleet.slots.insert(locksmith(), 0);
    fleet.begin_as_it_is(
        Goal { plan: Some(Box::new(plan)), ..Goal::new("Is the house safe?") },
        RunLimits::default(),
    );
    fleet
}

#[test]
fn a_specialist_that_is_away_for_some_seconds_fails_no_plan() {
    let mut fleet = with_a_locksmith();
    assert_eq!(status(&fleet, "1"), TaskStatus::Queued, "{}", fleet.reason());
    fleet.pass(29_000);
    assert_eq!(status(&fleet, "1"), TaskStatus::Queued);
    fleet.slots.insert(locksmith(), 1);
    fleet.finish(&[]);
}

#[test]
fn who_stays_away_fails_the_task_with_the_reason() {
    let mut fleet = with_a_locksmith();
    let looked_at = next_review(fleet.run()).unwrap();
    assert!(looked_at.0 <= fleet.now.0 + 30_000, "it is looked at in time");
    fleet.slots.remove(&locksmith());
    fleet.pass(30_000);
    let task: TaskId = "1".parse().unwrap();
    let state = &fleet.run().tasks[&task];
    assert_eq!(state.status, TaskStatus::Failed);
    let reason = state.reasons.last().unwrap();
    assert!(reason.contains("no locksmith is in this fleet") && reason.contains("30 s"), "{reason}");
    assert_eq!(
        fleet.offered().iter().filter(|offer| offer.task == task).count(),
        1,
        "it was waited for already"
    );
    replay(super::fleet::ID, &fleet.record).unwrap();
}

#[test]
fn roles_that_come_with_muster_are_waited_for_as_long_as_the_run_lasts() {
    let mut fleet = Fleet::new();
    fleet.slots.insert(queue(Role::Planner), 0);
    fleet.submit("Which limits are there?", RunLimits::default());
    fleet.slots.remove(&queue(Role::Planner));
    fleet.pass(120_000);
    assert_eq!((fleet.status(), status(&fleet, "plan")), (RunStatus::Processing, TaskStatus::Queued));
}

fn pool(roles: &[&str]) -> AgentsByRole {
    let profile = |role: &&str| -> Profile {
        serde_json::from_value(serde_json::json!({ "agent": format!("{role}-1"), "role": role })).unwrap()
    };
    let profiles: Vec<Profile> = roles.iter().map(profile).collect();
    profiles.iter().collect()
}

#[test]
fn what_a_run_waits_for_follows_from_its_state_and_from_who_is_there() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    let plan: TaskId = "plan".parse().unwrap();
    let planner = || WaitsFor::Role { role: Role::Planner, tasks: vec![plan.clone()] };
    assert_eq!(waits_for(fleet.run(), &pool(&["orchestrator"])), [planner()]);
    assert_eq!(waits_for(fleet.run(), &pool(&[])), [WaitsFor::Orchestrator, planner()]);
    let words = planner().to_string();
    assert!(words.contains("`muster agent planner`") && words.contains("plan"), "{words}");
    let free = WaitsFor::Place { role: Role::Planner, tasks: vec![plan.clone()] };
    assert_eq!(waits_for(fleet.run(), &pool(&["orchestrator", "planner"])), std::slice::from_ref(&free));
    assert!(planner().is_lacking() && WaitsFor::Orchestrator.is_lacking() && !free.is_lacking());

    fleet.begin_task("plan");
    assert_eq!(waits_for(fleet.run(), &pool(&["orchestrator"])), [], "somebody works on it");
    fleet.ask(1, RequestAction::Pause);
    assert!(matches!(&waits_for(fleet.run(), &pool(&["orchestrator"]))[..], [WaitsFor::Resume { .. }]));
}

#[test]
fn a_task_that_is_due_and_has_no_place_in_the_queue_is_named_too() {
    let mut fleet = Fleet::new();
    // Nobody is there, and another run has the one place.
    fleet.slots.remove(&queue(Role::Planner));
    fleet.submit("Which limits are there?", RunLimits::default());
    assert!(fleet.open.is_empty());
    let waits = waits_for(fleet.run(), &pool(&["orchestrator", "worker"]));
    assert!(matches!(&waits[..], [WaitsFor::Role { role: Role::Planner, .. }]), "{waits:?}");
}

#[test]
fn nothing_is_waited_for_in_the_end() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    fleet.work(|offer| good(offer, &super::tables::tasks()));
    assert_eq!(waits_for(fleet.run(), &pool(&[])), []);
}
