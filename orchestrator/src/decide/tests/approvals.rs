//! Calls that a person approves before they are made.

use muster_shared::flow::{
    About, CallRuling, CallToApprove, CallVerdict, ObservationStatus, OnTimeout, People, PlanDraft, Rights,
    RunLimits, TaskOffered, TaskStatus, Wait,
};
use muster_shared::ids::{Generation, QuestionId, TaskId, TaskIndex};
use muster_shared::run::{QuestionEnd, RequestAction, RunStatus, StopReason};
use serde_json::{Value, json};

use super::fleet::Fleet;
use super::review::{by, person, signed, tasks};
use super::tables::status;

fn call() -> CallToApprove {
    let (tool, why) = ("mail.send".to_owned(), "settings say so".to_owned());
    CallToApprove { at: 0, tool, arguments: json!({ "to": "ben" }), why }
}

fn wait(fleet: &mut Fleet, offer: &TaskOffered) {
    fleet.start(offer);
    fleet.wait(offer, Wait::Approval(Box::new(call())));
}

/// A run in which the first task waits for approval of a call.
fn waiting(people: People) -> Fleet {
    limited(RunLimits { people, ..RunLimits::default() })
}

fn limited(limits: RunLimits) -> Fleet {
    let mut fleet = Fleet::planned(limits, tasks());
    let one = fleet.find("1");
    wait(&mut fleet, &one);
    fleet
}

fn approve(question: Option<u32>, arguments: Option<Value>) -> RequestAction {
    RequestAction::Approve { question: question.map(QuestionId), arguments, plan: None }
}

fn reject(question: Option<u32>) -> RequestAction {
    RequestAction::Reject { question: question.map(QuestionId) }
}

fn answer(text: &str) -> RequestAction {
    RequestAction::Answer { question: QuestionId(1), text: text.to_owned() }
}

fn verdict(fleet: &Fleet) -> CallVerdict {
    let again = fleet.find("1");
    assert_eq!((again.generation, again.continues), (Generation(2), Some(Generation(1))));
    let answered = again.answered.as_deref().unwrap();
    assert_eq!(answered.step, 1);
    answered.verdict.as_deref().unwrap().clone()
}

#[test]
fn a_call_is_made_as_whoever_approves_it_says() {
    let changed = || json!({ "to": "cal" });
    let table = [
        (approve(None, None), "", CallRuling::Approved, ""),
        (approve(Some(1), None), "", CallRuling::Approved, ""),
        (approve(None, Some(changed())), "", CallRuling::Changed(changed()), ""),
        (reject(None), "not him", CallRuling::Refused, "not him"),
        (reject(Some(1)), "", CallRuling::Refused, ""),
        (answer("1"), "", CallRuling::Approved, ""),
        (answer("Reject"), "", CallRuling::Refused, ""),
    ];
    for (action, reason, ruling, why) in table {
        let mut fleet = waiting(People::default());
        let asked = &fleet.run().questions[&QuestionId(1)];
        assert_eq!(asked.about, About::Call(TaskId::Leaf(TaskIndex::top(1))));
        assert!(asked.question.text.contains("mail.send") && asked.question.text.contains("ben"));
        assert!(!fleet.run().is_held(), "the other task goes on");
        fleet.ask_because(1, action.clone(), reason);
        let verdict = verdict(&fleet);
        assert_eq!((&verdict.ruling, verdict.by.as_deref()), (&ruling, Some("ann")), "{action:?}");
        assert!(verdict.reason.contains(why), "{action:?}: {verdict}");
        fleet.finish(&tasks());
    }
}

#[test]
fn silence_approves_nothing() {
    for (people, stops) in [
        (People::default(), false),
        (by(&["ann"], 2), false),
        (
            People {
                ask: vec!["ann".into(), "ben".into()],
                on_timeout: OnTimeout::AskAnother,
                ..People::default()
            },
            false,
        ),
        (People { on_timeout: OnTimeout::Abort, ..People::default() }, true),
    ] {
        let review = muster_shared::flow::ReviewPolicy::Auto;
        let mut fleet = waiting(People { answer_within_ms: 60_000, review, ..people });
        while fleet.run().open_questions().count() > 0 {
            fleet.pass(60_000);
        }
        if stops {
            assert_eq!(fleet.status(), RunStatus::Aborted(StopReason::DeadlinePassed));
            continue;
        }
        assert_eq!(verdict(&fleet), CallVerdict::unanswered(0));
        let told = fleet.find("1").answered.clone().unwrap().observation;
        assert_eq!(told.status, ObservationStatus::Refused);
    }
}

#[test]
fn of_several_calls_it_has_to_be_said_which() {
    let mut fleet = waiting(People::default());
    let two = fleet.find("2");
    wait(&mut fleet, &two);
    fleet.ask(1, approve(None, None));
    assert!(fleet.refusals()[0].contains("--question"), "{:?}", fleet.refusals());
    fleet.ask(2, approve(Some(7), None));
    assert!(fleet.refusals()[1].contains("question 7"), "{:?}", fleet.refusals());
    assert_eq!(fleet.run().open_questions().count(), 2);
    fleet.ask(3, approve(Some(2), None));
    fleet.ask(4, reject(None));
    assert_eq!(verdict(&fleet).ruling, CallRuling::Refused);
    let of_two = fleet.find("2").answered.clone().unwrap().verdict.unwrap();
    assert_eq!(of_two.ruling, CallRuling::Approved);
}

#[test]
fn what_does_not_fit_the_question_is_refused_and_the_call_waits_on() {
    let mut fleet = waiting(People::default());
    let draft = PlanDraft { goal: "the goal".into(), tasks: tasks(), ..PlanDraft::default() };
    let plan = RequestAction::Approve { question: None, arguments: None, plan: Some(Box::new(draft)) };
    fleet.ask(1, plan);
    fleet.ask(2, approve(None, Some(json!([1]))));
    fleet.ask(3, answer("edit"));
    fleet.ask_because(4, reject(None), "approve");
    assert_eq!(fleet.refusals().len(), 4, "{:?}", fleet.refusals());
    fleet.ask(5, answer("no, write to cal instead"));
    assert_eq!(status(&fleet, "1"), TaskStatus::Waiting);
    fleet.ask_because(6, reject(None), "not ben");
    assert_eq!(verdict(&fleet).reason, "no, write to cal instead; not ben");
}

#[test]
fn those_who_have_to_approve_see_the_same_call() {
    let policy = || People { review: muster_shared::flow::ReviewPolicy::Auto, ..by(&["ann", "ben"], 2) };
    let mut fleet = waiting(policy());
    signed(&mut fleet, 1, person("zoe"), approve(None, None));
    signed(&mut fleet, 2, person("ann"), approve(None, Some(json!({ "to": "ann" }))));
    assert_eq!(fleet.refusals().len(), 2, "{:?}", fleet.refusals());
    signed(&mut fleet, 3, person("ann"), approve(None, None));
    assert_eq!(status(&fleet, "1"), TaskStatus::Waiting, "one is not enough");
    signed(&mut fleet, 4, person("ben"), approve(None, None));
    assert_eq!(verdict(&fleet).by.as_deref(), Some("ben"));
    // One is enough to be against it.
    let mut fleet = waiting(policy());
    signed(&mut fleet, 1, person("ben"), reject(None));
    assert_eq!(verdict(&fleet).ruling, CallRuling::Refused);
}

#[test]
fn a_task_that_may_not_ask_people_can_still_be_watched() {
    let rights = Rights { people: false, ..Rights::default() };
    let mut fleet = limited(RunLimits { rights: Box::new(rights), ..RunLimits::default() });
    fleet.ask(1, approve(None, None));
    assert_eq!(verdict(&fleet).ruling, CallRuling::Approved);
}

#[test]
fn what_ends_the_wait_withdraws_the_question() {
    let mut fleet = waiting(People::default());
    fleet.ask(1, RequestAction::Skip { task: TaskIndex::top(1) });
    let asked = &fleet.run().questions[&QuestionId(1)];
    assert!(matches!(asked.end, Some(QuestionEnd::Withdrawn(_))), "{:?}", asked.end);
    fleet.ask(2, approve(Some(1), None));
    assert!(fleet.refusals()[0].contains("nothing waits"), "{:?}", fleet.refusals());
}
