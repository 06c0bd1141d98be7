//! Roles without an agent: what a run waits for, and for how long.

use muster_shared::flow::{
    Goal, Outcome, PlanDraft, Planning, RunLimits, Specialty, TaskDraft, TaskOffered, TaskStatus, Work,
};
use muster_shared::ids::{Queue, Role, TaskId};
use muster_shared::run::{Input, RequestAction, RunStatus, StopReason};
use muster_shared::wire::Profile;

use super::fleet::{Fleet, advising, good, leaf, queue};
use super::tables::status;
use crate::decide::{AgentsByRole, WaitsFor, next_review, waits_for};
use crate::replay::replay;

/// A run with this plan, while no agent has the role. Agents do well what is offered to them, with a wish for a change of
/// the plan.
fn without(role: &Role, tasks: &[TaskDraft]) -> Fleet {
    let mut fleet = Fleet { defer: false, ..Fleet::new() };
    fleet.slots.remove(&queue(role.clone()));
    let plan = PlanDraft { tasks: tasks.to_vec(), ..PlanDraft::default() };
    let plan = (*role != Role::Planner).then(|| Box::new(plan));
    let limits = RunLimits { planning: Planning::Always, max_replans: 0, ..RunLimits::default() };
    fleet.begin_as_it_is(Goal { plan, ..Goal::new("Is the house safe?") }, limits);
    fleet.work(wishing);
    fleet
}

fn wishing(offer: &TaskOffered) -> Outcome {
    match &offer.work {
        Work::Execute { .. } => advising("safe", "look at the doors"),
        _ => good(offer, &[]),
    }
}

fn tasks(role: &str, pattern: Option<&str>, count: usize) -> Vec<TaskDraft> {
    let (role, pattern) = (Some(role.to_owned()), pattern.map(str::to_owned));
    let one =
        |n| TaskDraft { role: role.clone(), pattern: pattern.clone(), ..leaf(&format!("door {n}"), &[]) };
    (0..count).map(one).chain([leaf("windows", &[]), leaf("walls", &["windows"])]).collect()
}

#[test]
fn a_missing_role_ends_every_kind_of_task_after_the_limit_and_is_named() {
    let done = RunStatus::Completed;
    let stopped = RunStatus::Aborted(StopReason::DeadlinePassed);
    for (role, tasks, ends) in [
        ("locksmith", tasks("locksmith", None, 1), done),
        ("locksmith", tasks("locksmith", None, 3), done),
        ("locksmith", tasks("locksmith", Some("committee:3"), 1), done),
        ("locksmith", tasks("locksmith", Some("redundant:2"), 2), done),
        ("researcher", tasks("researcher", Some("committee:3"), 1), done),
        ("reflector", tasks("worker", None, 1), done),
        ("refiner", tasks("worker", None, 1), done),
        ("planner", Vec::new(), stopped),
        ("writer", tasks("worker", None, 1), stopped),
    ] {
        let role: Role = role.parse().unwrap();
        let mut fleet = without(&role, &tasks);
        if role != Role::Planner {
            let last = tasks.len().to_string();
            assert_eq!(status(&fleet, &last), TaskStatus::Completed, "{role}: others go on");
        }
        let ready = next_review(fleet.run()).unwrap();
        assert_eq!(fleet.run().missing_roles.keys().collect::<Vec<_>>(), [&role]);
        fleet.pass(29_000);
        assert!(!fleet.status().is_ended(), "{role}");
        assert!(ready.0 <= fleet.now.0 + 1_000, "{role}: it is looked at in time");
        // What follows from the end of a task comes with the next decisions.
        for _ in 0..3 {
            fleet.pass(1_000);
            fleet.work(wishing);
        }
        assert_eq!(fleet.status(), ends, "{role}: {}", fleet.reason());
        let report = fleet.run().report.as_ref().map_or("", |report| report.body.as_str());
        let told = format!("it waited 30 s for a {role}, and none is in this fleet");
        assert!(fleet.reason().contains(&told) || report.contains(&told), "{} {report}", fleet.reason());
        assert_eq!(fleet.offered().iter().filter(|offer| offer.queue == queue(role.clone())).count(), 0);
        replay(super::fleet::ID, &fleet.record).unwrap();
    }
}

#[test]
fn a_role_that_comes_in_time_is_waited_for() {
    let role: Role = "locksmith".parse().unwrap();
    let mut fleet = without(&role, &tasks("locksmith", None, 2));
    fleet.pass(29_000);
    fleet.slots.insert(queue(role), 1);
    fleet.turn(vec![Input::Capacity]);
    assert!(fleet.run().missing_roles.is_empty());
    fleet.finish(&[]);
}

#[test]
fn a_role_whose_last_agent_leaves_fails_what_lies_in_its_queue() {
    let limits = RunLimits { wait_for_role_ms: 3_000, max_replans: 0, ..RunLimits::default() };
    let mut fleet = Fleet::planned(limits, vec![leaf("doors", &[]), leaf("windows", &[])]);
    assert_eq!(fleet.open.len(), 2);
    fleet.slots.remove(&queue(Role::Worker));
    fleet.turn(vec![Input::Capacity]);
    fleet.pass(3_000);
    assert_eq!((fleet.status(), status(&fleet, "2")), (RunStatus::Failed, TaskStatus::Failed));
    assert!(fleet.reason().contains("none is in this fleet (for 1, 2)"), "{}", fleet.reason());
}

#[test]
fn planners_are_told_of_roles_that_are_online_or_start_soon() {
    let of = |without: &[Role], specialists: &[Role]| {
        let mut fleet = Fleet::new();
        fleet.slots.retain(|queue, _| !without.iter().any(|role| *queue == Queue::Role(role.clone())));
        fleet.specialists = specialists.iter().cloned().map(Specialty::of_role).collect();
        fleet.submit("Is the house safe?", RunLimits::default());
        let Work::Plan { roles, specialists, .. } = fleet.find("plan").work else { panic!("no plan") };
        assert_eq!(specialists, [], "nothing is known of them but their names");
        roles.join(" ")
    };
    let both = [Role::Researcher, Role::Worker];
    assert_eq!(of(&[], &[]), "researcher worker");
    assert_eq!(of(&both[..1], &[]), "worker");
    assert_eq!(of(&both[..1], &both[..1]), "researcher worker", "it starts soon");
    assert_eq!(of(&both, &[]), "researcher worker", "none is better than the other");
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
