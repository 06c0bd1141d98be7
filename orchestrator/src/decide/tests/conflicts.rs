//! Results that contradict each other: found, settled step by step, done again, and said in the report.

use muster_shared::conflict::read_value;
use muster_shared::flow::{
    Citation, Claim, ConflictStep, Conflicts, Ending, Finding, Goal, Outcome, Product, RunLimits, TaskDraft,
    TaskOffered, TaskResult, TaskStatus, Work,
};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::run::{ConflictEnd, ConflictState, RequestAction, RunStatus, is_completed_in_part};
use muster_shared::time::Millis;

use super::fleet::{Fleet, done, failed, good, leaf, plan};
use super::replanning::GOAL;
use super::tables::{open, status};

const SUBJECT: &str = "chance of rain, Paris, 21 to 22 November";

/// Two that look at the same, a third that uses both.
fn tasks() -> Vec<TaskDraft> {
    vec![leaf("the analysis", &[]), leaf("the chart", &[]), leaf("the summary", &["1", "2"])]
}

pub(super) fn claim(value: &str, method: &str) -> Claim {
    Claim {
        subject: SUBJECT.to_owned(),
        value: read_value(value, "").unwrap(),
        confidence: 0,
        evidence: vec![Citation { path: "rain.csv".to_owned(), line: 3, quote: String::new() }],
        method: method.to_owned(),
    }
}

pub(super) fn claiming(claims: Vec<Claim>) -> Outcome {
    done(Product::Result(TaskResult { conclusion: "so it is".to_owned(), claims, ..TaskResult::default() }))
}

pub(super) fn says(value: &str) -> Outcome {
    claiming(vec![claim(value, "")])
}

fn limits(policy: &[ConflictStep]) -> RunLimits {
    let conflicts = Conflicts { policy: policy.to_vec(), ..Conflicts::default() };
    RunLimits { reflection: muster_shared::flow::ReflectionLevel::None, conflicts, ..RunLimits::default() }
}

pub(super) fn begun(policy: &[ConflictStep]) -> Fleet {
    Fleet::planned(limits(policy), tasks())
}

/// A run in which the first two results contradict each other.
pub(super) fn contradicted(policy: &[ConflictStep]) -> Fleet {
    let mut fleet = begun(policy);
    fleet.do_task("1", says("30 %"));
    fleet.do_task("2", says("15 %"));
    fleet
}

fn conflict(fleet: &Fleet, id: u32) -> &ConflictState {
    &fleet.run().conflicts.found[&id]
}

pub(super) fn is_settled_by(fleet: &Fleet, id: u32) -> Option<ConflictStep> {
    conflict(fleet, id).verdict().map(|verdict| verdict.by)
}

fn finish(fleet: &mut Fleet) -> String {
    fleet.finish(&tasks());
    fleet.body().to_owned()
}

#[test]
fn a_wrong_range_of_dates_is_found_by_asking_for_methods_and_done_again() {
    let mut fleet = contradicted(&ConflictStep::USUAL);
    assert_eq!(open(&fleet), ["settle-1", "settle-2"], "both are asked, and what uses them waits");
    fleet.do_task("settle-1", claiming(vec![claim("30 %", "rows of 21 to 22 November")]));
    assert!(conflict(&fleet, 1).is_open());
    fleet.do_task("settle-2", claiming(vec![claim("30 %", "had taken the rows of October")]));

    assert_eq!(is_settled_by(&fleet, 1), Some(ConflictStep::Methods));
    assert_eq!(conflict(&fleet, 1).redone, [TaskIndex::top(2)]);
    assert_eq!(open(&fleet), ["2"], "only who lost does it again");
    let again = fleet.find("2");
    let Work::Execute { failed_before: Some(told), .. } = &again.work else { panic!("{:?}", again.work) };
    assert!(told.contains("30 %") && told.contains("rows of October"), "{told}");
    fleet.do_task("2", says("30 %"));
    assert_eq!(fleet.run().conflicts.found.len(), 1, "they agree now");
    let body = finish(&mut fleet);
    assert!(!body.contains("contradict"), "{body}");
    let counts = fleet.run().conflict_counts();
    assert_eq!(counts.values().map(|count| (count.won, count.lost)).collect::<Vec<_>>(), [(1, 1)]);
}

#[test]
fn each_policy_settles_in_its_own_way() {
    let sure = |value: &str, confidence| claiming(vec![Claim { confidence, ..claim(value, "counted") }]);
    let from = |value: &str, path: &str| {
        let evidence = vec![Citation { path: path.to_owned(), line: 1, quote: String::new() }];
        claiming(vec![Claim { evidence, ..claim(value, "counted") }])
    };
    for (step, one, other) in [
        (ConflictStep::Confidence, sure("30 %", 90), sure("15 %", 40)),
        (ConflictStep::Authority, from("30 %", "official/rain.csv"), from("15 %", "blog.md")),
    ] {
        let mut limits = limits(&[step]);
        limits.conflicts.authority = vec!["official/*".to_owned()];
        let mut fleet = Fleet::planned(limits, tasks());
        fleet.do_task("1", one);
        fleet.do_task("2", other);
        assert_eq!(is_settled_by(&fleet, 1), Some(step));
        assert_eq!(conflict(&fleet, 1).redone, [TaskIndex::top(2)], "{step}");
    }
}

#[test]
fn a_third_result_makes_a_majority() {
    let three = vec![leaf("a", &[]), leaf("b", &[]), leaf("c", &[])];
    let mut fleet = Fleet::planned(limits(&[ConflictStep::Arbiter, ConflictStep::Majority]), three);
    fleet.do_task("1", says("30 %"));
    fleet.do_task("2", says("15 %"));
    assert_eq!(open(&fleet), ["3", "settle-1"]);
    fleet.do_task("3", says("31 %"));
    assert_eq!(conflict(&fleet, 1).sides.len(), 3, "it takes part in what is open");
    fleet.do_task("settle-1", claiming(Vec::new()));
    assert_eq!(is_settled_by(&fleet, 1), Some(ConflictStep::Majority), "the judge cannot tell");
    assert_eq!(conflict(&fleet, 1).redone, [TaskIndex::top(2)]);
}

#[test]
fn a_judge_chooses_among_the_sides() {
    let mut fleet = contradicted(&[ConflictStep::Arbiter]);
    let Work::Execute { task, inputs, .. } = fleet.find("settle-1").work else { panic!() };
    assert!(task.goal.contains("1: 30 %") && task.goal.contains("2: 15 %"), "{}", task.goal);
    assert_eq!(inputs.len(), 2, "it is told what the sides gave");
    fleet.do_task("settle-1", claiming(vec![claim("15 %", "the table says so")]));
    assert_eq!(is_settled_by(&fleet, 1), Some(ConflictStep::Arbiter));
    assert_eq!(open(&fleet), ["1"]);
}

#[test]
fn a_task_is_added_that_finds_out_what_holds() {
    let mut fleet = contradicted(&[ConflictStep::Verify]);
    let added = conflict(&fleet, 1).verified_by.clone().unwrap().to_string();
    assert_eq!(open(&fleet), std::slice::from_ref(&added));
    fleet.do_task(&added, claiming(vec![claim("50 %", "counted anew")]));
    assert_eq!(is_settled_by(&fleet, 1), Some(ConflictStep::Verify));
    assert_eq!(open(&fleet), ["1", "2"], "both were wrong");
}

#[test]
fn a_verification_that_fails_or_is_not_sure_changes_no_plan() {
    let unsure = Finding { text: "perhaps".into(), confidence: 1, ..Finding::default() };
    let unsure = done(Product::Result(TaskResult { findings: vec![unsure], ..TaskResult::default() }));
    for outcome in [failed(Ending::ModelFailed, "no model answers"), failed(Ending::Escalate, "no"), unsure] {
        let two = vec![leaf("the analysis", &[]), leaf("the chart", &[])];
        let mut fleet = Fleet::with_goal(Goal::new(GOAL), limits(&[ConflictStep::Verify]));
        fleet.work(|offer| match offer.task.to_string().as_str() {
            "1" => says("30 %"),
            "2" => says("15 %"),
            "3" => outcome.clone(),
            _ => good(offer, &two),
        });
        assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
        assert!(fleet.events().iter().all(|event| event.name() != "replan_wanted"), "{outcome:?}");
        assert!(!is_completed_in_part(fleet.run()), "{outcome:?}");
        assert!(fleet.body().contains("it is not settled what holds"), "{}", fleet.body());
    }
}

#[test]
fn a_person_says_what_holds_or_leaves_it_open() {
    for (answer, settled) in [("1", true), ("3", false)] {
        let mut fleet = contradicted(&[ConflictStep::Person]);
        let (id, asked) = fleet.run().open_questions().next().unwrap();
        assert_eq!(asked.question.choices.len(), 4, "{:?}", asked.question);
        assert!(open(&fleet).is_empty(), "what uses them waits");
        let text = answer.to_owned();
        fleet.ask(7, RequestAction::Answer { question: id, text });
        assert_eq!(conflict(&fleet, 1).verdict().is_some(), settled);
        assert_eq!(open(&fleet).len(), 1);
    }
}

#[test]
fn both_may_hold_and_that_costs_nothing_further() {
    let mut fleet = contradicted(&[ConflictStep::Arbiter, ConflictStep::Verify]);
    let asked = fleet.find("settle-1");
    let Work::Execute { task, .. } = &asked.work else { panic!("{asked:?}") };
    assert!(task.goal.contains("both hold"), "{}", task.goal);
    let both = Claim {
        subject: "Both hold".into(),
        value: read_value("yes", "").unwrap(),
        ..claim("1", "the first is of Saturday, the second of Sunday")
    };
    fleet.do_task("settle-1", claiming(vec![both]));
    let Some(ConflictEnd::Both(why)) = &conflict(&fleet, 1).end else {
        panic!("{:?}", conflict(&fleet, 1).end)
    };
    assert_eq!(why, "the first is of Saturday, the second of Sunday");
    assert!(conflict(&fleet, 1).redone.is_empty(), "nobody lost");
    let body = finish(&mut fleet);
    let told: Vec<&str> =
        body.lines().filter(|line| line.contains("both hold, of different things")).collect();
    assert_eq!(told.len(), 1, "{body}");
    assert!(told[0].contains(SUBJECT) && told[0].contains("Saturday"), "{body}");
    assert!(!body.contains("not settled"), "{body}");
}

#[test]
fn a_person_may_say_that_both_hold() {
    let mut fleet = contradicted(&[ConflictStep::Person]);
    let (id, _) = fleet.run().open_questions().next().unwrap();
    fleet.ask(7, RequestAction::Answer { question: id, text: "4".to_owned() });
    assert!(matches!(conflict(&fleet, 1).end, Some(ConflictEnd::Both(_))), "{:?}", conflict(&fleet, 1).end);
}

#[test]
fn what_is_not_settled_is_marked_in_the_report() {
    let mut fleet = contradicted(&[]);
    assert!(matches!(conflict(&fleet, 1).end, Some(ConflictEnd::Unsettled(_))));
    fleet.work(|offer| {
        if let Work::Write { conflicts, .. } = &offer.work {
            assert_eq!(conflicts.len(), 1, "the writer is told");
        }
        good(offer, &tasks())
    });
    let body = fleet.body().to_owned();
    assert!(body.contains("not settled") && body.contains("30 %") && body.contains("15 %"), "{body}");
}

#[test]
fn a_conflict_that_is_not_settled_in_time_is_left_open() {
    let mut fleet = contradicted(&[ConflictStep::Arbiter]);
    fleet.at(Millis(conflict(&fleet, 1).until.0 + 1));
    let Some(ConflictEnd::Unsettled(why)) = &conflict(&fleet, 1).end else { panic!("it is open") };
    assert!(why.contains("time"), "{why}");
    assert_eq!(status(&fleet, "settle-1"), TaskStatus::Aborted);
    assert!(finish(&mut fleet).contains("not settled"));
}

#[test]
fn who_is_asked_and_fails_leaves_the_next_step() {
    let mut fleet = contradicted(&[ConflictStep::Arbiter, ConflictStep::Majority]);
    fleet.do_task("settle-1", failed(Ending::Escalate, "I cannot tell"));
    assert!(matches!(conflict(&fleet, 1).end, Some(ConflictEnd::Unsettled(_))));
    assert!(finish(&mut fleet).contains("not settled"));
}

#[test]
fn who_loses_again_is_not_done_again_for_ever() {
    let mut fleet = begun(&[ConflictStep::Confidence]);
    let sure = |value: &str, confidence| claiming(vec![Claim { confidence, ..claim(value, "") }]);
    fleet.do_task("1", sure("30 %", 90));
    fleet.do_task("2", sure("15 %", 40));
    fleet.do_task("2", sure("15 %", 40));
    assert_eq!(fleet.run().conflicts.found.len(), 2);
    assert!(conflict(&fleet, 2).redone.is_empty());
    let Work::Execute { lessons, .. } = fleet.find("3").work else { panic!() };
    assert!(lessons.iter().any(|lesson| lesson.contains("30 % holds, not what 2 claims")), "{lessons:?}");
    assert!(finish(&mut fleet).contains("30 % holds"), "what was overruled and stayed is marked");
}

#[test]
fn who_insists_where_no_more_is_settled_is_marked() {
    let mut limits = limits(&[ConflictStep::Confidence]);
    limits.conflicts.max_conflicts = 1;
    let mut fleet = Fleet::planned(limits, tasks());
    let sure = |value: &str, confidence| claiming(vec![Claim { confidence, ..claim(value, "") }]);
    fleet.do_task("1", sure("30 %", 90));
    fleet.do_task("2", sure("15 %", 40));
    fleet.do_task("2", sure("15 %", 40));
    assert_eq!(fleet.run().conflicts.found.len(), 1, "no more than one is settled");
    let body = finish(&mut fleet);
    assert!(
        body.contains(SUBJECT) && body.contains("30 % holds") && body.contains("2 claims otherwise again"),
        "{body}"
    );
}

#[test]
fn who_agrees_on_what_was_found_to_be_wrong_is_marked() {
    let mut fleet = contradicted(&[ConflictStep::Verify]);
    fleet.do_task("4", says("60 %"));
    assert_eq!(conflict(&fleet, 1).redone, [TaskIndex::top(1), TaskIndex::top(2)]);
    for task in ["1", "2"] {
        fleet.do_task(task, says("30 %"));
    }
    assert_eq!(fleet.run().conflicts.found.len(), 1, "they are of one mind");
    let Work::Execute { lessons, .. } = fleet.find("3").work else { panic!() };
    assert!(
        lessons.iter().any(|lesson| lesson.contains("60 % holds")),
        "what was found is not forgotten: {lessons:?}"
    );
    let body = finish(&mut fleet);
    assert!(body.contains(SUBJECT) && body.contains("60 % holds"), "{body}");
}

#[test]
fn what_was_verified_holds_when_the_loser_insists() {
    let mut fleet = contradicted(&[ConflictStep::Verify, ConflictStep::Arbiter]);
    fleet.do_task("4", says("30 %"));
    assert_eq!(conflict(&fleet, 1).redone, [TaskIndex::top(2)]);
    fleet.do_task("2", says("15 %"));
    assert_eq!(is_settled_by(&fleet, 2), Some(ConflictStep::Verify), "nobody is asked anew");
    assert!(conflict(&fleet, 2).redone.is_empty() && open(&fleet) == ["3"]);
    let body = finish(&mut fleet);
    assert_eq!(body.matches("30 % holds").count(), 1, "once: {body}");
}

#[test]
fn values_of_one_subject_in_two_documents_contradict_each_other() {
    let of = |subject: &str, value: &str, path: &str| {
        let evidence = vec![Citation { path: path.into(), line: 1, quote: String::new() }];
        Claim { subject: subject.into(), evidence, ..claim(value, "counted") }
    };
    let mut fleet = begun(&[ConflictStep::Methods, ConflictStep::Majority]);
    let both = vec![of("limit of depth", "20", "a.md"), of("limit of depth", "30", "b.md")];
    fleet.do_task("1", claiming(both));
    assert_eq!(conflict(&fleet, 1).sides.len(), 2);
    let other = good(&fleet.find("2"), &tasks());
    fleet.do_task("2", other);
    assert_eq!(fleet.run().conflicts.found.len(), 1, "it is found once");
    let body = finish(&mut fleet);
    assert!(body.contains("limit of depth") && body.contains("not settled"), "{body}");
}

#[test]
fn a_validator_that_contradicts_makes_the_researcher_do_it_again_and_itself_after() {
    let pair = vec![leaf("research", &[]), leaf("validate", &["1"])];
    let mut fleet = Fleet::planned(limits(&[ConflictStep::Confidence]), pair);
    let sure = |value: &str, confidence| claiming(vec![Claim { confidence, ..claim(value, "") }]);
    fleet.do_task("1", sure("yes", 40));
    fleet.do_task("2", sure("no", 95));
    assert_eq!(conflict(&fleet, 1).redone, [TaskIndex::top(1)]);
    assert_eq!(open(&fleet), ["1"]);
    fleet.do_task("1", sure("no", 80));
    assert_eq!(open(&fleet), ["2"], "what it was checked against has changed");
    fleet.do_task("2", sure("no", 95));
    assert_eq!(fleet.run().conflicts.found.len(), 1);
}

#[test]
fn a_loser_that_fails_when_it_is_done_again_changes_no_plan() {
    let mut fleet = Fleet::with_goal(Goal::new(GOAL), limits(&[ConflictStep::Confidence]));
    fleet.end_task("plan", plan(tasks()));
    let sure = |value: &str, confidence| claiming(vec![Claim { confidence, ..claim(value, "") }]);
    fleet.do_task("1", sure("30 %", 90));
    fleet.do_task("2", sure("15 %", 40));
    while open(&fleet).contains(&"2".to_owned()) {
        fleet.do_task("2", failed(Ending::ModelFailed, "no model answers"));
    }
    finish(&mut fleet);
    assert!(fleet.events().iter().all(|event| event.name() != "replan_wanted"), "{}", fleet.reason());
}

#[test]
fn a_side_that_changes_meanwhile_ends_the_conflict() {
    let mut fleet = contradicted(&[ConflictStep::Arbiter]);
    fleet.ask(9, RequestAction::Redo { task: TaskIndex::top(2) });
    assert!(matches!(conflict(&fleet, 1).end, Some(ConflictEnd::Gone(_))), "{:?}", conflict(&fleet, 1));
    fleet.do_task("2", says("15 %"));
    assert!(conflict(&fleet, 2).is_open(), "it claims the same again");
}

/// Whatever the order in which results come, the same task is done again.
#[test]
fn the_order_of_results_changes_no_verdict() {
    let three = || vec![leaf("a", &[]), leaf("b", &[]), leaf("c", &[])];
    let answer = |offer: &TaskOffered| -> Outcome {
        match (&offer.task, &offer.work) {
            (TaskId::Leaf(index), _) if *index == TaskIndex::top(2) && offer.generation.0 == 1 => {
                says("15 %")
            }
            (TaskId::Leaf(_), _) => says("30 %"),
            (TaskId::Settle(_), Work::Execute { task, .. }) if task.goal.contains("Task 2 claimed") => {
                claiming(vec![claim("30 %", "had looked at October")])
            }
            (TaskId::Settle(_), _) => claiming(vec![claim("30 %", "counted")]),
            (_, _) => good(offer, &three()),
        }
    };
    for first in 0..3 {
        let mut fleet = Fleet::submitted(limits(&ConflictStep::USUAL));
        let mut turn = first;
        fleet.work_in_order(
            |open| {
                turn += 1;
                turn % open
            },
            answer,
        );
        assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
        let redone: Vec<&TaskIndex> =
            fleet.run().conflicts.found.values().flat_map(|conflict| &conflict.redone).collect();
        assert_eq!(redone, [&TaskIndex::top(2)], "{first}");
    }
}
