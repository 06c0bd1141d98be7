//! Runs by a blueprint: no planner, and a plan that grows.

use std::collections::BTreeMap;

use muster_shared::blueprint::{Filled, StepOutcome, fill, parse};
use muster_shared::flow::{Ending, Goal, RunLimits, TaskOffered, Work};
use muster_shared::run::{RequestAction, RunEvent, RunStatus};
use serde_json::json;

use super::fleet::{Fleet, failed, good, result};

const STEPS: &str = "
name = 'b'
version = '1'
goal = 'Look into {{params.topics}}.'
[params.topics]
type = 'list'
[output.summary]
[[steps]]
id = 'look'
goal = 'look into {{item}}'
for_each = 'params.topics'
[[steps]]
id = 'dig'
goal = 'dig into {{look.result}}'
if = 'look.result contains \"more\"'
[[steps.fallback]]
goal = 'ask around'
[[steps]]
id = 'sum'
goal = 'sum up {{dig.result}}'
";

fn filled(text: &str) -> Filled {
    let params = BTreeMap::from([("topics".to_owned(), json!(["ants", "bees"]))]);
    fill(&parse(text).unwrap(), &params).unwrap()
}

fn begun(filled: &Filled) -> Fleet {
    let goal = Goal { blueprint: Some(Box::new(filled.clone())), ..Goal::new(filled.goal()) };
    Fleet::with_goal(goal, RunLimits::default())
}

/// Goals of the leaves that were done, in the order in which they were offered.
fn goals(fleet: &Fleet) -> Vec<String> {
    fleet.offered().into_iter().filter_map(|offer| Some(offer.work.leaf()?.goal.clone())).collect()
}

#[test]
fn steps_come_as_it_becomes_known_what_is_to_be_done() {
    let mut fleet = begun(&filled(STEPS));
    fleet.work(|offer: &TaskOffered| match offer.task.to_string().as_str() {
        "1-1" => result("ants: there is more"),
        "1-2" => result("bees: nothing"),
        _ => good(offer, &[]),
    });
    assert_eq!(
        goals(&fleet),
        [
            "look into ants",
            "look into bees",
            "dig into ants: there is more\nbees: nothing",
            "sum up dig is so"
        ]
    );
    assert_eq!(fleet.status(), RunStatus::Completed);
    let report = fleet.run().report.as_ref().unwrap();
    assert_eq!(report.unanswered, ["the report was to have a part \"Summary\" and has none"]);
}

#[test]
fn a_condition_that_does_not_hold_leaves_the_step_out() {
    let mut fleet = begun(&filled(STEPS));
    fleet.work(|offer| good(offer, &[]));
    assert!(matches!(fleet.run().planning.expansion["dig"], StepOutcome::LeftOut { .. }));
    assert!(goals(&fleet).last().unwrap().contains("was left out"), "{:?}", goals(&fleet));
    assert_eq!(fleet.status(), RunStatus::Completed);
}

#[test]
fn a_failure_block_is_done_when_a_step_fails_for_good() {
    let mut fleet = begun(&filled(STEPS));
    fleet.work(|offer| match offer.task.to_string().as_str() {
        "1-1" => result("there is more"),
        "2-1" => failed(Ending::Escalate, "the spade broke"),
        "2-2" => result("asked around"),
        _ => good(offer, &[]),
    });
    assert_eq!(goals(&fleet).last().unwrap(), "sum up asked around");
    assert_eq!(fleet.status(), RunStatus::Completed);
}

#[test]
fn a_step_waits_for_one_that_can_never_start() {
    let text = "name='b'\nversion='1'\ngoal='g'\n[params.topics]\ntype='list'\n\
                [[steps]]\nid='a'\ngoal='a'\n[[steps]]\nid='b'\ngoal='use {{a.result}}'\n\
                [[steps]]\nid='c'\ngoal='c'\nif='not b.ok'";
    let mut fleet = begun(&filled(text));
    fleet.work(|offer| match offer.task.to_string().as_str() {
        "1" => failed(Ending::Escalate, "no"),
        _ => good(offer, &[]),
    });
    assert_eq!(goals(&fleet), ["a", "c"], "what was blocked decides too");
    assert_eq!(fleet.status(), RunStatus::Completed);
}

#[test]
fn a_step_for_a_role_that_nobody_has_is_begun_all_the_same() {
    let unknown = STEPS.replace("id = 'sum'", "id = 'sum'\nrole = 'lawyer'");
    let fleet = begun(&filled(&unknown));
    assert_eq!(fleet.status(), RunStatus::Processing, "a lawyer may be on the way: {}", fleet.reason());
}

#[test]
fn problems_that_no_message_would_hold_are_told_in_part() {
    let mut huge = filled(STEPS);
    huge.blueprint.steps[0].goal = format!("{{{{{}}}}} ", "x.".repeat(60_000)).repeat(12);
    let fleet = begun(&huge);
    assert_eq!(fleet.status(), RunStatus::Failed);
    assert!(fleet.reason().contains("cannot be used here"), "{:.200}", fleet.reason());
    assert!(fleet.reason().len() < muster_shared::wire::codec::MAX_MESSAGE_BYTES, "{}", fleet.reason().len());
}

#[test]
fn what_was_planned_beforehand_is_not_refined() {
    let mut fleet = begun(&filled(STEPS));
    fleet.work(|offer| match &offer.work {
        Work::Reflect { .. } => super::fleet::reflection(Some("do more")),
        _ => good(offer, &[]),
    });
    assert!(!fleet.events().iter().any(|event| matches!(event, RunEvent::RefinementWanted(_))));
    assert_eq!(fleet.status(), RunStatus::Completed);
}

#[test]
fn a_step_that_needs_approval_begins_after_a_yes_alone() {
    let text = "name='b'\nversion='1'\ngoal='g'\n[params.topics]\ntype='list'\n\
                [[steps]]\nid='draft'\ngoal='draft it'\n\
                [[steps]]\nid='send'\ngoal='send {{draft.result}}'\napproval='May it be sent?'";
    for (answer, done) in [("approve", 2), ("reject", 1)] {
        let mut fleet = begun(&filled(text));
        fleet.work(|offer| good(offer, &[]));
        assert_eq!(fleet.status(), RunStatus::Processing, "it waits for a person");
        let (question, asked) =
            fleet.run().open_questions().next().map(|(id, asked)| (id, asked.clone())).unwrap();
        assert_eq!(asked.question.text, "May it be sent?");
        fleet.ask(1, RequestAction::Answer { question, text: answer.to_owned() });
        fleet.work(|offer| good(offer, &[]));
        assert_eq!(goals(&fleet).len(), done, "{answer}");
        assert_eq!(fleet.status(), RunStatus::Completed);
    }
}
