//! What results are held to by the orchestrator, whoever gave them.

use muster_shared::flow::response::NOT_CHECKED;
use muster_shared::flow::{
    FailureKind, Outcome, Product, ReflectionLevel, RunLimits, TaskDraft, TaskOffered, TaskResult, Usage,
    Work,
};
use muster_shared::run::event::FailureAnswered;
use muster_shared::run::{AgentEvent, Input, RunEvent};
use serde_json::json;

use super::fleet::{Fleet, done, good, leaf};
use super::tables::open;

fn tasks() -> Vec<TaskDraft> {
    let mut task = leaf("the colours", &[]);
    task.expected_output = "a JSON array of exactly three colours".into();
    vec![task, leaf("the rest", &["1"])]
}

pub(super) fn begun() -> Fleet {
    let limits = RunLimits { reflection: ReflectionLevel::None, ..RunLimits::default() };
    Fleet::planned(limits, tasks())
}

pub(super) fn gives(conclusion: &str) -> Outcome {
    done(Product::Result(TaskResult { conclusion: conclusion.into(), ..TaskResult::default() }))
}

fn told_before(offer: &TaskOffered) -> String {
    match &offer.work {
        Work::Execute { failed_before: Some(told), .. } => told.clone(),
        other => panic!("{other:?}"),
    }
}

fn kinds(fleet: &Fleet) -> Vec<FailureKind> {
    let answered = |event: &RunEvent| match event {
        RunEvent::FailureAnswered(FailureAnswered { failure, .. }) => Some(*failure),
        _ => None,
    };
    fleet.events().into_iter().filter_map(answered).collect()
}

#[test]
fn an_empty_result_is_sent_back_and_prose_is_not_judged() {
    let mut fleet = begun();
    fleet.do_task("1", gives("banana"));
    assert_eq!((open(&fleet), kinds(&fleet)), (vec!["2".to_owned()], Vec::new()));
    let mut fleet = begun();
    fleet.do_task("1", gives(" "));
    assert!(told_before(&fleet.find("1")).contains("nothing was given"));
    assert_eq!(kinds(&fleet), [FailureKind::NotAccepted]);
}

#[test]
fn a_result_that_is_too_large_or_breaks_a_contract_fails_with_the_field() {
    let large = "x".repeat(TaskResult::MAX_DATA_BYTES + 1);
    let data = TaskResult {
        conclusion: "[1,2,3]".into(),
        data: Some(Box::new(json!(large))),
        ..TaskResult::default()
    };
    for (outcome, field) in [(done(Product::Result(data)), "`data`"), (gives(&large), "`conclusion`")] {
        let mut fleet = begun();
        fleet.do_task("1", outcome);
        let told = told_before(&fleet.find("1"));
        assert!(told.contains(field) && told.contains("65536"), "{told}");
        assert_eq!(kinds(&fleet), [FailureKind::ContractBroken]);
    }
    let mut fleet = begun();
    let offer = fleet.begin_task("1");
    fleet.open.retain(|open| open.task != offer.task);
    let Input::Agent { seq: outcome } =
        fleet.report_only(&offer, AgentEvent::Outcome(gives("[1, 2, 3]").into()))
    else {
        panic!("an agent's event")
    };
    let faults = vec!["`data.total`: \"ten\" is not of type \"number\"".to_owned()];
    fleet.turn(vec![Input::ContractBroken { outcome, faults }, Input::Agent { seq: outcome }]);
    assert!(told_before(&fleet.find("1")).contains("`data.total`"));
    assert_eq!(kinds(&fleet), [FailureKind::ContractBroken]);
}

#[test]
fn milestones_that_a_result_does_not_name_are_counted_in_the_report() {
    let milestones = ["search the notes", "name the source"].map(str::to_owned).to_vec();
    let drafts = vec![TaskDraft { milestones, ..leaf("one", &[]) }, leaf("two", &["1"])];
    let mut fleet = Fleet::planned(RunLimits::default(), drafts.clone());
    let usage = Usage { model_calls: 1, ..Usage::default() };
    fleet.do_task("1", Outcome { usage, ..gives("It is so.") });
    fleet.finish(&drafts);
    assert!(fleet.body().contains("reached: 1 one (0 of 2)."), "{}", fleet.body());
}

#[test]
fn what_was_not_verified_is_said_in_the_report() {
    let mut fleet = begun();
    let reason = format!("{NOT_CHECKED}: no verdict was given");
    fleet.do_task("1", Outcome { reason, ..gives("[1, 2, 3]") });
    fleet.work(|offer| good(offer, &tasks()));
    let body = fleet.body();
    assert!(body.contains("Not verified") && body.contains("1 the colours"), "{body}");
}
