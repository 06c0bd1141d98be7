//! Trials: who takes part, what comes of a canary and of a shadow, and what does not.

use std::collections::BTreeSet;

use muster_shared::flow::{
    Arm, Budget, Ending, Goal, Measure, Outcome, RunLimits, TaskOffered, TrialCounts, TrialMode, TrialRule,
    Variant, WithdrawRule, Work,
};
use muster_shared::ids::{Queue, Role, TaskId};
use muster_shared::run::{Input, RunEvent, RunStatus};
use muster_shared::wire::Command;
use proptest::prelude::*;

use super::fleet::{Fleet, ID, failed, leaf, plan, queue, result};
use crate::decide::Effect;
use crate::replay::replay;

fn rule(mode: TrialMode, variant: Variant) -> TrialRule {
    TrialRule {
        name: "trial".to_owned(),
        role: Role::Worker,
        mode,
        variant,
        share: 100,
        task_budget: Budget::UNLIMITED,
        budget: Budget { model_calls: Some(100), ..Budget::UNLIMITED },
        withdraw: None,
        before: TrialCounts::default(),
    }
}

fn by_model() -> Variant {
    Variant { role: None, model: Some("m/tried".to_owned()) }
}

fn worker_b() -> Role {
    "worker_b".parse().unwrap()
}

fn by_role() -> Variant {
    Variant { role: Some(worker_b()), model: None }
}

/// A run of so many tasks under these trials, planned.
fn planned(tasks: usize, trials: Vec<TrialRule>, prepare: impl FnOnce(&mut Fleet)) -> Fleet {
    let mut fleet = Fleet::new();
    prepare(&mut fleet);
    let limits = RunLimits { trials, max_width: 50, max_tasks: 50, ..RunLimits::default() };
    fleet.begin(Goal::new("Which limits are there?"), limits);
    fleet.do_task("plan", plan((0..tasks).map(|at| leaf(&format!("limit {at}"), &[])).collect()));
    fleet
}

/// Agents of a role have so many slots.
fn give(fleet: &mut Fleet, role: Role, slots: u32) {
    fleet.slots.insert(queue(role), slots);
}

fn arm(offer: &TaskOffered) -> Option<Arm> {
    offer.trial.as_ref().map(|mark| mark.arm)
}

/// What the models of a test answer: the tried one fails where it is told to.
fn answer(offer: &TaskOffered, tried_fails: bool) -> Outcome {
    match &offer.work {
        Work::Execute { .. } if tried_fails && offer.model.as_deref() == Some("m/tried") => {
            failed(Ending::GaveUp, "it is no good")
        }
        _ => super::fleet::good(offer, &[]),
    }
}

fn replays(fleet: &Fleet) {
    if let Err(divergence) = replay(ID, &fleet.record) {
        panic!("{divergence:?}");
    }
}

#[test]
fn a_share_of_the_tasks_goes_to_the_canary_and_counts() {
    let half = TrialRule { share: 50, ..rule(TrialMode::Canary, by_model()) };
    let mut fleet = planned(40, vec![half], |_| {});
    fleet.work(|offer| answer(offer, false));
    assert_eq!(fleet.status(), RunStatus::Completed);
    let offers = fleet.offered();
    let leaves: Vec<&&TaskOffered> = offers.iter().filter(|offer| offer.task.as_leaf().is_some()).collect();
    let canaries = leaves.iter().filter(|offer| arm(offer) == Some(Arm::Canary)).count();
    assert!((8..=32).contains(&canaries) && leaves.len() == 40, "{canaries} of {}", leaves.len());
    for offer in leaves {
        let expected = if arm(offer) == Some(Arm::Canary) { Some("m/tried") } else { None };
        assert_eq!(offer.model.as_deref(), expected);
        assert!(offer.limits.trials.is_empty(), "agents are not told");
    }
    let counts = fleet.run().trials.counts["trial"];
    assert_eq!((counts.variant.tasks, counts.variant.done), (canaries as u64, canaries as u64));
    assert_eq!(counts.control.tasks, 40 - canaries as u64);
    let kept = fleet.effects.iter().filter(|effect| matches!(effect, Effect::CountTrials { .. })).count();
    assert_eq!(kept, 1);
    replays(&fleet);
}

#[test]
fn a_canary_that_does_worse_is_withdrawn_and_its_tasks_are_done_as_usual() {
    let withdraw = Some(WithdrawRule { measure: Measure::Success, after: 3, by: 30 });
    let half = TrialRule { share: 50, withdraw, ..rule(TrialMode::Canary, by_model()) };
    let mut fleet = planned(40, vec![half], |fleet| give(fleet, Role::Worker, 1));
    fleet.work(|offer| answer(offer, true));
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
    let events = fleet.events();
    let withdrawn = events.iter().filter(|event| matches!(event, RunEvent::TrialWithdrawn(_))).count();
    assert_eq!(withdrawn, 1);
    let counts = fleet.run().trials.counts["trial"];
    assert_eq!(counts.variant.done, 0);
    assert!(counts.variant.tasks < 8, "nothing more went to it: {counts:?}");
    assert!(fleet.effects.iter().any(|effect| matches!(effect, Effect::WithdrawTrial { .. })));
    let again: Vec<_> =
        fleet.offered().into_iter().filter(|offer| offer.generation.0 == 2).cloned().collect();
    assert!(!again.is_empty() && again.iter().all(|offer| offer.model.is_none() && offer.trial.is_none()));
    replays(&fleet);
}

#[test]
fn what_was_withdrawn_elsewhere_ends_here() {
    let mut fleet = planned(6, vec![rule(TrialMode::Canary, by_model())], |fleet| {
        give(fleet, Role::Worker, 1);
    });
    let told = Input::TrialWithdrawn { trial: "trial".to_owned(), reason: "ann saw enough".to_owned() };
    fleet.turn(vec![told.clone()]);
    let entries = fleet.record.len();
    fleet.turn(vec![told, Input::TrialWithdrawn { trial: "other".to_owned(), reason: String::new() }]);
    assert_eq!(fleet.record.len(), entries, "once is enough, and of another nothing follows");
    let begun: BTreeSet<TaskId> = fleet.open.iter().map(|offer| offer.task.clone()).collect();
    fleet.work(|offer| answer(offer, false));
    let tried = fleet.offered().into_iter().filter(|offer| arm(offer).is_some());
    assert!(tried.into_iter().all(|offer| begun.contains(&offer.task)));
    assert_eq!(fleet.status(), RunStatus::Completed);
    replays(&fleet);
}

#[test]
fn a_canary_without_an_agent_gives_its_share_back() {
    // Nobody is of that role.
    let mut fleet = planned(5, vec![rule(TrialMode::Canary, by_role())], |_| {});
    assert!(fleet.open.iter().all(|offer| offer.queue == queue(Role::Worker) && offer.trial.is_none()));
    fleet.work(|offer| answer(offer, false));
    assert_eq!(fleet.status(), RunStatus::Completed);
    replays(&fleet);
    // Somebody is, and takes nothing.
    let mut fleet = planned(5, vec![rule(TrialMode::Canary, by_role())], |fleet| {
        give(fleet, worker_b(), 2);
    });
    let to_tried = |offer: &&TaskOffered| offer.queue == queue(worker_b());
    let given = fleet.open.iter().filter(to_tried).count();
    assert!(given > 0 && fleet.open.iter().filter(to_tried).all(|offer| arm(offer) == Some(Arm::Canary)));
    fleet.pass(60_000);
    assert_eq!(fleet.open.iter().filter(to_tried).count(), 0, "{:?}", fleet.open);
    fleet.work(|offer| answer(offer, false));
    assert_eq!(fleet.status(), RunStatus::Completed);
    // It goes away with its tasks in its queue.
    let mut fleet = planned(5, vec![rule(TrialMode::Canary, by_role())], |fleet| {
        give(fleet, worker_b(), 2);
    });
    fleet.slots.remove(&queue(worker_b()));
    fleet.turn(vec![Input::Capacity]);
    assert!(!fleet.open.iter().any(|offer| to_tried(&offer)), "{:?}", fleet.open);
    assert!(fleet.run().tasks.values().all(|task| task.failures == 0));
    fleet.work(|offer| answer(offer, false));
    assert_eq!(fleet.status(), RunStatus::Completed);
    replays(&fleet);
}

#[test]
fn planners_are_not_told_of_who_stands_in_for_others() {
    let mut fleet = Fleet::new();
    give(&mut fleet, worker_b(), 2);
    let trials = vec![rule(TrialMode::Canary, by_role())];
    fleet.begin(Goal::new("Which limits are there?"), RunLimits { trials, ..RunLimits::default() });
    let Work::Plan { roles, .. } = fleet.find("plan").work else { panic!() };
    assert_eq!(roles, ["researcher", "worker"]);
}

#[test]
fn whoever_names_a_model_gets_it() {
    let mut fleet = Fleet::new();
    let limits = RunLimits { trials: vec![rule(TrialMode::Canary, by_model())], ..RunLimits::default() };
    fleet.begin(Goal { model: Some("m/mine".to_owned()), ..Goal::new("Which limits are there?") }, limits);
    fleet.do_task("plan", plan(vec![leaf("a", &[]), leaf("b", &[])]));
    fleet.work(|offer| answer(offer, false));
    assert!(
        fleet.offered().iter().all(|offer| offer.model.as_deref() == Some("m/mine") && offer.trial.is_none())
    );
}

/// The goals of all shadows that were asked for.
fn shadows(fleet: &Fleet) -> Vec<Goal> {
    let goal = |effect: &Effect| match effect {
        Effect::AskShadow { command, .. } => match &**command {
            Command::Attend { goal, .. } => Some((**goal).clone()),
            _ => None,
        },
        _ => None,
    };
    fleet.effects.iter().filter_map(goal).collect()
}

#[test]
fn a_shadow_changes_nothing_of_the_run() {
    let run = |trials: Vec<TrialRule>| {
        let mut fleet = planned(4, trials, |_| {});
        fleet.work(|offer| answer(offer, false));
        fleet
    };
    let (with, without) = (run(vec![rule(TrialMode::Shadow, by_model())]), run(Vec::new()));
    assert_eq!(shadows(&with).len(), 4);
    assert_eq!(with.status(), RunStatus::Completed);
    let (one, other) = (with.run(), without.run());
    assert_eq!(
        (&one.report, &one.plan, one.spending.used),
        (&other.report, &other.plan, other.spending.used)
    );
    assert_eq!((&one.tallies, &one.conflicts), (&other.tallies, &other.conflicts));
    assert!(with.offered().iter().all(|offer| offer.model.is_none() && offer.queue != queue(worker_b())));
    replays(&with);
}

#[test]
fn a_shadow_is_told_the_same_may_change_nothing_and_teaches_nothing() {
    let tight = TrialRule {
        task_budget: Budget { model_calls: Some(3), ..Budget::UNLIMITED },
        variant: Variant { role: Some(worker_b()), model: Some("m/tried".to_owned()) },
        ..rule(TrialMode::Shadow, by_role())
    };
    let real = planned(2, vec![tight], |_| {});
    let goal = shadows(&real).into_iter().next().unwrap();
    let of = goal.shadow.clone().unwrap();
    let mut shadow = Fleet::new();
    give(&mut shadow, worker_b(), 2);
    let limits = goal.limits.clone().unwrap();
    shadow.begin_as_it_is(goal, limits);
    let offer = shadow.find("1");
    assert_eq!(
        (&offer.work, &offer.goal, offer.queue.clone()),
        (&of.offer.work, &of.offer.goal, Queue::Role(worker_b()))
    );
    assert_eq!((offer.model.as_deref(), arm(&offer)), (Some("m/tried"), Some(Arm::Shadow)));
    assert!(offer.budget.model_calls.is_some_and(|calls| calls <= 3), "{:?}", offer.budget);
    let rights = offer.rights.effective();
    assert!(!rights.effects && !rights.people && !rights.write_files && !rights.runs && !rights.hand_over);
    // It lies: that is of its own record only.
    shadow.start(&offer);
    shadow.end(&offer, result("the limit is a lie"));
    assert_eq!(shadow.status(), RunStatus::Completed, "{}", shadow.reason());
    assert!(
        matches!(&shadow.effects[..], [Effect::SettleShadow { trial, used }] if trial == "trial" && used.model_calls == 1),
        "{:?}",
        shadow.effects
    );
    let state = shadow.run().planned(offer.task.as_leaf().unwrap()).unwrap().clone();
    assert!(state.trial.unwrap().sample.unwrap().done);
    replays(&shadow);
    // Its first try is the only one.
    let goal = shadows(&real).into_iter().nth(1).unwrap();
    let mut fails = Fleet::new();
    give(&mut fails, worker_b(), 2);
    let limits = goal.limits.clone().unwrap();
    fails.begin_as_it_is(goal, limits);
    fails.do_task("1", failed(Ending::ModelFailed, "nothing"));
    assert_eq!(fails.status(), RunStatus::Failed);
    assert_eq!(fails.offered().len(), 1);
    replays(&fails);
}

proptest! {
    /// Whatever is tried and whoever fails, the run ends, and decides the same again.
    #[test]
    fn runs_end_whatever_is_tried(
        share in 1u8..=100, shadow in any::<bool>(), role in any::<bool>(), there in 0u32..3,
        fails in any::<bool>(), after in 0u32..5,
    ) {
        let mode = if shadow { TrialMode::Shadow } else { TrialMode::Canary };
        let withdraw = (after > 0).then_some(WithdrawRule { measure: Measure::Success, after, by: 10 });
        let variant = if role { by_role() } else { by_model() };
        let trial = TrialRule { share, withdraw, ..rule(mode, variant) };
        let mut fleet = planned(8, vec![trial], |fleet| {
            if there > 0 {
                give(fleet, worker_b(), there);
            }
        });
        fleet.work(|offer| {
            let is_tried = arm(offer) == Some(Arm::Canary) && fails;
            if is_tried { failed(Ending::ModelFailed, "it is no good") } else { answer(offer, fails) }
        });
        prop_assert!(fleet.status().is_ended());
        prop_assert_eq!(fleet.status(), RunStatus::Completed);
        prop_assert!(replay(ID, &fleet.record).is_ok());
    }
}
