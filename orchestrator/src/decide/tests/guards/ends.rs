//! Guards are asked about what there is to report of a run that is given up.

use muster_shared::flow::{Ending, Goal, TaskDraft};

use super::*;
use crate::decide::tests::fleet::{failed, plan};

/// A run whose plans all fail, after one task gave something.
fn given_up() -> Fleet {
    let critical = TaskDraft { critical: true, ..leaf("two", &["one"]) };
    let limits = RunLimits { max_replans: 0, ..limits(&[Hook::BeforeReport]) };
    let limits = RunLimits { planning: Planning::Always, ..limits };
    let limits = RunLimits { max_replans: 1, max_generations: 1, ..limits };
    let mut fleet = Fleet::with_goal(Goal::new("Which limits are there?"), limits);
    fleet.work(|offer| match offer.task.to_string().as_str() {
        "plan" if fleet_plans(offer) => plan(vec![leaf("one", &[]), critical.clone()]),
        "plan" => plan(vec![TaskDraft { critical: true, ..leaf("three", &[]) }]),
        "1" => good(offer, &[]),
        _ => failed(Ending::Escalate, "it cannot be done"),
    });
    fleet
}

/// Whether the first plan is wanted.
fn fleet_plans(offer: &TaskOffered) -> bool {
    matches!(&offer.work, Work::Plan { replan: None, .. })
}

#[test]
fn the_report_of_a_run_that_is_given_up_is_asked_about() {
    let report = |fleet: &Fleet| {
        assert_eq!(fleet.status(), RunStatus::Failed, "{}", fleet.reason());
        assert!(fleet.reason().contains("the goal was not reached: 2 plans failed"), "{}", fleet.reason());
        let given_up = fleet.run().planning.given_up.as_ref().unwrap();
        assert_eq!(given_up.plans.len(), 2);
        replay(ID, &fleet.record).unwrap();
        fleet.body().to_owned()
    };
    let begun = || {
        let fleet = given_up();
        assert!(!fleet.status().is_ended() && fleet.open.is_empty(), "its guard is asked first");
        assert!(fleet.run().report.is_none());
        fleet
    };
    let mut fleet = begun();
    fleet.turn(vec![Input::Timer]);
    assert!(!fleet.status().is_ended(), "nothing else becomes of it");
    say(&mut fleet, GuardReply::allow());
    let body = report(&fleet);
    assert!(body.contains("one is so") && body.contains("## What was tried"), "{body}");

    let mut fleet = begun();
    let (_, Product::Report(mut made), _) = asked(&fleet).unwrap() else { panic!() };
    made.body = "Other words.".to_owned();
    say(&mut fleet, GuardReply::change("better".into(), json!({ "report": made })));
    assert_eq!(report(&fleet), "Other words.");

    let mut refused = begun();
    say(&mut refused, refuse("no"));
    let mut gone = begun();
    nobody(&mut gone);
    let mut forgotten = begun();
    wake(&mut forgotten);
    for fleet in [refused, gone, forgotten] {
        let body = report(&fleet);
        assert!(!body.contains("one is so") && body.contains("withheld"), "{body}");
        assert!(body.contains("## What to ask instead"), "{body}");
    }

    let mut fleet = begun();
    fleet.turn(vec![super::super::fleet::cancel("ann", "enough")]);
    assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::Cancelled));
}
