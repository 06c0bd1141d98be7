//! Tasks that several members do.

use muster_shared::flow::{
    Budget, DecidedBy, Ending, GroupVerdict, Pattern, Rights, RunLimits, TaskDraft, TaskOffered, TaskStatus,
    Work,
};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::run::{RequestAction, RunState};
use muster_shared::time::Millis;
use proptest::prelude::*;

use super::deadlines::reserve;
use super::fleet::{Fleet, failed, good, leaf, result};
use super::tables::open;
use crate::decide::Effect;

fn index(text: &str) -> TaskIndex {
    text.parse().unwrap()
}

fn shared(pattern: &str) -> TaskDraft {
    TaskDraft { pattern: Some(pattern.to_owned()), ..leaf("apples", &[]) }
}

/// A run whose plan is made of these tasks.
fn planned(tasks: Vec<TaskDraft>, limits: RunLimits) -> Fleet {
    Fleet::planned(limits, tasks)
}

fn begun(pattern: &str) -> Fleet {
    planned(vec![shared(pattern)], RunLimits::default())
}

fn status(fleet: &Fleet, task: &str) -> TaskStatus {
    fleet.run().tasks[&TaskId::Leaf(index(task))].status
}

fn verdict(run: &RunState) -> &GroupVerdict {
    run.groups[&index("1")].verdict.as_ref().unwrap()
}

/// Who of a group's members was told to stop.
fn stopped(fleet: &Fleet) -> Vec<String> {
    let told = fleet.effects.iter().filter_map(|effect| match effect {
        Effect::CancelTask { task, .. } => Some(task.to_string()),
        _ => None,
    });
    told.collect()
}

#[test]
fn each_member_is_a_task_of_its_own_and_the_task_is_in_work() {
    let fleet = begun("committee:3");
    assert_eq!(open(&fleet), ["1~a", "1~b", "1~c"]);
    assert_eq!(status(&fleet, "1"), TaskStatus::Processing);
    let nonces: std::collections::BTreeSet<&str> =
        fleet.open.iter().map(|offer| offer.nonce.as_str()).collect();
    assert_eq!(nonces.len(), 3);
    let told = |offer: &TaskOffered| match &offer.work {
        Work::Execute { task, member, .. } => (task.name.clone(), member.clone().unwrap().temperament),
        _ => panic!(),
    };
    let told: Vec<_> = fleet.open.iter().map(told).collect();
    assert!(told.iter().all(|(name, temper)| name == "apples" && temper.is_some()));
    assert_ne!(told[0].1, told[1].1);
}

#[test]
fn the_first_good_result_of_a_redundant_group_counts_and_the_others_stop_at_once() {
    let mut fleet = begun("redundant:3");
    for member in ["1~a", "1~b", "1~c"] {
        fleet.begin_task(member);
    }
    let slow = fleet.find("1~c");
    fleet.end_task("1~a", failed(Ending::GaveUp, "no apples"));
    assert_eq!(
        (status(&fleet, "1"), open(&fleet).len()),
        (TaskStatus::Processing, 2),
        "it is not tried again"
    );
    fleet.end_task("1~b", result("red"));
    assert_eq!(status(&fleet, "1"), TaskStatus::Completed);
    assert_eq!(status(&fleet, "1~c"), TaskStatus::Aborted);
    assert_eq!(stopped(&fleet), ["1~c"]);
    let found = verdict(fleet.run());
    assert_eq!((found.counts.clone(), found.by), (index("1~b"), DecidedBy::First));
    // What the slow one says after that is counted as used and changes nothing.
    let used = fleet.run().spending.used.model_calls;
    fleet.end(&slow, result("green"));
    assert_eq!(verdict(fleet.run()).counts, index("1~b"));
    fleet.finish(&[]);
    assert!(fleet.run().spending.used.model_calls > used, "it was paid for");
}

#[test]
fn a_redundant_group_of_which_all_fail_is_tried_again_as_one_task_is() {
    let mut fleet = begun("redundant:2");
    for round in 0..3 {
        assert_eq!(open(&fleet), ["1~a", "1~b"], "round {round}");
        fleet.do_task("1~a", failed(Ending::ModelFailed, "no model"));
        fleet.do_task("1~b", failed(Ending::ModelFailed, "no model"));
    }
    assert_eq!(status(&fleet, "1"), TaskStatus::Failed);
    let reasons = &fleet.run().planned(&index("1")).unwrap().reasons;
    assert!(reasons.last().unwrap().contains("1~b: no model"), "{reasons:?}");
}

#[test]
fn a_committee_that_splits_two_to_one_has_a_verdict_with_dissent() {
    let mut fleet = begun("committee:3");
    fleet.do_task("1~b", result("Apples are green."));
    fleet.do_task("1~c", result("apples are red"));
    assert_eq!(status(&fleet, "1"), TaskStatus::Processing);
    fleet.do_task("1~a", result("Apples are red."));
    let found = verdict(fleet.run()).clone();
    assert_eq!((found.counts.clone(), found.by), (index("1~a"), DecidedBy::Majority));
    assert_eq!(found.dissent[0].member, index("1~b"));
    let writer = |fleet: &Fleet| {
        fleet.offered().iter().rev().find_map(|offer| match &offer.work {
            Work::Write { results, .. } => Some(results[0].result.conclusion.clone()),
            _ => None,
        })
    };
    fleet.work(|offer| good(offer, &[]));
    let told = writer(&fleet).unwrap();
    assert!(told.starts_with("Apples are red. (2 of 3 members gave the same answer"), "{told}");
    let report = fleet.run().report.as_ref().unwrap();
    assert!(report.body.contains("1~b: Apples are green."), "{}", report.body);
}

#[test]
fn members_discuss_what_they_found_until_they_agree_or_the_rounds_are_over() {
    let mut fleet = begun("committee:2:2");
    fleet.do_task("1~a", result("red"));
    fleet.do_task("1~b", result("green"));
    assert_eq!(open(&fleet), ["1~a", "1~b"], "they are offered again");
    let Work::Execute { member: Some(member), .. } = &fleet.find("1~b").work else { panic!() };
    assert_eq!(member.round, 1);
    assert_eq!(
        member.views.iter().map(|view| view.conclusion.as_str()).collect::<Vec<_>>(),
        ["red", "green"]
    );
    fleet.do_task("1~b", result("red"));
    fleet.do_task("1~a", result("red"));
    assert_eq!(verdict(fleet.run()).by, DecidedBy::Unanimity, "no second round is needed");
    assert_eq!(fleet.run().groups[&index("1")].round, 1);
}

#[test]
fn a_committee_without_quorum_fails() {
    let mut fleet = begun("committee:3");
    fleet.do_task("1~a", result("red"));
    for member in ["1~b", "1~c"] {
        fleet.do_task(member, failed(Ending::Escalate, "somebody has to decide"));
    }
    assert_eq!(status(&fleet, "1"), TaskStatus::Failed);
    let reasons = &fleet.run().planned(&index("1")).unwrap().reasons;
    assert!(
        reasons.last().unwrap().contains("1 of its 3 members gave a result, 2 are needed"),
        "{reasons:?}"
    );
}

#[test]
fn what_is_asked_of_the_task_reaches_its_members() {
    for what in ["skip", "redo", "edit"] {
        let mut fleet = begun("committee:2");
        for member in ["1~a", "1~b"] {
            fleet.begin_task(member);
        }
        let task = index("1");
        let action = match what {
            "skip" => RequestAction::Skip { task },
            "redo" => RequestAction::Redo { task },
            _ => RequestAction::Edit { task: Some(task), goal: "count pears".into() },
        };
        fleet.ask(1, action);
        assert_eq!(stopped(&fleet), ["1~a", "1~b"], "{what}");
        if what == "skip" {
            assert_eq!(status(&fleet, "1~a"), TaskStatus::Aborted);
        } else {
            let again = fleet.find("1~a");
            assert_eq!(again.generation.0, 2, "{what}: what is about the first offer is closed");
            fleet.finish(&[]);
        }
    }
}

#[test]
fn one_member_is_skipped_and_done_again_by_itself() {
    let mut fleet = begun("committee:3");
    let (one, two) = (index("1~a"), index("1~b"));
    fleet.ask(1, RequestAction::Skip { task: one });
    assert_eq!((status(&fleet, "1~a"), status(&fleet, "1")), (TaskStatus::Skipped, TaskStatus::Processing));
    fleet.ask(2, RequestAction::Redo { task: two.clone() });
    assert_eq!(fleet.find("1~b").generation.0, 2);
    fleet.ask(3, RequestAction::Edit { task: Some(two), goal: "pears".into() });
    assert!(fleet.refusals().last().unwrap().contains("1~b has the goal of 1"));
    fleet.do_task("1~b", result("red"));
    fleet.do_task("1~c", result("red"));
    assert_eq!(status(&fleet, "1"), TaskStatus::Completed);
}

#[test]
fn members_are_put_down_by_a_pause_and_go_on_after_it() {
    let mut fleet = begun("committee:2");
    let (held, queued) = (fleet.find("1~a"), fleet.find("1~b"));
    fleet.start(&held);
    fleet.ask(1, RequestAction::Pause);
    assert_eq!(status(&fleet, &queued.task.to_string()), TaskStatus::Created);
    fleet.park(&held);
    fleet.open.clear();
    fleet.ask(2, RequestAction::Resume { deadline_ms: None });
    assert_eq!(open(&fleet), ["1~a", "1~b"]);
    assert_eq!(fleet.find("1~a").continues, Some(held.generation));
    fleet.finish(&[]);
}

#[test]
fn limits_say_how_tasks_are_given_out_that_do_not_say_it_themselves() {
    let limits = RunLimits { pattern: Pattern::Redundant { copies: 2 }, ..RunLimits::default() };
    let own = TaskDraft { pattern: Some("hierarchical".into()), ..leaf("plums", &[]) };
    let fleet = planned(vec![leaf("apples", &[]), own], limits);
    let mut offered = open(&fleet);
    offered.sort();
    assert_eq!(offered, ["1~a", "1~b", "2"]);
}

#[test]
fn members_share_what_the_task_and_the_run_may_use() {
    let calls = |most| Budget { model_calls: Some(most), ..Budget::UNLIMITED };
    let rights = Box::new(Rights { budget: calls(9), ..Rights::default() });
    let limits = RunLimits { budget: calls(100), rights, ..RunLimits::default() };
    let fleet = planned(vec![shared("committee:3")], limits);
    assert_eq!(fleet.open.iter().map(|offer| offer.budget.model_calls).collect::<Vec<_>>(), [Some(3); 3]);
}

#[test]
fn members_that_cannot_be_paid_for_are_left_out_and_the_run_comes_to_its_end() {
    let calls = |most| Budget { model_calls: Some(most), ..Budget::UNLIMITED };
    for most in 2..12 {
        let mut fleet = planned(
            vec![shared("committee:3"), shared("redundant:2")],
            RunLimits { budget: calls(most), ..RunLimits::default() },
        );
        fleet.work(|offer| good(offer, &[]));
        assert!(fleet.status().is_ended(), "{most}: {:?}", fleet.run().tasks);
        assert!(fleet.run().spending.used.model_calls <= most, "{most}");
    }
}

#[test]
fn when_the_time_is_up_what_members_gave_counts() {
    let mut fleet = planned(vec![shared("committee:3"), leaf("pears", &[])], RunLimits::default());
    fleet.do_task("1~a", result("red"));
    fleet.do_task("2", result("ripe"));
    fleet.at(Millis(reserve(&fleet).0 + 2_000));
    assert_eq!(status(&fleet, "1"), TaskStatus::Completed);
    fleet.finish(&[]);
}

proptest! {
    /// Whoever ends first, the verdict of a committee is the same; and whatever ends how, the run comes to an end with
    /// all rules kept.
    #[test]
    fn the_order_of_ends_does_not_change_a_verdict(
        order in prop::collection::vec(0usize..5, 40),
        said in prop::collection::vec(0u8..4, 5),
    ) {
        let run = |order: Vec<usize>| {
            let mut fleet = begun("committee:5");
            let mut order = order.into_iter().cycle();
            fleet.work_in_order(|_| order.next().unwrap_or(0), |offer: &TaskOffered| match &offer.task {
                TaskId::Leaf(member) if member.is_member() => {
                    let place = usize::from(member.letter().map_or(0, |letter| letter as u8 - b'a'));
                    match said[place] {
                        0 => failed(Ending::Escalate, "it cannot be said"),
                        colour => result(&format!("colour {colour}")),
                    }
                }
                _ => good(offer, &[]),
            });
            let verdict = fleet.run().groups[&index("1")].verdict.clone();
            (fleet.status().is_ended(), verdict)
        };
        let first = run(vec![0]);
        prop_assert!(first.0);
        prop_assert_eq!(first, run(order));
    }
}
