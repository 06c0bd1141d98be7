//! What people have a say in: the plan, and whether to go on.

use muster_shared::flow::{
    About, Ending, Finding, Goal, OnTimeout, Outcome, People, PlanDraft, Product, RefineOperation,
    ReflectionLevel, ReviewPolicy, RunLimits, TaskDraft, TaskResult, TaskStatus, Work,
};
use muster_shared::ids::{QuestionId, TaskIndex};
use muster_shared::run::event::QuestionAnswered;
use muster_shared::run::{
    Input, Phase, Request, RequestAction, RunEvent, RunStatus, SignedOrder, SignerKind, StopReason,
};
use muster_shared::time::Millis;

use super::fleet::{Fleet, done, failed, good, leaf, plan, refinement};
use super::replanning::GOAL;
use crate::decide::next_deadline;

pub(super) fn tasks() -> Vec<TaskDraft> {
    vec![leaf("one", &[]), leaf("two", &[])]
}

fn fleet_with(people: People) -> Fleet {
    Fleet::submitted(RunLimits { people, ..RunLimits::default() })
}

pub(super) fn asking() -> People {
    People { review: ReviewPolicy::Ask, answer_within_ms: 60_000, ..People::default() }
}

/// A run whose plan waits for a person.
pub(super) fn waiting(people: People) -> Fleet {
    let mut fleet = fleet_with(people);
    fleet.end_task("plan", plan(tasks()));
    assert!(fleet.run().is_held() && fleet.open.is_empty(), "nothing is offered");
    assert_eq!(fleet.run().phase, Phase::Executing);
    fleet
}

pub(super) fn approve(fleet: &mut Fleet, n: u128, tasks: Option<Vec<TaskDraft>>) {
    let plan =
        tasks.map(|tasks| Box::new(PlanDraft { goal: "the goal".into(), tasks, ..PlanDraft::default() }));
    fleet.ask(n, RequestAction::Approve { question: None, arguments: None, plan });
}

fn reject(fleet: &mut Fleet, n: u128, reason: &str) {
    fleet.ask_because(n, RequestAction::Reject { question: None }, reason);
}

#[test]
fn a_plan_waits_for_approval_and_is_then_carried_out() {
    let mut fleet = waiting(asking());
    fleet.now = Millis(fleet.now.0 + 30_000);
    fleet.turn(vec![Input::Capacity]);
    assert!(fleet.open.is_empty());
    approve(&mut fleet, 1, None);
    assert_eq!(fleet.open.len(), 2);
    approve(&mut fleet, 2, None);
    assert!(fleet.refusals()[0].contains("nothing waits to be approved"), "{:?}", fleet.refusals());
    fleet.finish(&tasks());
}

#[test]
fn what_is_rejected_is_changed_and_asked_about_again() {
    let mut fleet = waiting(asking());
    reject(&mut fleet, 1, " ");
    assert!(fleet.refusals()[0].contains("what is to be different"), "{:?}", fleet.refusals());
    reject(&mut fleet, 2, "leave out two");
    let change = fleet.find("refine-1");
    assert_eq!(fleet.open.len(), 1, "only the change goes on");
    assert!(
        matches!(&change.work, Work::Refine { reasons, .. } if reasons == &["ann on the plan: leave out two"])
    );
    fleet.start(&change);
    let delete = RefineOperation::Delete { task: TaskIndex::top(2), reason: "not wanted".into() };
    fleet.end(&change, refinement(vec![delete]));
    assert!(fleet.run().is_held() && fleet.open.is_empty());
    let (_, asked) = fleet.run().open_questions().next().unwrap();
    assert!(asked.question.reason.contains("deleted 2 two"), "{:?}", asked.question);
    approve(&mut fleet, 3, None);
    assert_eq!(fleet.open.len(), 1);
    fleet.finish(&tasks());
}

#[test]
fn a_change_that_fails_is_asked_about_too() {
    let mut fleet = waiting(asking());
    reject(&mut fleet, 1, "leave out two");
    while !fleet.run().is_held() {
        let change = fleet.open[0].clone();
        fleet.start(&change);
        fleet.end(&change, failed(Ending::ModelFailed, "no model answers"));
    }
    approve(&mut fleet, 2, None);
    assert_eq!(fleet.open.len(), 2);
    fleet.finish(&tasks());
}

#[test]
fn an_edited_plan_is_carried_out_and_one_that_cannot_be_harms_nothing() {
    let mut fleet = waiting(asking());
    let before = fleet.run().plan.clone();
    approve(&mut fleet, 1, Some(vec![leaf("one", &["three"]), leaf("two", &[])]));
    assert!(fleet.refusals()[0].contains("the edited plan cannot be used"), "{:?}", fleet.refusals());
    assert!(fleet.run().is_held() && fleet.run().plan == before);
    approve(&mut fleet, 2, Some(vec![leaf("one", &[]), leaf("two", &["one"]), leaf("three", &["two"])]));
    let names: Vec<_> =
        fleet.run().plan.as_ref().unwrap().tasks.values().map(|task| task.name.clone()).collect();
    assert_eq!(names, ["one", "two", "three"]);
    assert_eq!(fleet.open.len(), 1, "the others depend on it");
    fleet.finish(&tasks());
}

#[test]
fn a_task_that_was_skipped_stays_in_an_edited_plan() {
    let mut fleet = waiting(asking());
    fleet.ask(1, RequestAction::Skip { task: "2".parse().unwrap() });
    approve(&mut fleet, 2, Some(vec![leaf("one", &[])]));
    assert!(fleet.refusals().is_empty(), "{:?}", fleet.refusals());
    let status = |index: &str| fleet.run().planned(&index.parse().unwrap()).unwrap().status;
    assert_eq!((status("1"), status("2")), (TaskStatus::Queued, TaskStatus::Skipped));
    fleet.finish(&tasks());
}

/// Silence approves nothing, whatever the policy is: the run ends, and no task of the plan was offered.
#[test]
fn nothing_is_approved_because_nobody_answered() {
    let another =
        People { ask: vec!["ann".into(), "ben".into()], on_timeout: OnTimeout::AskAnother, ..asking() };
    let stops = People { on_timeout: OnTimeout::Abort, ..asking() };
    for people in [asking(), another, stops, by(&["ann"], 1), by(&[], 2)] {
        let mut fleet = waiting(people);
        assert_eq!(next_deadline(fleet.run()), Some(Millis(fleet.now.0 + 60_000)));
        while fleet.run().is_held() {
            fleet.pass(60_000);
        }
        assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::DeadlinePassed), "{}", fleet.reason());
        assert!(fleet.open.is_empty());
        let answered = |event: &&RunEvent| matches!(event, RunEvent::QuestionAnswered(_));
        assert_eq!(fleet.events().iter().filter(|event| answered(event)).count(), 0, "nobody approved it");
    }
}

#[test]
fn only_a_risky_plan_is_looked_at_if_that_is_the_policy() {
    let people = People { review: ReviewPolicy::AskIfRisky, ..asking() };
    let mut fleet = fleet_with(people.clone());
    fleet.end_task("plan", plan(tasks()));
    assert!(!fleet.run().is_held());
    let risky = TaskDraft { critical: true, criticism: "it spends money".into(), ..leaf("pay", &[]) };
    let mut fleet = fleet_with(people);
    fleet.end_task("plan", plan(vec![risky]));
    let (_, asked) = fleet.run().open_questions().next().unwrap();
    assert!(asked.question.reason.contains("it spends money"), "{:?}", asked.question);
}

fn sure(confidence: u8) -> Outcome {
    let finding = Finding { text: "so it is".into(), confidence, ..Finding::default() };
    done(Product::Result(TaskResult { findings: vec![finding], ..TaskResult::default() }))
}

/// Approval of a result that no rule trusts is the person's decision.
#[test]
fn a_run_pauses_where_it_was_told_to() {
    for (milestone, confidence, next) in [("One", 90, "2"), ("One", 10, "2"), ("two", 10, "plan")] {
        let people = People { pause_at: vec![milestone.into()], ..People::default() };
        let reflection = ReflectionLevel::None;
        let limits = RunLimits { people, reflection, replan_below_confidence: 50, ..RunLimits::default() };
        let mut fleet = Fleet::with_goal(Goal::new(GOAL), limits);
        fleet.end_task("plan", plan(vec![leaf("one", &[]), leaf("two", &["one"])]));
        let one = fleet.begin_task("1");
        fleet.defer = false;
        fleet.end(&one, sure(confidence));
        let asked = fleet.run().open_questions().next().map(|(_, asked)| asked.about.clone());
        assert_eq!(asked, (milestone == "One").then(|| About::Milestone(TaskIndex::top(1))));
        if asked.is_some() {
            assert!(fleet.open.is_empty());
            approve(&mut fleet, 1, None);
        }
        let open: Vec<String> = fleet.open.iter().map(|offer| offer.task.to_string()).collect();
        assert_eq!(open, [next], "{milestone} {confidence}");
    }
}

pub(super) fn answer(fleet: &mut Fleet, n: u128, text: &str) {
    let question = fleet.run().open_questions().next().unwrap().0;
    fleet.ask(n, RequestAction::Answer { question, text: text.to_owned() });
}

#[test]
fn an_approval_is_one_of_the_choices_and_any_other_text_is_feedback() {
    let texts = [
        "Nothing to change",
        "согласен",
        "承認します",
        "Godkänt",
        "off",
        "yes",
        "LGTM 👍",
        "no",
        "stop",
        "app",
    ];
    for text in texts {
        let mut fleet = waiting(asking());
        answer(&mut fleet, 1, text);
        assert!(fleet.refusals().is_empty() && fleet.open.is_empty(), "{text}: {:?}", fleet.refusals());
        assert_eq!(fleet.run().open_questions().next().unwrap().1.feedback, [text]);
        answer(&mut fleet, 2, "reject");
        let Work::Refine { reasons, .. } = &fleet.find("refine-1").work else { panic!("{text}") };
        assert_eq!(reasons, &[format!("ann on the plan: {text}")]);
    }
    for text in ["approve", "1", " APPROVE "] {
        let mut fleet = waiting(asking());
        answer(&mut fleet, 1, text);
        assert_eq!(fleet.open.len(), 2, "{text}: the plan is carried out");
        let recorded = fleet.events().into_iter().find_map(|event| match event {
            RunEvent::QuestionAnswered(QuestionAnswered { reply }) => reply.text.clone(),
            _ => None,
        });
        assert_eq!(recorded.as_deref(), Some("approve"), "{text}");
        fleet.finish(&tasks());
    }
    for text in ["reject", "2"] {
        let mut fleet = waiting(asking());
        answer(&mut fleet, 1, text);
        assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::Cancelled), "{text}");
    }
    let mut fleet = waiting(asking());
    for (n, text) in (1..).zip(["edit", "3", " ", "4", "0"]) {
        answer(&mut fleet, n, text);
        assert_eq!((fleet.refusals().len() as u128, fleet.run().is_held()), (n, true), "{text}");
    }
    reject(&mut fleet, 20, "1");
    assert!(fleet.refusals().last().unwrap().contains("the choice `approve`"), "{:?}", fleet.refusals());
}

/// Somebody with credentials of his own asks something.
pub(super) fn signed(fleet: &mut Fleet, n: u128, by: (&str, SignerKind), action: RequestAction) {
    let (name, kind) = by;
    let order = SignedOrder {
        by: name.to_owned(),
        kind,
        subject: String::new(),
        payload: String::new(),
        signature: String::new(),
    };
    let request = Request::new(fleet.run().id, action).because("so it is").with_id(uuid::Uuid::from_u128(n));
    // Whoever runs the fleet says whatever name he likes.
    let request = Request { by: "ann".to_owned(), ..request }.signed(Some(order));
    fleet.turn(vec![Input::Request(request)]);
}

pub(super) const YES: RequestAction = RequestAction::Approve { question: None, arguments: None, plan: None };

pub(super) fn person(name: &str) -> (&str, SignerKind) {
    (name, SignerKind::Person)
}

pub(super) fn by(names: &[&str], approvals: u8) -> People {
    People { approve_by: names.iter().map(|&name| name.to_owned()).collect(), approvals, ..asking() }
}

#[test]
fn who_may_approve_and_how_many_have_to() {
    const OPERATOR: (&str, SignerKind) = ("operator", SignerKind::Operator);
    // Who may, how many have to, who approves one after the other; after how many of them the run goes on.
    type Case<'a> = (&'a [&'a str], u8, &'a [(&'a str, SignerKind)], Option<usize>);
    let cases: &[Case<'_>] = &[
        (&[], 1, &[person("zoe")], Some(1)),
        (&["ann"], 1, &[person("ben"), OPERATOR, person("ann")], Some(3)),
        (&["ann", "operator"], 1, &[OPERATOR], Some(1)),
        (&["ann", "ben", "cal"], 2, &[person("ben"), person("ben"), person("zoe"), person("cal")], Some(4)),
        (&[], 2, &[person("ben"), person("ben")], None),
        (&[], 2, &[OPERATOR, OPERATOR], None),
        (&[], 3, &[person("ann"), person("ben"), person("cal")], Some(3)),
    ];
    for (names, approvals, given, after) in cases {
        let mut fleet = waiting(by(names, *approvals));
        let mut went_on = None;
        for (n, who) in given.iter().enumerate() {
            signed(&mut fleet, 1 + n as u128, *who, YES);
            if went_on.is_none() && !fleet.run().is_held() {
                went_on = Some(n + 1);
            }
        }
        assert_eq!(went_on, *after, "{names:?} {approvals} {given:?}: {:?}", fleet.refusals());
    }
}

#[test]
fn who_has_no_say_is_refused_with_the_names_of_those_who_have() {
    let mut fleet = waiting(by(&["ann", "ben"], 1));
    let answer = |text: &str| RequestAction::Answer { question: QuestionId(1), text: text.to_owned() };
    for (n, action) in [YES, RequestAction::Reject { question: None }, answer("approve"), answer("reject")]
        .into_iter()
        .enumerate()
    {
        signed(&mut fleet, 1 + n as u128, person("zoe"), action);
        let last = fleet.refusals().pop().unwrap().to_owned();
        assert!(last.contains("zoe") && last.contains("ann, ben") && last.contains("approve_by"), "{last}");
    }
    assert_eq!(fleet.refusals().len(), 4);
    assert!(fleet.run().is_held());
    // Other orders are everybody's.
    signed(&mut fleet, 9, person("zoe"), RequestAction::Cancel);
    assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::Cancelled));
}

#[test]
fn whoever_changes_the_plan_approves_another_one() {
    let mut fleet = waiting(by(&[], 2));
    signed(&mut fleet, 1, person("ann"), YES);
    let draft = PlanDraft { goal: "the goal".into(), tasks: vec![leaf("one", &[])], ..PlanDraft::default() };
    signed(
        &mut fleet,
        2,
        person("ben"),
        RequestAction::Approve { question: None, arguments: None, plan: Some(Box::new(draft)) },
    );
    assert!(fleet.run().is_held(), "ann has not seen this plan");
    signed(&mut fleet, 3, person("ben"), YES);
    assert!(fleet.refusals().pop().unwrap().contains("has approved this already"));
    signed(&mut fleet, 4, person("ann"), YES);
    assert!(!fleet.run().is_held());
    fleet.work(|offer| good(offer, &[leaf("one", &[])]));
}
