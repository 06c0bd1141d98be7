//! Whoever contradicts another: a validator its researcher, and one coder the other.

use muster_support::model_server::{CapturedRequest, Reply};
use serde_json::{Value, json};

use super::scenarios::{Ended, ask, learnt, model, plan, submit, written};

const SUBJECT: &str = "return value of f(3)";

fn claiming(value: &str, sure: u8, method: &str) -> Reply {
    submit(&json!({
        "thought": "So it is.", "ending": "done", "findings": [],
        "conclusion": format!("f(3) returns {value}."),
        "claims": [{ "subject": SUBJECT, "value": value, "confidence": sure, "method": method }],
    }))
}

fn others(who: &str, request: &CapturedRequest, tasks: &Value) -> Reply {
    match who {
        "planner" => plan(tasks),
        "reflector" => learnt("It went as planned."),
        "writer" => written("# f\n\nf(3) returns 6."),
        who => panic!("{who} asks: {:?}", request.messages),
    }
}

fn settled(ended: &Ended) -> &Value {
    let conflicts = &ended.state["conflicts"];
    assert_eq!(conflicts.as_object().map(serde_json::Map::len), Some(1), "{conflicts}");
    &conflicts["1"]
}

#[test]
fn a_validator_that_contradicts_the_researcher_has_it_done_again_and_looks_once_more() {
    let tasks = json!([
        { "name": "research", "goal": "Find out what f(3) returns.", "role": "researcher" },
        { "name": "validate", "goal": "Check: {{1.result}}", "role": "worker", "depends_on": ["research"] },
    ]);
    let (server, folder) = model(move |who, request| match who {
        "1" if request.holds("does not hold: it is 6") => claiming("6", 90, "called with 3"),
        "1" => claiming("9", 40, ""),
        "2" => claiming("6", 95, "called with 3"),
        who => others(who, request, &tasks),
    });
    let policy = ["--planning", "always", "--set", "limits.conflicts.policy=confidence"];
    let ended = ask(&folder, "Find out what f(3) returns, and have it checked.", &policy);
    assert!(ended.report(&folder).contains("f(3) returns 6."));
    let conflict = settled(&ended);
    let verdict = &conflict["end"]["settled"];
    assert_eq!((&verdict["by"], &verdict["losers"]), (&json!("confidence"), &json!(["1"])), "{conflict}");
    assert_eq!(conflict["redone"], json!(["1"]), "{conflict}");
    let checked =
        |word: &str| server.log().iter().any(|entry| entry.request.holds(&format!("Check: {word}")));
    assert!(checked("f(3) returns 9.") && checked("f(3) returns 6."), "it looks at what was done again");
    assert_eq!((ended.status("1"), ended.status("2")), ("completed", "completed"));
}

#[test]
fn two_coders_who_contradict_each_other_are_told_apart_by_a_task_that_verifies() {
    let tasks = json!([
        { "name": "first coder", "goal": "Read the code of f.", "role": "worker" },
        { "name": "second coder", "goal": "Read f once more.", "role": "worker" },
    ]);
    let (_server, folder) = model(move |who, request| match who {
        "1" if request.holds("does not hold: it is 6") => claiming("6", 90, "called with 3"),
        "1" => claiming("9", 80, "read"),
        "2" => claiming("6", 80, "read"),
        "3" => claiming("6", 95, "called with 3"),
        who => others(who, request, &tasks),
    });
    let policy = ["--planning", "always", "--set", "limits.conflicts.policy=verify"];
    let ended = ask(&folder, "Find out what f(3) returns, by two coders.", &policy);
    let report = ended.report(&folder);
    assert!(report.contains("f(3) returns 6."), "{report}");
    let conflict = settled(&ended);
    assert_eq!(conflict["verified_by"], "3", "{conflict}");
    let verdict = &conflict["end"]["settled"];
    assert_eq!((&verdict["by"], &verdict["losers"]), (&json!("verify"), &json!(["1"])), "{conflict}");
    let traced = folder.output(&["trace", "last"]).unwrap();
    assert!(traced.contains("conflict 1: results contradict each other"), "{traced}");
}
