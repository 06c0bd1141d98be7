//! What is told of a run is what became of its tasks, whatever its writer says.

use std::collections::BTreeMap;

use muster_shared::blueprint::{fill, parse, save};
use muster_shared::flow::{
    About, Budget, Ending, Finding, Goal, Outcome, Product, RefineOperation, RunLimits, TaskDraft,
    TaskOffered, TaskResult, Usage, Work,
};
use muster_shared::ids::TaskIndex;
use muster_shared::run::{RequestAction, RunStatus, TaskCount, count, is_completed_in_part, shortfalls};
use serde_json::json;

use super::fleet::{Fleet, done, failed, good, leaf, plan, refinement, reflection, result};
use super::replanning::GOAL;

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
fn failures_before_a_new_plan_and_tasks_that_it_leaves_out_are_reported() {
    let other =
        (leaf("other pears", &["1"]), TaskCount { done: 2, failed: 1, left_out: 1, ..TaskCount::default() });
    let same = (leaf("Pears ", &[]), TaskCount { done: 2, replaced: 1, left_out: 1, ..TaskCount::default() });
    let lines = ["- 2 pears (failed): there are none", "- 2 pears (replaced): there are none"];
    for ((anew, expected), line) in [other, same].into_iter().zip(lines) {
        let mut fleet = Fleet::with_goal(Goal::new(GOAL), RunLimits::default());
        let critical = TaskDraft { critical: true, ..leaf("pears", &[]) };
        let mut plans =
            [vec![leaf("apples", &[]), critical, leaf("after", &["pears"])], vec![anew]].into_iter();
        fleet.work(|offer| match &offer.work {
            Work::Plan { .. } => plan(plans.next().unwrap()),
            Work::Execute { .. } if offer.task.to_string() == "2" => {
                failed(Ending::Escalate, "there are none")
            }
            _ => good(offer, &[]),
        });
        assert_eq!((fleet.status(), counted(&fleet)), (RunStatus::Completed, expected));
        assert!(is_completed_in_part(fleet.run()));
        for line in [line, "- 3 after (left out): new plan 1 has no such task (2 pears, which"] {
            assert!(fleet.body().contains(line), "{line} in:\n{}", fleet.body());
        }
    }
}

/// A result that leaves a question open.
fn open(findings: &[&str]) -> Outcome {
    let findings =
        findings.iter().map(|text| Finding { text: (*text).into(), ..Finding::default() }).collect();
    let (conclusion, unanswered) = ("nobody knows".to_owned(), vec!["the price".to_owned()]);
    done(Product::Result(TaskResult { conclusion, findings, unanswered, ..TaskResult::default() }))
}

#[test]
fn each_end_of_a_task_is_counted_and_reported() {
    let half = Outcome { ending: Ending::DonePartial, reason: "only half was read".into(), ..result("half") };
    let late = failed(Ending::DeadlinePassed, "its time was up before it ended");
    let one = TaskCount { done: 1, ..TaskCount::default() };
    for (outcome, expected, in_part, line) in [
        (result("so it is"), TaskCount { done: 2, ..one }, false, ""),
        (open(&["it is red"]), TaskCount { done: 2, ..one }, false, ""),
        (open(&[]), TaskCount { left_open: 1, ..one }, false, "- 1 part 1 (left open): the price"),
        (half, TaskCount { in_part: 1, ..one }, true, "- 1 part 1 (done in part): only half was read"),
        (late, TaskCount { failed: 1, ..one }, true, "- 1 part 1 (failed): its time was up"),
    ] {
        let mut fleet = Fleet::submitted(RunLimits::default());
        finish(&mut fleet, 2, |task| (task == "1").then(|| outcome.clone()));
        assert_eq!((counted(&fleet), is_completed_in_part(fleet.run())), (expected, in_part));
        let (body, open) = (fleet.body(), &fleet.run().report.as_ref().unwrap().unanswered);
        assert!(body.contains(line), "{body}");
        assert_eq!(
            body.contains("## What was not done\n\n1 of 2 tasks done, 1 "),
            !line.is_empty(),
            "{body}"
        );
        assert_eq!(body.contains("This report is not the whole answer."), in_part, "{body}");
        assert_eq!(open.iter().any(|part| part.starts_with("1 part 1 (failed)")), expected.failed > 0);
    }
}

#[test]
fn a_goal_of_which_no_part_was_answered_is_completed_in_part() {
    let conclusion = "nothing to add".to_owned();
    let after = done(Product::Result(TaskResult { conclusion, ..TaskResult::default() }));
    for (second, in_part) in [(open(&[]), true), (after, true), (result("it costs 2"), false)] {
        let mut fleet = Fleet::submitted(RunLimits::default());
        let tasks = [leaf("part 1", &[]), leaf("part 2", &["1"])];
        fleet.work(|offer| match offer.task.to_string().as_str() {
            "1" => open(&[]),
            "2" => second.clone(),
            _ => good(offer, &tasks),
        });
        assert_eq!(is_completed_in_part(fleet.run()), in_part, "{}", fleet.body());
    }
}

#[test]
fn a_part_that_a_blueprint_requires_and_the_report_lacks_is_reported() {
    for (required, in_part) in [(true, true), (false, false)] {
        let text = BY_STEPS.replace("[params", &format!("[output.prices]\nrequired={required}\n[params"));
        let mut fleet = of_blueprint(&text, 1, RunLimits::default());
        fleet.work(|offer| good(offer, &[]));
        approve(&mut fleet, 1);
        fleet.finish(&[]);
        assert_eq!(is_completed_in_part(fleet.run()), in_part, "{:?}", shortfalls(fleet.run()));
        assert_eq!(
            fleet.body().contains("## Not answered\n\n- the report was to have a part \"Prices\""),
            in_part
        );
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
    of_blueprint(BY_STEPS, topics, limits)
}

fn of_blueprint(text: &str, topics: usize, limits: RunLimits) -> Fleet {
    let topics: Vec<String> = (1..=topics).map(|n| format!("topic {n}")).collect();
    let filled =
        fill(&parse(text).unwrap(), &BTreeMap::from([("topics".to_owned(), json!(topics))])).unwrap();
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
    for (said, sent) in
        [(Some("Yes."), true), (Some("go ahead, please"), true), (Some("1"), true), (Some("No!"), false)]
    {
        let mut fleet = by_blueprint(1, RunLimits::default());
        fleet.work(|offer| good(offer, &[]));
        let (question, asked) = fleet.run().open_questions().next().unwrap();
        assert_eq!(asked.about, About::Step("send".to_owned()));
        let text = said.unwrap().to_owned();
        fleet.ask(1, RequestAction::Answer { question, text });
        fleet.finish(&[]);
        assert_eq!(fleet.run().planned(&TaskIndex::top(2)).is_some(), sent, "{said:?}");
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
