//! How failures are answered, and what a result has to be.

use std::collections::BTreeMap;

use muster_shared::flow::{
    Acceptance, ContractViolation, Ending, FailureKind, ObservationStatus, Outcome, People, Product,
    Response, Responses, RunLimits, StepDigest, TaskDraft, TaskResult, TaskStatus, Work,
};
use muster_shared::ids::{Generation, TaskId};
use muster_shared::run::event::{ErrorBudgetUsedUp, FailureAnswered};
use muster_shared::run::{RequestAction, RunEvent, RunStatus};
use proptest::prelude::*;

use super::fleet::{Fleet, done, failed, good, leaf, plan};
use super::tables::{planned_with, status, tasks};
use crate::decide::{Tried, respond};

fn limits(responses: Responses) -> RunLimits {
    RunLimits { responses, ..RunLimits::default() }
}

/// Everything is possible.
fn able() -> Tried {
    Tried {
        given: BTreeMap::new(),
        tries_left: 9,
        other_model: true,
        can_ask: true,
        can_replan: true,
        can_do_without: true,
    }
}

/// What is done about one failure after the other of this kind, each response being given twice at most.
fn ladder(failure: FailureKind, mut tried: Tried) -> Vec<Response> {
    let mut given = Vec::new();
    while given.len() < 12 {
        let response = respond(failure, &tried);
        given.push(response);
        if response.tries_again() {
            tried.tries_left -= 1;
        }
        let times = tried.given.entry(response).or_default();
        *times += 1;
        match response {
            Response::OtherModel => tried.other_model = false,
            Response::Person => tried.can_ask = false,
            Response::Replan => tried.can_replan = false,
            Response::Degrade | Response::Stop => break,
            Response::Retry => tried.tries_left = tried.tries_left.min(1),
            Response::OtherAgent | Response::OtherTool => tried.tries_left = tried.tries_left.min(2),
        }
    }
    given
}

#[test]
fn every_failure_has_a_row_that_begins_with_what_helps_most_and_ends_with_less() {
    use Response::{Degrade, OtherAgent, OtherModel, OtherTool, Person, Replan, Retry};
    let rows: [(FailureKind, &[Response]); 26] = [
        // Models.
        (FailureKind::ModelUnavailable, &[Retry, OtherModel, Replan, Degrade]),
        (FailureKind::ModelDeclined, &[OtherModel, Person, Replan, Degrade]),
        (FailureKind::AnswersUnusable, &[Retry, OtherModel, Replan, Degrade]),
        (FailureKind::QuestionTooLong, &[OtherModel, Replan, Retry, Degrade]),
        (FailureKind::LoopDetected, &[OtherModel, Person, Replan, Degrade]),
        (FailureKind::OutOfSteps, &[Retry, OtherModel, Replan, Degrade]),
        (FailureKind::GaveUp, &[Retry, OtherModel, Replan, Degrade]),
        // Tools.
        (FailureKind::ToolFailed, &[OtherTool, OtherModel, Replan, Degrade]),
        (FailureKind::ToolTimedOut, &[OtherTool, OtherModel, Replan, Degrade]),
        (FailureKind::ToolRefused, &[OtherTool, Person, Replan, Degrade]),
        (FailureKind::EffectUnknown, &[Person, Replan, Degrade]),
        // Plans.
        (FailureKind::Blocked, &[Retry, Replan, Degrade]),
        (FailureKind::InputUnfit, &[Retry, Replan, Degrade]),
        (FailureKind::PlanRefused, &[Retry, OtherModel, Degrade]),
        (FailureKind::NeedsPerson, &[Person, Replan, Degrade]),
        // Agents.
        (FailureKind::HandedBack, &[OtherAgent, Replan, Degrade]),
        (FailureKind::AgentFault, &[OtherAgent, OtherAgent, OtherAgent, Replan, Degrade]),
        (FailureKind::AgentsDied, &[Replan, Degrade]),
        (FailureKind::TimeUp, &[OtherAgent, Replan, Degrade]),
        (FailureKind::NobodyTookIt, &[OtherAgent, Replan, Degrade]),
        (FailureKind::NobodyThere, &[Replan, Degrade]),
        // Results.
        (FailureKind::ContractBroken, &[Retry, OtherModel, Replan, Degrade]),
        (FailureKind::NotAccepted, &[Retry, OtherModel, Replan, Degrade]),
        (FailureKind::WrongProduct, &[Retry, OtherModel, Replan, Degrade]),
        // What it may use, and orders.
        (FailureKind::BudgetUsedUp, &[Degrade]),
        (FailureKind::Cancelled, &[Retry, Retry, Degrade]),
    ];
    assert_eq!(rows.map(|(kind, _)| kind).into_iter().collect::<std::collections::BTreeSet<_>>().len(), 26);
    for (failure, row) in rows {
        assert_eq!(ladder(failure, able()), row, "{failure:?}");
    }
}

#[test]
fn an_outcome_tells_what_kind_of_failure_it_was() {
    use muster_shared::flow::ContractSide::{Input as Asked, Output as Given};
    use muster_shared::flow::response as words;
    let step = |status| StepDigest {
        number: 1,
        action: "fetch a".into(),
        status: Some(status),
        millis: 1,
        more: Vec::new(),
    };
    let with = |ending, reason: &str, last: Option<ObservationStatus>| Outcome {
        steps: last.into_iter().map(step).collect(),
        ..failed(ending, reason)
    };
    let contract_violation = |side| Some(ContractViolation { side, faults: vec!["no".into()] });
    let table = [
        (with(Ending::ModelFailed, "429", None), FailureKind::ModelUnavailable),
        (with(Ending::ModelFailed, words::NO_ANSWER_USABLE, None), FailureKind::AnswersUnusable),
        (with(Ending::ModelFailed, words::TOO_LONG, None), FailureKind::QuestionTooLong),
        (with(Ending::Escalate, words::DECLINED, None), FailureKind::ModelDeclined),
        (with(Ending::Escalate, words::LOOP_DETECTED, None), FailureKind::LoopDetected),
        (with(Ending::Escalate, words::EFFECT_UNKNOWN, None), FailureKind::EffectUnknown),
        (with(Ending::Escalate, "which of them?", None), FailureKind::NeedsPerson),
        (with(Ending::GaveUp, words::BEFORE_A_RESULT, None), FailureKind::OutOfSteps),
        (with(Ending::GaveUp, "no", Some(ObservationStatus::Success)), FailureKind::GaveUp),
        (with(Ending::GaveUp, "no", Some(ObservationStatus::Error)), FailureKind::ToolFailed),
        (with(Ending::Blocked, "no", Some(ObservationStatus::Timeout)), FailureKind::ToolTimedOut),
        (with(Ending::Blocked, "no", Some(ObservationStatus::Refused)), FailureKind::ToolRefused),
        (with(Ending::Blocked, "no", None), FailureKind::Blocked),
        (
            Outcome { contract_violation: contract_violation(Asked), ..failed(Ending::Blocked, "no") },
            FailureKind::InputUnfit,
        ),
        (
            Outcome { contract_violation: contract_violation(Given), ..failed(Ending::GaveUp, "no") },
            FailureKind::ContractBroken,
        ),
        (with(Ending::Delegate, "", None), FailureKind::HandedBack),
        (with(Ending::AgentFailed, "", None), FailureKind::AgentFault),
        (with(Ending::DeadlinePassed, "", None), FailureKind::TimeUp),
        (with(Ending::BudgetExhausted, "", None), FailureKind::BudgetUsedUp),
        (with(Ending::Cancelled, "", None), FailureKind::Cancelled),
    ];
    for (outcome, kind) in table {
        assert_eq!(FailureKind::of(&outcome), kind, "{:?} {}", outcome.ending, outcome.reason);
    }
}

proptest! {
    /// Whatever fails, and in whatever order, tries come to an end, and what is not possible is not done.
    #[test]
    fn every_failure_comes_to_an_end(
        failures in proptest::collection::vec(0usize..FailureKind::ALL.len(), 1..40),
        tries in 0u32..10,
        (other_model, can_ask, can_replan, can_do_without) in any::<(bool, bool, bool, bool)>(),
    ) {
        let mut tried =
            Tried { given: BTreeMap::new(), tries_left: tries, other_model, can_ask, can_replan, can_do_without };
        let mut again = 0;
        for failure in failures.into_iter().map(|at| FailureKind::ALL[at]) {
            let response = respond(failure, &tried);
            match response {
                Response::Retry | Response::OtherAgent | Response::OtherTool => prop_assert!(tried.tries_left > 0),
                Response::OtherModel => prop_assert!(other_model && tried.tries_left > 0),
                Response::Person => prop_assert!(can_ask),
                Response::Replan => prop_assert!(can_replan),
                Response::Degrade => prop_assert!(can_do_without),
                Response::Stop => prop_assert!(!can_do_without),
            }
            *tried.given.entry(response).or_default() += 1;
            if response.tries_again() {
                again += 1;
                tried.tries_left -= 1;
            }
        }
        prop_assert!(again <= tries);
    }
}

fn answers(fleet: &Fleet) -> Vec<(FailureKind, Response, Option<String>)> {
    let answered = fleet.events().into_iter().filter_map(|event| {
        if let RunEvent::FailureAnswered(FailureAnswered { failure, response, model, .. }) = event {
            Some((*failure, *response, model.clone()))
        } else {
            None
        }
    });
    answered.collect()
}

#[test]
fn a_tool_that_failed_is_withheld_until_the_task_is_done_anew() {
    let step = |number, action: &str, status| StepDigest {
        number,
        action: action.into(),
        status,
        millis: 1,
        more: Vec::new(),
    };
    let (bad, good_one) = (Some(ObservationStatus::Error), Some(ObservationStatus::Success));
    let table: [(Vec<StepDigest>, Option<&str>); 6] = [
        (
            vec![step(1, "fetch a", good_one), step(2, "calculator 1 / 0", bad), step(3, "submit", None)],
            Some("calculator"),
        ),
        (vec![step(1, "corpus.search", Some(ObservationStatus::Timeout))], Some("corpus.search")),
        (vec![step(1, "calculator", bad), step(2, "fetch a", good_one)], None),
        (vec![step(1, "submit", None)], None),
        (vec![step(1, "submit", Some(ObservationStatus::Refused))], None),
        (Vec::new(), None),
    ];
    for (steps, tool) in table {
        let outcome = Outcome { steps, ..failed(Ending::GaveUp, "no") };
        assert_eq!(outcome.failed_tool(), tool);
    }
    for (action, withheld) in [("calculator 1 / 0", vec!["calculator".to_owned()]), ("escalate", Vec::new())]
    {
        let mut fleet = planned_with(limits(Responses::default()));
        assert!(fleet.find("1").withheld.is_empty());
        let outcome = Outcome { steps: vec![step(1, action, bad)], ..failed(Ending::GaveUp, "it fails") };
        fleet.do_task("1", outcome);
        let again = fleet.find("1");
        assert_eq!(again.withheld, withheld);
        assert!(fleet.find("2").withheld.is_empty(), "the others keep theirs");
        let Work::Execute { failed_before: Some(told), .. } = &again.work else { panic!("{:?}", again.work) };
        assert!(told.starts_with("it fails. Do it without the tool that failed"), "{told}");
        assert_eq!(
            told.contains("(calculator, withheld if there are others)"),
            !withheld.is_empty(),
            "{told}"
        );
        fleet.finish(&tasks());
    }
}

#[test]
fn a_more_capable_model_tries_what_others_failed() {
    let stronger_models = vec!["a/large".to_owned(), "b/larger".to_owned()];
    let mut fleet = planned_with(limits(Responses { stronger_models, ..Responses::default() }));
    let tried = ["it would not", muster_shared::flow::response::TOO_LONG, "nor here"];
    let models = [None, Some("a/large"), Some("b/larger")];
    let endings = [Ending::Escalate, Ending::ModelFailed, Ending::GaveUp];
    fleet.do_task("1", failed(Ending::ModelFailed, tried[1]));
    assert_eq!(fleet.find("1").model.as_deref(), models[1]);
    assert_eq!(fleet.find("2").model, None, "the others stay with theirs");
    fleet.do_task("1", failed(endings[1], tried[1]));
    assert_eq!(fleet.find("1").model.as_deref(), models[2]);
    fleet.do_task("1", failed(endings[2], tried[2]));
    assert_eq!(status(&fleet, "1"), TaskStatus::Failed, "three tries are the limit");
    let given: Vec<Response> = answers(&fleet).into_iter().map(|(_, response, _)| response).collect();
    assert_eq!(given, [Response::OtherModel, Response::OtherModel, Response::Degrade]);
    fleet.work(|offer| good(offer, &tasks()));
    assert_eq!((fleet.status(), fleet.run().responses.failures), (RunStatus::Completed, 3));
}

#[test]
fn a_part_is_taken_when_there_will_be_no_more_and_the_report_says_so() {
    let part = TaskResult { conclusion: "half of it".into(), ..TaskResult::default() };
    let blocked = || Outcome {
        product: Some(Product::Result(part.clone())),
        ..failed(Ending::Blocked, "the other half is not there")
    };
    let mut fleet = planned_with(RunLimits::default());
    fleet.do_task("1", blocked());
    assert_eq!(fleet.find("1").generation, Generation(2), "first it is tried once more");
    fleet.do_task("1", blocked());
    assert_eq!(status(&fleet, "1"), TaskStatus::Completed);
    fleet.work(|offer| good(offer, &tasks()));
    let body = fleet.body();
    assert!(body.contains("1 counts only in part") && body.contains("the other half is not there"), "{body}");
}

#[test]
fn whoever_gives_up_gave_no_part_that_would_do() {
    let part = TaskResult { conclusion: "half of it".into(), ..TaskResult::default() };
    for ending in [Ending::GaveUp, Ending::Escalate] {
        let outcome =
            || Outcome { product: Some(Product::Result(part.clone())), ..failed(ending, "it is too much") };
        let mut fleet = planned_with(RunLimits::default());
        while fleet.run().planned(&"1".parse().unwrap()).is_some_and(|state| !state.status.is_ended()) {
            fleet.do_task("1", outcome());
        }
        assert_eq!(status(&fleet, "1"), TaskStatus::Failed, "{ending:?}: what is left of it may be split");
    }
}

#[test]
fn an_error_budget_that_is_used_up_ends_what_was_not_begun() {
    let responses = Responses { error_budget: 2, ..Responses::default() };
    let mut fleet = planned_with(limits(responses));
    fleet.do_task("1", failed(Ending::AgentFailed, "once"));
    fleet.begin_task("2");
    fleet.do_task("1", failed(Ending::AgentFailed, "twice"));
    assert!(fleet.run().responses.used_up);
    assert!(
        fleet
            .events()
            .contains(&&RunEvent::ErrorBudgetUsedUp(ErrorBudgetUsedUp { failures: 2, asked: false }))
    );
    fleet.work(|offer| good(offer, &tasks()));
    assert_eq!(status(&fleet, "2"), TaskStatus::Completed, "what was begun comes to its end");
    assert_eq!(status(&fleet, "3"), TaskStatus::Skipped);
    assert_eq!(fleet.status(), RunStatus::Completed);
    let body = fleet.body();
    assert!(body.contains("as many failures as it may have (2)"), "{body}");
}

/// No run in which all is well comes near this limit: whoever meets it is told of it.
#[test]
fn a_run_that_calls_models_without_end_begins_nothing_more() {
    let mut fleet = planned_with(RunLimits { max_calls: 40, ..RunLimits::default() });
    let one = fleet.begin_task("1");
    let usage = muster_shared::flow::Usage { model_calls: 40, ..Default::default() };
    fleet.end(&one, Outcome { usage, ..good(&one, &tasks()) });
    fleet.finish(&tasks());
    assert_eq!((status(&fleet, "1"), status(&fleet, "3")), (TaskStatus::Completed, TaskStatus::Skipped));
    let body = fleet.body();
    assert!(body.contains("the most of a run without a budget"), "{body}");
}

/// A model whose answers are always cut fails every task: no plan and no other task helps, and each try costs calls.
#[test]
fn a_model_whose_answers_can_never_be_used_ends_the_run_soon() {
    let unusable =
        || failed(Ending::ModelFailed, "the model was asked 3 times and no answer could be used: cut off");
    let mut fleet = planned_with(limits(Responses { model_failures: 4, ..Responses::default() }));
    let mut tries = 0;
    fleet.work(|offer| match offer.task {
        TaskId::Leaf(_) => {
            tries += 1;
            unusable()
        }
        _ => good(offer, &tasks()),
    });
    assert!(fleet.run().responses.used_up && tries <= 6, "{tries} tries");
    assert!(fleet.status().is_ended());
    // One answer in between, and it is counted anew.
    let mut fleet = planned_with(limits(Responses { model_failures: 2, ..Responses::default() }));
    fleet.do_task("1", unusable());
    assert_eq!(fleet.run().responses.model_failures, 1);
    fleet.do_well("2", &tasks());
    assert_eq!(fleet.run().responses.model_failures, 0);
    crate::replay::replay(super::fleet::ID, &fleet.record).unwrap();
}

#[test]
fn where_somebody_can_be_asked_they_say_whether_the_run_goes_on() {
    let people = People { ask: vec!["ann".into()], ..People::default() };
    let responses = Responses { error_budget: 1, ..Responses::default() };
    let begun = || {
        let mut fleet = planned_with(RunLimits { people: people.clone(), ..limits(responses.clone()) });
        fleet.do_task("1", failed(Ending::AgentFailed, "once"));
        fleet
    };
    let mut silent = begun();
    silent.pass(31 * 60 * 1_000);
    assert!(silent.run().responses.used_up, "nobody lets it go on");
    let mut fleet = begun();
    let (id, asked) = fleet.run().open_questions().next().map(|(id, asked)| (id, asked.clone())).unwrap();
    assert!(asked.question.text.contains("1 failures in this run"), "{}", asked.question.text);
    assert!(!fleet.run().responses.used_up);
    fleet.ask(1, RequestAction::Answer { question: id, text: "approve".into() });
    fleet.work(|offer| good(offer, &tasks()));
    assert_eq!((fleet.status(), status(&fleet, "1")), (RunStatus::Completed, TaskStatus::Completed));
}

#[test]
fn a_result_that_is_not_what_was_asked_for_does_not_count() {
    let milestones = |reached: &[&str]| TaskResult {
        conclusion: "so it is".into(),
        milestones: reached.iter().map(|one| (*one).to_owned()).collect(),
        ..TaskResult::default()
    };
    let table = [
        (TaskResult::default(), Ending::Done, false),
        (milestones(&["sown"]), Ending::Done, false),
        (milestones(&["sown"]), Ending::DonePartial, true),
        (milestones(&["sown", "reaped"]), Ending::Done, true),
        (milestones(&[]), Ending::Done, true),
    ];
    for (given, ending, counts) in table {
        for acceptance in [Acceptance::Rules, Acceptance::Off] {
            let responses = Responses { acceptance, ..Responses::default() };
            let mut fleet = Fleet::submitted(limits(responses));
            let planning = fleet.find("plan");
            let milestones = vec!["sown".to_owned(), "reaped".to_owned()];
            fleet.end(&planning, plan(vec![TaskDraft { milestones, ..leaf("one", &[]) }]));
            fleet.do_task("1", Outcome { ending, ..done(Product::Result(given.clone())) });
            let counted = status(&fleet, "1") == TaskStatus::Completed;
            assert_eq!(counted, counts || acceptance == Acceptance::Off, "{given:?} {ending:?}");
            if !counted {
                let Work::Execute { failed_before, .. } = fleet.find("1").work else { panic!() };
                assert!(failed_before.is_some(), "it is done again, told why");
                fleet.do_task("1", Outcome { ending, ..done(Product::Result(given.clone())) });
                let end = status(&fleet, "1");
                let empty = given == TaskResult::default();
                let wanted = if empty { TaskStatus::Failed } else { TaskStatus::Completed };
                assert_eq!(end, wanted, "a part is better than nothing");
            }
        }
    }
}
