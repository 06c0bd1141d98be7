//! What is told of a run is what became of its tasks, whatever its writer says.

use std::collections::BTreeMap;

use muster_shared::blueprint::{fill, parse, save};
use muster_shared::flow::{
    About, Budget, Ending, Goal, Outcome, RefineOperation, RunLimits, TaskDraft, TaskOffered, Usage, Work,
};
use muster_shared::ids::TaskIndex;
use muster_shared::run::{
    RequestAction, RunStatus, TaskCount, TaskEnd, count, end_of, is_completed_in_part, shortfalls,
};
use serde_json::json;

use super::fleet::{Fleet, failed, good, leaf, refinement, reflection, result};

fn tasks(number: usize) -> Vec<TaskDraft> {
    (1..=number).map(|n| leaf(&format!("part {n}"), &[])).collect()
}

fn finish(fleet: &mut Fleet, number: usize, mut leaves: impl FnMut(&str) -> Option<Outcome>) {
    let tasks = tasks(number);
    fleet.work(|offer: &TaskOffered| match &offer.work {
        Work::Execute { .. } => leaves(&offer.task.to_string()).unwrap_or_else(|| good(offer, &tasks)),
        _ => good(offer, &tasks),
    });
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
}

fn counted(fleet: &Fleet) -> TaskCount {
    count(fleet.run()).unwrap()
}

#[test]
fn failed_tasks_are_counted_and_stand_in_the_report() {
    let mut fleet = Fleet::submitted(RunLimits { max_width: 8, ..RunLimits::default() });
    finish(&mut fleet, 7, |task| match task {
        "1" => Some(failed(Ending::Escalate, "the key is in the log: a security risk")),
        "2" | "3" | "4" | "5" => Some(failed(Ending::GaveUp, "the source is gone")),
        _ => None,
    });
    assert_eq!(counted(&fleet), TaskCount { done: 2, failed: 5, ..TaskCount::default() });
    assert_eq!(counted(&fleet).in_words(), "2 of 7 tasks done, 5 failed");
    assert!(is_completed_in_part(fleet.run()));
    let body = fleet.body();
    for part in [
        "## What was not done",
        "2 of 7 tasks done, 5 failed. This report is not the whole answer.",
        "- 1 part 1 (failed): the key is in the log: a security risk",
        "- 5 part 5 (failed): the source is gone",
    ] {
        assert!(body.contains(part), "{part} in:\n{body}");
    }
    let unanswered = &fleet.run().report.as_ref().unwrap().unanswered;
    assert!(unanswered.iter().any(|part| part.starts_with("5 part 5 (failed)")), "{unanswered:?}");
}

#[test]
fn what_is_done_whole_is_said_to_be_so() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    finish(&mut fleet, 3, |_| None);
    assert_eq!(counted(&fleet), TaskCount { done: 3, ..TaskCount::default() });
    assert!(!is_completed_in_part(fleet.run()) && shortfalls(fleet.run()).is_empty());
    assert!(!fleet.body().contains("What was not done"), "{}", fleet.body());
}

#[test]
fn a_part_is_not_the_whole() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    finish(&mut fleet, 2, |task| {
        let part =
            Outcome { ending: Ending::DonePartial, reason: "only half was read".into(), ..result("half") };
        (task == "2").then_some(part)
    });
    assert_eq!(counted(&fleet), TaskCount { done: 1, in_part: 1, ..TaskCount::default() });
    assert!(is_completed_in_part(fleet.run()));
    assert!(fleet.body().contains("- 2 part 2 (done in part): only half was read"), "{}", fleet.body());
}

#[test]
fn what_the_plan_was_changed_for_is_counted_with_the_new_tasks() {
    for fails in [false, true] {
        let mut fleet = Fleet::submitted(RunLimits::default());
        let drafts = tasks(1);
        fleet.work(|offer| match (&offer.work, offer.task.to_string().as_str()) {
            (Work::Reflect { .. }, "reflect-1") => reflection(Some("half is missing")),
            (Work::Refine { .. }, _) => refinement(vec![RefineOperation::Add {
                after: TaskIndex::top(1),
                tasks: vec![leaf("the other half", &[])],
            }]),
            (Work::Execute { .. }, "1") => {
                Outcome { ending: Ending::DonePartial, reason: "half of it".into(), ..result("half") }
            }
            (Work::Execute { .. }, _) if fails => failed(Ending::Escalate, "there is none"),
            _ => good(offer, &drafts),
        });
        assert_eq!(fleet.status(), RunStatus::Completed);
        assert_eq!((counted(&fleet).replaced, counted(&fleet).in_part), (1, 0), "{:?}", counted(&fleet));
        assert_eq!(is_completed_in_part(fleet.run()), fails);
    }
}

#[test]
fn what_the_budget_leaves_out_is_missing() {
    let budget = Budget { model_calls: Some(6), ..Budget::UNLIMITED };
    let mut fleet = Fleet::submitted(RunLimits { budget, ..RunLimits::default() });
    let drafts = tasks(6);
    fleet.work(|offer| {
        let usage = Usage { model_calls: 1, ..Usage::default() };
        Outcome { usage, ..good(offer, &drafts) }
    });
    assert_eq!(fleet.status(), RunStatus::Completed);
    let counted = counted(&fleet);
    assert!(counted.left_out > 0 && counted.done > 0, "{counted:?}");
    assert!(is_completed_in_part(fleet.run()));
    assert!(fleet.body().contains("(left out): "), "{}", fleet.body());
}

#[test]
fn the_deadline_of_a_task_leaves_a_part() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    finish(&mut fleet, 2, |task| {
        (task == "1").then(|| failed(Ending::DeadlinePassed, "its time was up before it ended"))
    });
    assert_eq!(end_of(fleet.run(), &TaskIndex::top(1)), TaskEnd::Failed);
    assert!(is_completed_in_part(fleet.run()));
    assert!(fleet.body().contains("- 1 part 1 (failed): its time was up"), "{}", fleet.body());
}

#[test]
fn what_a_person_leaves_out_is_told_and_not_missing() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    let drafts = tasks(2);
    fleet.do_well("plan", &drafts);
    fleet.ask(1, RequestAction::Skip { task: TaskIndex::top(2) });
    finish(&mut fleet, 2, |_| None);
    assert_eq!(counted(&fleet), TaskCount { done: 1, skipped: 1, ..TaskCount::default() });
    assert!(!is_completed_in_part(fleet.run()));
    let body = fleet.body();
    assert!(
        body.contains("1 of 2 tasks done, 1 skipped.") && body.contains("- 2 part 2 (skipped)"),
        "{body}"
    );
    assert!(!body.contains("not the whole answer"), "{body}");
}

const BY_STEPS: &str = "name='b'\nversion='1'\ngoal='g'\n[params.topics]\ntype='list'\n\
                        [[steps]]\nid='fetch'\ngoal='fetch {{item}}'\nfor_each='params.topics'\n\
                        [[steps.fallback]]\ngoal='look it up'\n\
                        [[steps]]\nid='send'\ngoal='send {{fetch.result}}'\napproval='May it be sent?'";

fn by_blueprint(topics: usize, limits: RunLimits) -> Fleet {
    let topics: Vec<String> = (1..=topics).map(|n| format!("topic {n}")).collect();
    let filled =
        fill(&parse(BY_STEPS).unwrap(), &BTreeMap::from([("topics".to_owned(), json!(topics))])).unwrap();
    Fleet::with_goal(Goal { blueprint: Some(Box::new(filled.clone())), ..Goal::new(filled.goal()) }, limits)
}

fn approve(fleet: &mut Fleet, n: u128) {
    fleet.ask(n, super::review::YES);
}

#[test]
fn a_failure_block_that_gave_the_result_takes_the_place_of_what_failed() {
    let mut fleet = by_blueprint(2, RunLimits::default());
    fleet.work(|offer| match offer.task.to_string().as_str() {
        "1-1" | "1-2" => failed(Ending::Escalate, "the site is down"),
        _ => good(offer, &[]),
    });
    approve(&mut fleet, 1);
    fleet.finish(&[]);
    assert_eq!(counted(&fleet), TaskCount { done: 2, replaced: 2, ..TaskCount::default() });
    assert!(!is_completed_in_part(fleet.run()));
}

#[test]
fn every_item_of_a_list_is_done_or_the_run_is_refused() {
    let mut fleet = by_blueprint(8, RunLimits::default());
    fleet.work(|offer| good(offer, &[]));
    approve(&mut fleet, 1);
    fleet.finish(&[]);
    assert_eq!(counted(&fleet), TaskCount { done: 9, ..TaskCount::default() });

    let fleet = by_blueprint(50, RunLimits::default());
    assert_eq!(fleet.status(), RunStatus::Failed);
    assert!(fleet.reason().contains("its list has 50 items"), "{}", fleet.reason());
    assert!(fleet.offered().is_empty());
}

#[test]
fn a_gate_is_approved_as_anything_is_and_left_open_it_is_told() {
    for (text, sent) in [("approve", true), ("1", true), ("reject", false), ("2", false)] {
        let mut fleet = by_blueprint(1, RunLimits::default());
        fleet.work(|offer| good(offer, &[]));
        let (question, asked) = fleet.run().open_questions().next().unwrap();
        assert_eq!(asked.about, About::Step("send".to_owned()));
        fleet.ask(1, RequestAction::Answer { question, text: "Yes.".to_owned() });
        assert!(fleet.run().open_questions().next().is_some(), "that is feedback");
        fleet.ask(2, RequestAction::Answer { question, text: text.to_owned() });
        fleet.finish(&[]);
        assert_eq!(fleet.run().planned(&TaskIndex::top(2)).is_some(), sent, "{text}");
        assert!(!is_completed_in_part(fleet.run()), "a person decided");
    }
    let mut fleet = by_blueprint(1, RunLimits::default());
    fleet.work(|offer| good(offer, &[]));
    fleet.pass(31 * 60 * 1000);
    fleet.finish(&[]);
    assert!(is_completed_in_part(fleet.run()));
    assert!(fleet.body().contains("step send (left out): it needs an approval"), "{}", fleet.body());
}

#[test]
fn a_run_by_a_blueprint_is_saved_with_all_of_it() {
    let mut fleet = by_blueprint(2, RunLimits::default());
    fleet.work(|offer| good(offer, &[]));
    approve(&mut fleet, 1);
    fleet.work(|offer| good(offer, &[]));
    let saved = save(fleet.run(), "mine").unwrap();
    assert_eq!(saved.blueprint.steps, parse(BY_STEPS).unwrap().steps);
    assert_eq!(saved.blueprint.params["topics"].default, Some(json!(["topic 1", "topic 2"])));
    assert_eq!((saved.blueprint.name.as_str(), saved.lost), ("mine", Vec::new()));
}

#[test]
fn what_a_saved_plan_cannot_keep_is_said() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    finish(&mut fleet, 3, |task| (task == "3").then(|| failed(Ending::Escalate, "no")));
    let saved = save(fleet.run(), "mine").unwrap();
    assert_eq!(saved.blueprint.steps.len(), 2);
    assert_eq!(saved.lost, ["3 part 3: it gave no result"]);
}

#[test]
fn a_person_who_watches_the_run_is_asked_what_to_do() {
    for attended in [true, false] {
        let mut fleet = Fleet::new();
        fleet.begin(Goal { attended, ..Goal::new("Which limits are there?") }, RunLimits::default());
        let drafts = tasks(2);
        fleet.do_well("plan", &drafts);
        fleet.do_task("1", failed(Ending::Escalate, "a security risk"));
        assert_eq!(fleet.run().open_questions().count(), usize::from(attended));
    }
}
