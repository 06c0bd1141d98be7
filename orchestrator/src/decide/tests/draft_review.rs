//! A reviewer reads the draft of the report before it is delivered; whatever becomes of that, the run has its report.

use muster_shared::flow::{
    Budget, DraftRemark, DraftReview, DraftReviewPolicy, DraftVerdict, Ending, Outcome, Product, Report,
    RunLimits, TaskOffered, TaskStatus, Work,
};
use muster_shared::ids::{AgentId, Generation, Role, TaskId};
use muster_shared::run::{DraftReviewEnd, Phase, RequestAction, RunEvent, RunStatus};
use muster_shared::time::Millis;

use super::fleet::{Fleet, begins, cancel, done, draft_review, failed, good, leaf, lost, queue};
use crate::decide::{Effect, next_deadline};

fn limits(rounds: u8) -> RunLimits {
    RunLimits { draft_review: DraftReviewPolicy::On, draft_rounds: rounds, ..RunLimits::default() }
}

pub(super) fn body(text: &str) -> Outcome {
    done(Product::Report(Report { title: "Report".into(), body: text.into(), ..Report::default() }))
}

/// A run whose writer has given its first draft.
fn drafted(limits: RunLimits) -> Fleet {
    let mut fleet = Fleet::submitted(limits);
    let tasks = [leaf("one", &[])];
    while !fleet.open.iter().any(|offer| offer.task == TaskId::Write) {
        let offer = fleet.open[0].clone();
        fleet.start(&offer);
        fleet.end(&offer, good(&offer, &tasks));
    }
    end(&mut fleet, "write", body("Draft 1."));
    fleet
}

pub(super) fn end(fleet: &mut Fleet, task: &str, outcome: Outcome) -> TaskOffered {
    let offer = fleet.find(task);
    fleet.now = Millis(fleet.now.0 + 10);
    fleet.start(&offer);
    fleet.end(&offer, outcome);
    offer
}

/// Ends each offer of the task in this way until the run has ended.
fn always(fleet: &mut Fleet, task: &str, outcome: &Outcome) {
    while fleet.status() == RunStatus::Processing {
        end(fleet, task, outcome.clone());
    }
}

fn delivered(fleet: &Fleet) -> &str {
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
    fleet.body()
}

#[test]
fn without_the_setting_nobody_reviews() {
    let fleet = drafted(RunLimits::default());
    assert_eq!(delivered(&fleet), "Draft 1.");
    assert!(fleet.run().drafts.is_empty());
}

#[test]
fn an_accepted_draft_is_delivered_as_it_is() {
    let mut fleet = drafted(limits(1));
    let offer = end(&mut fleet, "draft-review-1", draft_review(&[]));
    assert_eq!(offer.queue, queue(Role::Reflector));
    let Work::DraftReview { draft, results, earlier, .. } = offer.work else { panic!() };
    assert_eq!((draft.body.as_str(), results.len(), earlier), ("Draft 1.", 1, None));
    assert_eq!(delivered(&fleet), "Draft 1.");
}

#[test]
fn remarks_reach_the_writer_and_the_next_reviewer() {
    let mut fleet = drafted(limits(1));
    end(&mut fleet, "draft-review-1", draft_review(&["say more"]));
    let again = end(&mut fleet, "write", body("Draft 2."));
    assert_eq!(again.generation, Generation(2));
    let Work::Write { revision: Some(revision), .. } = again.work else { panic!() };
    assert_eq!(
        (revision.draft.as_str(), revision.review.lines()),
        ("Draft 1.", vec!["Report: say more".into()])
    );
    let offer = end(&mut fleet, "draft-review-2", draft_review(&[]));
    let Work::DraftReview { draft, earlier: Some(earlier), .. } = offer.work else { panic!() };
    assert_eq!((draft.body.as_str(), earlier.lines().len()), ("Draft 2.", 1));
    assert_eq!(delivered(&fleet), "Draft 2.");
    assert_eq!(fleet.run().drafts.rounds(), 1);
}

#[test]
fn remarks_that_stay_open_are_said_in_the_report() {
    for (rounds, drafts) in [(0, 1), (1, 2), (2, 3)] {
        let mut fleet = drafted(limits(rounds));
        for number in 1..drafts {
            end(&mut fleet, &format!("draft-review-{number}"), draft_review(&["say more"]));
            end(&mut fleet, "write", body(&format!("Draft {}.", number + 1)));
        }
        let review = DraftReview {
            verdict: DraftVerdict::Revise,
            remarks: vec![DraftRemark { place: String::new(), text: "still\n# dull".into() }],
            unanswered: vec!["who".into()],
            unsupported: vec!["It rains.".into()],
        };
        end(&mut fleet, &format!("draft-review-{drafts}"), done(Product::DraftReview(review)));
        let body = delivered(&fleet);
        assert!(body.starts_with(&format!("Draft {drafts}.")), "{body}");
        for wanted in ["stay open", "- still # dull", "- not answered: who", "results: It rains."] {
            assert!(body.contains(wanted), "{rounds}: {wanted}: {body}");
        }
        assert!(fleet.run().report.as_ref().unwrap().unanswered.contains(&"who".to_owned()));
    }
}

#[test]
fn a_wish_without_a_reason_is_no_wish() {
    let mut fleet = drafted(limits(1));
    let review = DraftReview { verdict: DraftVerdict::Revise, ..DraftReview::default() };
    end(&mut fleet, "draft-review-1", done(Product::DraftReview(review)));
    assert_eq!(delivered(&fleet), "Draft 1.");
}

/// Whatever goes wrong with the review: the draft is delivered, and says so.
#[test]
fn a_review_that_fails_costs_nothing_but_itself() {
    type Wrong = fn(&mut Fleet);
    let tried_out: Wrong = |fleet| always(fleet, "draft-review-1", &failed(Ending::ModelFailed, "no answer"));
    let given_up: Wrong = |fleet| always(fleet, "draft-review-1", &failed(Ending::GaveUp, "too hard"));
    let wrong_product: Wrong = |fleet| always(fleet, "draft-review-1", &body("Mine is better."));
    let nobody_there: Wrong = |fleet| fleet.pass(60 * 60 * 1000);
    let too_slow: Wrong = |fleet| {
        fleet.begin_task("draft-review-1");
        fleet.pass(30 * 60 * 1000);
    };
    let deaths: Wrong = |fleet| {
        let offer = fleet.find("draft-review-1");
        for number in 1..=3 {
            fleet.report(&offer, begins(number, "ack"));
            fleet.turn(vec![lost(AgentId::new("reflector", 1))]);
        }
    };
    for (name, wrong) in [
        ("tried out", tried_out),
        ("given up", given_up),
        ("wrong product", wrong_product),
        ("nobody there", nobody_there),
        ("too slow", too_slow),
        ("deaths", deaths),
    ] {
        let mut fleet = drafted(limits(1));
        wrong(&mut fleet);
        let body = delivered(&fleet);
        assert!(
            body.starts_with("Draft 1.") && body.contains("Nobody reviewed this report"),
            "{name}: {body}"
        );
        assert!(matches!(fleet.run().drafts.reviews[0].end, Some(DraftReviewEnd::Missed(_))), "{name}");
    }
}

#[test]
fn a_reviewer_leaves_the_writer_half_of_the_time() {
    let mut fleet = drafted(RunLimits { run_deadline_ms: 60_000, ..limits(1) });
    let offer = fleet.find("draft-review-1");
    let left = offer.deadline.since(fleet.now).as_millis();
    assert!((25_000..=30_000).contains(&left), "{left}");
    assert!(next_deadline(fleet.run()).unwrap() <= Millis(fleet.now.0 + 33_000));
    fleet.start(&offer);
    fleet.pass(33_000);
    assert!(delivered(&fleet).contains("its time was up"), "{}", delivered(&fleet));
}

/// Whatever goes wrong when the report is written again: the draft that was reviewed is delivered with its remarks.
#[test]
fn a_draft_is_delivered_when_it_cannot_be_written_again() {
    type Wrong = fn(&mut Fleet);
    let fails: Wrong = |fleet| always(fleet, "write", &failed(Ending::ModelFailed, "no answer"));
    let no_time: Wrong = |fleet| fleet.pass(2 * 60 * 60 * 1000);
    let no_money: Wrong = |fleet| {
        end(fleet, "write", failed(Ending::BudgetExhausted, "all is spent"));
    };
    for (name, wrong) in [("fails", fails), ("no time", no_time), ("no money", no_money)] {
        let mut fleet = drafted(limits(1));
        end(&mut fleet, "draft-review-1", draft_review(&["say more"]));
        wrong(&mut fleet);
        let body = delivered(&fleet);
        assert!(
            body.starts_with("Draft 1.")
                && body.contains("and was not")
                && body.contains("- Report: say more"),
            "{name}: {body}"
        );
    }
}

#[test]
fn what_cannot_be_paid_for_is_not_reviewed() {
    let budget = Budget { model_calls: Some(5), ..Budget::UNLIMITED };
    // Plan, leaf, reflection and report use a call each; the last one is kept for a writer.
    let fleet = drafted(RunLimits { budget, ..limits(1) });
    assert!(delivered(&fleet).starts_with("Draft 1."), "{}", delivered(&fleet));
    assert!(delivered(&fleet).contains("budget"), "{}", delivered(&fleet));
}

#[test]
fn a_pause_takes_nothing_from_the_reviewers_time() {
    let mut fleet = drafted(RunLimits { run_deadline_ms: 100_000_000, ..limits(1) });
    let before = fleet.run().drafts.reviews[0].until;
    fleet.ask(1, RequestAction::Pause);
    fleet.open.clear();
    fleet.pass(40_000_000);
    assert_eq!(fleet.run().phase, Phase::Writing, "{}", fleet.reason());
    fleet.ask(2, RequestAction::Resume { deadline_ms: None });
    assert_eq!(fleet.run().drafts.reviews[0].until, Millis(before.0 + 40_000_000));
    end(&mut fleet, "draft-review-1", draft_review(&[]));
    assert_eq!(delivered(&fleet), "Draft 1.");
}

#[test]
fn a_draft_is_not_given_up_for_what_nothing_is_left_to_do_again_with() {
    let actions = [
        RequestAction::Redo { task: "1".parse().unwrap() },
        RequestAction::Edit { task: Some("1".parse().unwrap()), goal: "Look closer.".into() },
    ];
    // Plan, leaf, reflection and report use a call each, the reviewer has one, and one is kept for a writer.
    for (calls, is_done) in [(6, false), (60, true)] {
        for action in actions.clone() {
            let budget = Budget { model_calls: Some(calls), ..Budget::UNLIMITED };
            let mut fleet = drafted(RunLimits { budget, ..limits(1) });
            fleet.ask(1, action);
            assert_eq!(fleet.run().drafts.kept.is_none(), is_done, "{calls}");
            assert_eq!(fleet.run().phase, if is_done { Phase::Executing } else { Phase::Writing });
            if !is_done {
                assert!(!fleet.refusals().is_empty(), "{:?}", fleet.events());
                end(&mut fleet, "draft-review-1", draft_review(&[]));
                assert_eq!(delivered(&fleet), "Draft 1.");
            }
        }
    }
}

#[test]
fn what_is_done_again_ends_the_review_and_its_draft() {
    for in_hand in [false, true] {
        let mut fleet = drafted(limits(1));
        let offer = fleet.find("draft-review-1");
        if in_hand {
            fleet.start(&offer);
        }
        fleet.ask(1, RequestAction::Redo { task: "1".parse().unwrap() });
        let run = fleet.run();
        assert_eq!((run.phase, &run.drafts.kept), (Phase::Executing, &None));
        assert_eq!(run.tasks[&TaskId::DraftReview(1)].status, TaskStatus::Aborted);
        let told = |effect: &Effect| matches!(effect, Effect::CancelTask { task, .. } if *task == offer.task);
        assert!(fleet.effects.iter().any(told), "whoever reviews it is told");
        fleet.open.retain(|open| open.task != offer.task);
        let tasks = [leaf("one", &[])];
        fleet.work(|offer| match &offer.work {
            Work::Write { revision, .. } => {
                assert_eq!(*revision, None, "what was said was of another draft");
                body("New.")
            }
            _ => good(offer, &tasks),
        });
        assert_eq!(delivered(&fleet), "New.");
        assert_eq!((fleet.run().drafts.number(), fleet.run().drafts.current().len()), (2, 1));
    }
}

#[test]
fn who_cancels_gets_no_report() {
    let mut fleet = drafted(limits(1));
    fleet.turn(vec![cancel("bob", "")]);
    assert!(matches!(fleet.status(), RunStatus::Aborted(_)));
    assert_eq!(fleet.run().report, None);
}

#[test]
fn each_review_stands_in_the_record_once() {
    let mut fleet = drafted(limits(3));
    for number in 1..=3 {
        end(&mut fleet, &format!("draft-review-{number}"), draft_review(&["more"]));
        end(&mut fleet, "write", body("Again."));
    }
    end(&mut fleet, "draft-review-4", draft_review(&["more"]));
    assert!(delivered(&fleet).contains("3 of 3 times"), "{}", delivered(&fleet));
    let events = fleet.events();
    let begun = events.iter().filter(|event| matches!(event, RunEvent::DraftReviewBegun(_))).count();
    let said = events.iter().filter(|event| matches!(event, RunEvent::DraftReviewed(_))).count();
    assert_eq!((begun, said), (4, 4));
}
